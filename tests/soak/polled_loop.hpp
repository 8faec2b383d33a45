// An event loop like a user's. It sleeps until the polled_timer is due, or on_earlier reports an earlier deadline.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include <rondo/polled_timer.hpp>

namespace soak {

class polled_loop {
 public:
  explicit polled_loop(rondo::polled_timer& t) : timer_(t) {
    listen();
    thread_ = std::thread([this] { loop(); });
  }
  ~polled_loop() {
    {
      const std::lock_guard hold(mutex_);
      over_ = true;
    }
    wake();
    thread_.join();
    timer_.on_earlier({});
  }
  polled_loop(const polled_loop&) = delete;
  polled_loop& operator=(const polled_loop&) = delete;

  /// Sets the callback. May be called again, which replaces the callback by an equal one.
  void listen() {
    timer_.on_earlier([this] { wake(); });
  }

 private:
  void wake() {
    const std::lock_guard hold(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

  void loop() {
    std::unique_lock hold(mutex_);
    while (!over_) {
      woken_ = false;
      hold.unlock();
      timer_.poll(100);
      const auto due = timer_.next_due();
      hold.lock();
      const auto is_woken = [this] { return woken_; };
      if (due)
        changed_.wait_until(hold, *due, is_woken);
      else
        changed_.wait(hold, is_woken);
    }
  }

  rondo::polled_timer& timer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace soak
