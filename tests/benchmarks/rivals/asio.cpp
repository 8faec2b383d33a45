// The epoll() reactor wakes timers with a timerfd, which runs in real time; the select() reactor reads the clock.
#define BOOST_ASIO_DISABLE_EPOLL
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>

#include "rivals.hpp"

namespace {

/// A clock for Asio that is advanced by hand.
struct manual_clock {
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<manual_clock>;
  static time_point now() noexcept { return time; }
  inline static time_point time{};
};

class asio_timers {
 public:
  asio_timers(std::uint32_t n, firings& fired) : fired_(fired) {
    manual_clock::time = {};
    timers_.reserve(n);
    for (std::uint32_t i = 0; i != n; ++i) timers_.emplace_back(io_);
  }

  void set(std::uint32_t number, std::int64_t due) {
    timers_[number].expires_at(manual_clock::time_point(manual_clock::duration(due)));
    timers_[number].async_wait([this, number](const boost::system::error_code& cancelled) {
      if (!cancelled) fired_(*this, number);
    });
  }
  void cancel(std::uint32_t number) {
    timers_[number].cancel();
    // Handlers of cancelled waits are called as well, which is part of the cost of cancelling.
    if (++cancelled_ % 1000 == 0) poll();
  }
  void advance(std::int64_t to) {
    manual_clock::time = manual_clock::time_point(manual_clock::duration(to));
    poll();
  }

 private:
  void poll() {
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_{1};
  std::vector<boost::asio::basic_waitable_timer<manual_clock>> timers_;
  std::uint64_t cancelled_ = 0;
  firings& fired_;
};

}  // namespace

const rival asio{"Boost.Asio", run_with<asio_timers>};
