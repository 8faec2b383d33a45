// The server is a process of its own, which is told over a socket when to measure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "descriptor.hpp"
#include "options.hpp"

namespace http_timeouts {

// The report that the server sends at the end, as bytes.
struct server_report {
  // Between `measure_begin` and `measure_end`.
  std::uint64_t requests = 0;
  std::uint64_t timeouts_set = 0;
  std::chrono::nanoseconds processor{};  // of the whole process, including the kernel
  std::uint64_t memory = 0;              // resident bytes, at the end
  std::uint64_t memory_before = 0;       // resident bytes, before the first connection
  std::uint64_t open = 0;                // open connections, at the end

  // From start to end.
  std::uint64_t accepted = 0;
  std::uint64_t closed_by_peer = 0;
  std::uint64_t bad_requests = 0;
  std::uint64_t left_open = 0;  // open when the server was told to end
  std::array<std::uint64_t, phases> cut_off{};
  std::uint64_t early = 0;     // timeouts that fired too early
  std::uint64_t late = 0;      // timeouts that fired later than late_after
  std::uint64_t for_gone = 0;  // timeouts of connections that were closed or in another phase

  // Over all cut-offs: the time from the deadline until the connection is closed.
  std::chrono::nanoseconds lateness_p50{};
  std::chrono::nanoseconds lateness_p99{};
  std::chrono::nanoseconds lateness_max{};
};

inline constexpr std::chrono::milliseconds late_after{10};  // 10 ticks

// The orders to a server, of one byte each. At the end of the stream the server ends and writes its report.
inline constexpr char measure_begin = 'b';
inline constexpr char measure_end = 'e';

// Serves the connections that arrive at `listening` until told to end. Uses one thread.
void serve(const options&, descriptor listening, descriptor orders);

}  // namespace http_timeouts
