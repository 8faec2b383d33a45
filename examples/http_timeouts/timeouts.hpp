// The timeouts of all connections of a server, in two variants that a server can choose from: one Rondo scheduler for
// all of them, or one of Asio's steady_timers for each.
//
// A connection calls `set(due, owner, which)` and `clear()`. When a timeout is due, it calls `owner.expired(which,
// due)`.
#pragma once

#include <unistd.h>

#include <utility>  // before Asio, because Boost 1.74 does not include it

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <rondo/event_fd.hpp>
#include <rondo/polled_timer.hpp>
#include <rondo/trace.hpp>

#include "options.hpp"

namespace http_timeouts {

using clock = std::chrono::steady_clock;

// One scheduler, driven by the io_context. Its tasks run on the thread that runs the connections, so a timeout that
// has been cleared does not fire: it cannot already be queued. That is why tasks may keep a plain pointer to the
// connection. Declare it before the io_context, so that the handlers, which own the connections, are destroyed first.
class rondo_timeouts {
 public:
  // `trace` may be null.
  explicit rondo_timeouts(std::shared_ptr<rondo::trace> trace)
      : timer_(rondo::options{.traced_by = std::move(trace)}) {}

  // From now on `io` runs due timers, and does not run out of work until stop().
  void drive(boost::asio::io_context& io) {
    // The stream closes its descriptor, so it gets a copy.
    const auto readable = std::make_shared<descriptor>(io, ::dup(due_.native_handle()));
    readable_ = readable;
    watch(readable);
  }
  void stop() {
    if (const auto readable = readable_.lock()) readable->close();
  }

  class timeout {
   public:
    explicit timeout(rondo_timeouts& all) noexcept : timer_(all.timer_) {}
    ~timeout() { clear(); }
    timeout(const timeout&) = delete;
    timeout& operator=(const timeout&) = delete;

    template <class Connection>
    void set(clock::time_point due, Connection& owner, phase which) {
      id_ = timer_.schedule_at(due, [&owner, which, due] { owner.expired(which, due); });
    }
    void clear() { timer_.cancel(id_); }

   private:
    rondo::polled_timer& timer_;
    rondo::timer_id id_;
  };

 private:
  using descriptor = boost::asio::posix::stream_descriptor;

  // The most at a time, so that requests get their turn when very many timeouts are due at once.
  static constexpr std::size_t at_once = 256;

  void watch(const std::shared_ptr<descriptor>& readable) {
    readable->async_wait(descriptor::wait_read, [this, readable](boost::system::error_code stopped) {
      if (stopped) return;
      due_.run_due(at_once);
      watch(readable);
    });
  }

  rondo::polled_timer timer_;
  rondo::event_fd due_{timer_};
  std::weak_ptr<descriptor> readable_;  // its handler owns it
};

// A timer for each timeout. A handler that is queued when its timer is cleared is called anyway. So it must keep the
// connection alive, and the connection must see from `due` that the call is obsolete.
class asio_timeouts {
 public:
  void drive(boost::asio::io_context& io) noexcept { io_ = &io; }
  void stop() noexcept {}

  class timeout {
   public:
    explicit timeout(asio_timeouts& all) : timer_(*all.io_) {}

    template <class Connection>
    void set(clock::time_point due, Connection& owner, phase which) {
      timer_.expires_at(due);
      timer_.async_wait([kept = owner.shared_from_this(), which, due](boost::system::error_code cleared) {
        if (!cleared) kept->expired(which, due);
      });
    }
    void clear() { timer_.cancel(); }

   private:
    boost::asio::steady_timer timer_;
  };

 private:
  boost::asio::io_context* io_ = nullptr;
};

}  // namespace http_timeouts
