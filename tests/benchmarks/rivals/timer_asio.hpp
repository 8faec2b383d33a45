// Boost.Asio's steady_timer, with an io_context that runs on its own thread.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <thread>

template <class OnFire>
class asio_timers {
 public:
  asio_timers(std::size_t timers, OnFire on_fire) : on_fire_(on_fire) {
    for (std::size_t i = 0; i != timers; ++i) timers_.emplace_back(context_);
    driver_ = std::thread([this] { context_.run(); });
  }
  ~asio_timers() {
    context_.stop();
    driver_.join();
  }
  asio_timers(const asio_timers&) = delete;
  asio_timers& operator=(const asio_timers&) = delete;

  void set(std::size_t which, std::chrono::milliseconds delay) {
    timers_[which].expires_after(delay);
    timers_[which].async_wait([this, which](const boost::system::error_code& cancelled) {
      if (!cancelled) on_fire_(which);
    });
  }
  void cancel(std::size_t which) { timers_[which].cancel(); }
  /// Setting a timer that is pending cancels its wait first.
  void reschedule(std::size_t which, std::chrono::milliseconds delay) { set(which, delay); }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(context_);
  std::deque<boost::asio::steady_timer> timers_;
  OnFire on_fire_;
  std::thread driver_;
};
