// Threads that wait until others have done something.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include <rondo/time.hpp>

namespace rondo::detail {

/// Where threads wait, each for a condition of its own. What makes a condition true is followed by wake(), which costs a
/// look at one atomic while nobody waits.
template <class Sync>
class wait_point {
 public:
  /// Waits until done(), for ever if need be. done() is called inside a lock, so it must not call wake().
  template <class Done>
  void wait_until(Done&& done) {
    wait_until(time_point::max(), done);
  }

  /// The same, until `end` of the real time at most; returns what done() says last.
  template <class Done>
  bool wait_until(time_point end, Done&& done) {
    if (done()) return true;
    // Whoever makes a condition true and then sees nobody waiting did so before this line, and done() sees it.
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    bool is_done = false;
    {
      std::unique_lock hold(mutex_);
      for (bool in_time = true; !(is_done = done()) && in_time;) {
        if (end == time_point::max())  // of which conditions are better not asked
          woken_.wait(hold);
        else
          in_time = woken_.wait_until(hold, end) == std::cv_status::no_timeout;
      }
    }
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
    return is_done;
  }

  void wake() noexcept {
    if (waiting_.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard hold(mutex_);
    woken_.notify_all();
  }

 private:
  typename Sync::template atomic<std::size_t> waiting_{0};  // threads in wait_until()
  typename Sync::waiting_mutex mutex_;
  typename Sync::condition woken_;
};

}  // namespace rondo::detail
