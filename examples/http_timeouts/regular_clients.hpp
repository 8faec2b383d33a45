// Clients that behave: each sends a request, waits for the answer, and sends the next one at its turn.
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
    std::uint64_t wrong = 0;      // answers that were not those asked for
    std::uint64_t cut_off = 0;    // while there was load: a server may, if it has heard nothing for so long
    std::uint64_t cut_early = 0;  // it had heard something
    std::uint64_t not_cut = 0;    // after the load
    common::histogram waits;      // from each request to its answer
  };

  // Its connections have tokens from 0 on.
  regular_clients(poller&, std::uint16_t port, const options&);

  // Opens connections, and sends the requests whose turn has come.
  void advance(clock::time_point now);
  // The connection can be read, or has been made.
  void ready(std::uint64_t token);

  bool all_connected() const noexcept { return connected_ >= clients_.size(); }
  std::size_t connected() const noexcept { return connected_; }

  // From now on waits are recorded, and no earlier request is made up for.
  void begin_measuring() {
    measuring_ = true;
    next_request_ = clock::now();
  }
  // No further request, and no connection in place of one that is closed.
  void fall_silent() { silent_ = true; }
  bool all_cut_off() const noexcept { return open_ == 0; }
  // Counts those that are open.
  void give_up() { results_.not_cut = open_; }

  const results& get() const noexcept { return results_; }

 private:
  enum class state : unsigned char { connecting, waiting, answered, closed };
  struct client {
    descriptor socket;
    state now = state::closed;
    bool opening = false;      // not answered yet
    bool seen = false;         // an earlier connection of it was answered, or this one
    clock::time_point sent{};  // the last request, or when it began to connect
    // When the server had last heard of it: no timeout may fire before its limit from there.
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
  std::deque<std::size_t> next_;      // whose turn it is to send
  std::deque<std::size_t> unopened_;  // to be connected
  std::size_t opening_ = 0;           // have not been answered yet
  std::size_t connected_ = 0;
  std::size_t open_ = 0;
  clock::time_point next_request_;
  bool measuring_ = false;
  bool silent_ = false;
  results results_;
};

}  // namespace http_timeouts
