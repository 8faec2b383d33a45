// A driver thread: its sleep and its loop.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>

#include <rondo/time.hpp>

#include "scheduler/core.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// Usage: the driver reads the earliest deadline, and calls wait_until() with it. A thread that makes something due earlier
/// calls ring() afterwards. If that happens after the driver has read the deadline, the wait ends at once, so no ring is
/// lost.
class alarm {
 public:
  void ring() noexcept {
    const std::lock_guard hold(mutex_);
    rung_ = true;
    if (asleep_) rung_or_due_.notify_one();
  }

  /// Sleeps until `t` or ring(), whichever is earlier; without `t`, until ring(). Returns at once if ring() was called since the
  /// last call, or if it is not before `t`. Says why it returns.
  woken wait_until(std::optional<time_point> t, time_point now) {
    std::unique_lock hold(mutex_);
    asleep_ = !t || now < *t;
    bool has_slept = false;
    for (; asleep_ && !rung_; has_slept = true) {
      if (!t)
        rung_or_due_.wait(hold);
      else if (rung_or_due_.wait_until(hold, *t) == std::cv_status::timeout)
        asleep_ = false;
      ++wakeups_;
    }
    asleep_ = false;
    const woken why = rung_ ? woken::rung : woken::due;
    rung_ = false;
    return has_slept ? why : woken::awake;
  }

  std::uint64_t wakeups() const noexcept {
    const std::lock_guard hold(mutex_);
    return wakeups_;
  }

 private:
  mutable sync::waiting_mutex mutex_;
  sync::condition rung_or_due_;
  bool rung_ = false;
  bool asleep_ = false;
  std::uint64_t wakeups_ = 0;
};

// Not all implementations of condition variables can wait until the end of the clock.
inline constexpr duration longest_wait = std::chrono::hours(24 * 365);
inline constexpr duration failed_pass_retry = std::chrono::milliseconds(10);

/// Until the core is stopped, runs what is due and sleeps on `bell` until more is due. A thread that makes something
/// due earlier or stops the core rings the bell afterwards.
inline void drive(core& core, alarm& bell) noexcept {
  woken why = woken::awake;
  while (!core.stopped()) {
    try {
      core.run_pass(time_point::max(), unlimited, why);
      const std::optional<time_point> due = core.next_due();
      if (core.stopped()) break;
      const time_point reading = core.now();
      why = bell.wait_until(due ? std::optional(std::min(*due, reading + longest_wait)) : std::nullopt,
                            reading);
    } catch (const std::bad_alloc&) {
      // Nothing is lost: what is due runs when there is memory again.
      why = bell.wait_until(core.now() + failed_pass_retry, core.now());
    }
  }
}

}  // namespace rondo::detail
