// A place where threads wait for conditions that other threads make true.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include <rondo/time.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// `limit` from now, in real time: the end of a wait, whatever the scheduler's clock says.
inline time_point real_time_after(duration limit) noexcept {
  return saturating_add(std::chrono::steady_clock::now(), limit);
}

/// Each thread waits for its own condition. A thread that makes a condition true calls wake() afterwards.
///
/// Memory order: wake() and wait_until() both modify `waiting_`. If wake() is first, it releases what was done before, and
/// wait_until() acquires that; otherwise wake() finds a waiting thread, and the lock orders the rest.
class wait_point {
 public:
  /// Waits until done() returns true. done() is called under the lock, so it must not call wake().
  template <class Done>
  void wait_until(Done&& done) {
    wait_until(time_point::max(), done);
  }

  /// As above, but waits no longer than until `end`, in real time. Returns the last result of done().
  template <class Done>
  bool wait_until(time_point end, Done&& done) {
    if (done()) return true;
    waiting_.fetch_add(1, std::memory_order_acquire);
    bool is_done = false;
    {
      std::unique_lock hold(mutex_);
      for (bool in_time = true; !(is_done = done()) && in_time;) {
        if (end == time_point::max())  // not all implementations can wait until then
          woken_.wait(hold);
        else
          in_time = woken_.wait_until(hold, end) == std::cv_status::no_timeout;
      }
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return is_done;
  }

  /// As above, for what may become true without a wake(). So the thread looks by itself, too: 1 ms after `now`, 2 ms later,
  /// 4 ms later, and so on.
  template <class Done>
  bool look_until(time_point now, time_point end, Done&& done) {
    for (duration pause = first_pause;; pause *= 2) {
      now = std::min(end, saturating_add(now, pause));
      if (wait_until(now, done)) return true;
      if (now == end) return false;
    }
  }

  void wake() noexcept {
    if (waiting_.fetch_add(0, std::memory_order_release) == 0) return;
    const std::lock_guard hold(mutex_);
    woken_.notify_all();
  }

 private:
  static constexpr duration first_pause = std::chrono::milliseconds(1);

  sync::atomic<std::size_t> waiting_{0};  // threads in wait_until()
  sync::waiting_mutex mutex_;
  sync::condition woken_;
};

}  // namespace rondo::detail
