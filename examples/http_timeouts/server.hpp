// The server: a process of its own, told over a socket when to measure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "descriptor.hpp"
#include "options.hpp"

namespace http_timeouts {

// What the server reports in the end, as bytes.
struct server_report {
  // Between `measure_begin` and `measure_end`.
  std::uint64_t requests = 0;
  std::uint64_t timeouts_set = 0;
  std::chrono::nanoseconds processor{};  // of the whole process, in the kernel as well
  std::uint64_t memory = 0;              // at the end of it: bytes resident
  std::uint64_t memory_before = 0;       // the same, before the first connection
  std::uint64_t open = 0;                // at the end of it: connections

  // From start to end.
  std::uint64_t accepted = 0;
  std::uint64_t closed_by_peer = 0;
  std::uint64_t bad_requests = 0;
  std::uint64_t left_open = 0;  // when it was told to end
  std::array<std::uint64_t, phases> cut_off{};
  std::uint64_t early = 0;     // timeouts that fired before their time
  std::uint64_t late = 0;      // later than late_after
  std::uint64_t for_gone = 0;  // when the connection was closed, or in another phase

  // Of all cut-offs: from the deadline until the connection is closed.
  std::chrono::nanoseconds lateness_p50{};
  std::chrono::nanoseconds lateness_p99{};
  std::chrono::nanoseconds lateness_max{};
};

inline constexpr std::chrono::milliseconds late_after{10};  // 10 ticks

// What a server is told, a byte each. The end of the stream ends it; then it writes its report.
inline constexpr char measure_begin = 'b';
inline constexpr char measure_end = 'e';

// Serves the connections that come to `listening` until it is told to end. One thread.
void serve(const options&, descriptor listening, descriptor orders);

}  // namespace http_timeouts
