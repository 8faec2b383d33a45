// Clients that a server has to cut off. One third sends nothing, one third drips a header, and one third drips a body.
// They check by their own clock, without a timer of the library, that they are cut off in time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "common/histogram.hpp"
#include "loopback.hpp"
#include "options.hpp"

namespace http_timeouts {

class slow_clients {
 public:
  using clock = std::chrono::steady_clock;

  struct counts {
    std::array<std::uint64_t, phases> cut_off{};  // by the phase in which they are slow
    std::uint64_t early = 0;
    std::uint64_t not_cut = 0;
  };
  struct results {
    counts counted;
    common::histogram
        seen_after;  // from the limit, which counts from the first byte or from connect(), until it was noticed
  };

  // The tokens of its connections begin at `first_token`.
  slow_clients(poller&, std::uint16_t port, std::uint64_t first_token, const options&);

  // Opens all connections.
  void open();
  // Sends the bytes whose turn has come, and gives up clients that should have been cut off long ago.
  void advance(clock::time_point now);
  // Call this when the connection is readable or established.
  void ready(std::uint64_t token);

  // Clients that are cut off no longer reconnect.
  void fall_silent() { silent_ = true; }
  bool all_cut_off() const noexcept { return open_ == 0; }

  const results& get() const noexcept { return results_; }

 private:
  struct client {
    descriptor socket;
    phase slow_in = phase::idle;
    std::chrono::milliseconds limit{};
    clock::time_point begun{};  // no later than the server can have begun to count
    clock::time_point next_byte{};
    bool connected = false;
  };

  void open(std::size_t number);
  void begin(client&);
  void close(std::size_t number);

  poller& poller_;
  const std::uint16_t port_;
  const std::uint64_t first_token_;
  std::vector<client> clients_;
  std::size_t open_ = 0;
  bool silent_ = false;
  results results_;
};

}  // namespace http_timeouts
