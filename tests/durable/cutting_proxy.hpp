// Sits between a client and a server, to cut their connection at a chosen moment.
#pragma once

#include <atomic>
#include <thread>

#include "threads/patience.hpp"

namespace durable_test {

/// Forwards what both sides send, for any number of connections on 127.0.0.1.
class cutting_proxy {
 public:
  explicit cutting_proxy(int server_port);
  ~cutting_proxy();
  cutting_proxy(const cutting_proxy&) = delete;
  cutting_proxy& operator=(const cutting_proxy&) = delete;

  int port() const noexcept { return port_; }

  enum class cut {
    nowhere,
    answer,   // the server's next message is lost, and the connection with it: the request has been done
    request,  // the client's next message is lost, and the connection with it: nothing has been done
  };
  /// Cuts once; then the next cut is `nowhere` again.
  void cut_next(cut where) noexcept { next_cut_ = where; }
  bool has_cut() const noexcept { return next_cut_ == cut::nowhere; }

  enum class passes { all, handshakes, nothing };
  /// With `handshakes` or `nothing` it is as a pooler that is paused: it cuts each earlier connection at its next
  /// message, takes new ones, and passes on so much of them.
  void let_pass(passes what) noexcept { passes_ = what; }
  /// Counts the messages of clients that have been withheld.
  rondo::test::gate& withheld() noexcept { return withheld_; }

 private:
  class pair;

  void serve();

  int server_port_;
  int listener_;
  int port_;
  int end_[2] = {-1, -1};
  std::atomic<cut> next_cut_ = cut::nowhere;
  std::atomic<passes> passes_ = passes::all;
  rondo::test::gate withheld_;
  std::thread thread_;
};

/// A port of 127.0.0.1 that takes connections, but never answers.
class silent_port {
 public:
  silent_port();
  ~silent_port();
  silent_port(const silent_port&) = delete;
  silent_port& operator=(const silent_port&) = delete;

  int port() const noexcept { return port_; }

 private:
  int listener_;
  int port_;
};

}  // namespace durable_test
