// Timers as a program without a timer library has them: a queue under a mutex, and a thread that waits on a condition
// variable.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

/// `Queue` stores the timers and is used under the mutex. It has: bool add(which, due, work), true if the timer is the
/// first; erase(which), which does nothing if the timer has been taken; empty(); first_due() and take_first(), whose
/// precondition is !empty().
template <class Queue, class OnFire>
class timers_by_hand {
 public:
  timers_by_hand(std::size_t timers, OnFire on_fire)
      : queue_(timers), on_fire_(on_fire), driver_([this] { drive(); }) {}
  ~timers_by_hand() {
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    driver_.join();
  }
  timers_by_hand(const timers_by_hand&) = delete;
  timers_by_hand& operator=(const timers_by_hand&) = delete;

  void set(std::size_t which, std::chrono::milliseconds delay) {
    const auto due = std::chrono::steady_clock::now() + delay;
    std::function<void()> work = [this, which] { on_fire_(which); };
    const std::lock_guard hold(mutex_);
    if (queue_.add(which, due, std::move(work))) changed_.notify_one();
  }

  void cancel(std::size_t which) {
    const std::lock_guard hold(mutex_);
    queue_.erase(which);
  }

 private:
  void drive() {
    std::unique_lock hold(mutex_);
    while (!stopping_) {
      if (queue_.empty()) {
        changed_.wait(hold);
      } else if (const auto due = queue_.first_due(); due > std::chrono::steady_clock::now()) {
        changed_.wait_until(hold, due);
      } else {
        const std::function<void()> work = queue_.take_first();
        hold.unlock();
        work();
        hold.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Queue queue_;
  OnFire on_fire_;
  bool stopping_ = false;
  std::thread driver_;
};
