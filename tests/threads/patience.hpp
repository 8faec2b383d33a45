// Shared by the tests on real threads. These wait for events, never for time to pass, so slow machines do not matter.
// `patience` only ends a test that would hang.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/timer.hpp>

#include "adds_up.hpp"

namespace rondo::test {

using namespace std::chrono_literals;

constexpr auto patience = 60s;

/// A count that only grows, and that threads can wait for.
class gate {
 public:
  void open() { add(1); }
  void add(long n) {
    const std::lock_guard hold(mutex_);
    count_ += n;
    changed_.notify_all();
  }

  /// Returns true once it has been opened `n` times, or false if that takes too long.
  bool wait(long n = 1) {
    std::unique_lock hold(mutex_);
    return changed_.wait_until(hold, std::chrono::steady_clock::now() + patience,
                               [&] { return count_ >= n; });
  }

  long count() {
    const std::lock_guard hold(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  long count_ = 0;
};

/// Calls f(i) on a separate thread for each i, all at the same time: no thread ends before all have called f.
template <class F>
void on_threads(std::size_t count, F f) {
  gate called;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i != count; ++i)
    threads.emplace_back([&, i] {
      f(i);
      called.open();
      called.wait(static_cast<long>(count));
    });
  for (std::thread& t : threads) t.join();
}

/// Lets real time pass, to test that something does not happen during that time.
inline void let_pass(std::chrono::steady_clock::duration d) {
  std::mutex mutex;
  std::condition_variable nobody_notifies;
  std::unique_lock hold(mutex);
  nobody_notifies.wait_until(hold, std::chrono::steady_clock::now() + d, [] { return false; });
}

/// Spins for some nanoseconds, to meet another thread at different moments.
inline void spin(unsigned turns) {
  for (std::atomic<unsigned> left{turns}; left.load(std::memory_order_relaxed) != 0;)
    left.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace rondo::test
