// Well-behaved clients: each sends a request, waits for the answer, and sends the next one when its turn comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "loopback.hpp"
#include "options.hpp"

namespace http_timeouts {

class regular_clients {
 public:
  using clock = std::chrono::steady_clock;

  struct results {
    std::uint64_t answers = 0;
    std::uint64_t wrong = 0;      // answers that were not as expected
    std::uint64_t cut_off = 0;    // during the load: a server may do so after a long silence
    std::uint64_t cut_early = 0;  // although the server had heard something
    std::uint64_t not_cut = 0;    // after the load
    common::histogram waits;      // from each request to its answer
  };

  // The tokens of its connections begin at 0.
  regular_clients(poller&, std::uint16_t port, const options&);

  // Opens connections, and sends the requests whose turn has come.
  void advance(clock::time_point now);
  // Call this when the connection is readable or established.
  void ready(std::uint64_t token);

  bool all_connected() const noexcept { return connected_ >= clients_.size(); }
  std::size_t connected() const noexcept { return connected_; }

  // From now on waits are recorded. Earlier requests are not made up for.
  void begin_measuring() {
    measuring_ = true;
    next_request_ = clock::now();
  }
  // Stops sending requests and replacing closed connections.
  void fall_silent() { silent_ = true; }
  bool all_cut_off() const noexcept { return open_ == 0; }
  // Counts the connections that are still open.
  void give_up() { results_.not_cut = open_; }

  const results& get() const noexcept { return results_; }

 private:
  enum class state : unsigned char { connecting, waiting, answered, closed };
  struct client {
    descriptor socket;
    state now = state::closed;
    bool opening = false;      // no answer yet
    bool seen = false;         // whether this connection or an earlier one was answered
    clock::time_point sent{};  // the time of the last request, or of the start of connecting
    // When the server last heard from it. No timeout may fire before its limit from that moment.
    clock::time_point heard_of{};
    std::string partial;  // of an answer
  };

  void open(std::size_t number);
  void send_all();
  void send_due(clock::time_point now);
  void send_request(std::size_t number);
  void receive(std::size_t number, std::string_view);
  void answered(std::size_t number);
  void closed(std::size_t number);

  poller& poller_;
  const std::uint16_t port_;
  const options& chosen_;
  std::vector<client> clients_;
  std::deque<std::size_t> next_;      // clients in the order of their turns to send
  std::deque<std::size_t> unopened_;  // clients to connect
  std::size_t opening_ = 0;           // connections without an answer yet
  std::size_t connected_ = 0;
  std::size_t open_ = 0;
  clock::time_point next_request_;
  bool measuring_ = false;
  bool silent_ = false;
  results results_;
};

}  // namespace http_timeouts
