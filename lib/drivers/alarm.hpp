// The driver thread's sleep.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include <rondo/time.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// Usage: the driver calls reset(), reads the earliest deadline, and calls wait_until() with it. A thread that makes
/// something due earlier calls ring() afterwards. If that happens after the driver has read the deadline, the wait ends
/// at once, so no ring is lost.
class alarm {
 public:
  void reset() noexcept {
    const std::lock_guard hold(mutex_);
    rung_ = false;
  }

  void ring() noexcept {
    const std::lock_guard hold(mutex_);
    rung_ = true;
    if (asleep_) rung_or_due_.notify_one();
  }

  /// Sleeps until `t` or ring(), whichever is earlier; without `t`, until ring().
  void wait_until(std::optional<time_point> t, time_point now) {
    std::unique_lock hold(mutex_);
    if (rung_ || (t && *t <= now)) return;
    asleep_ = true;
    do {
      bool in_time = true;
      if (t)
        in_time = rung_or_due_.wait_until(hold, *t) == std::cv_status::no_timeout;
      else
        rung_or_due_.wait(hold);
      ++wakeups_;
      if (!in_time) break;
    } while (!rung_);
    asleep_ = false;
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

}  // namespace rondo::detail
