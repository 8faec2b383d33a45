// Counts the system calls that event_fd makes in this program, and can make them fail or take long.
#pragma once

#include <chrono>

#include <rondo/scheduler.hpp>

namespace rondo::test {

/// The number of calls of timerfd_settime() since the last call of this function.
long settime_calls() noexcept;

/// The time that the last of these calls has set.
time_point last_set_time() noexcept;

/// During its lifetime, steady_clock is ahead by that much. For a single thread.
class clock_ahead {
 public:
  explicit clock_ahead(std::chrono::seconds by) noexcept;
  ~clock_ahead();
  clock_ahead(const clock_ahead&) = delete;
  clock_ahead& operator=(const clock_ahead&) = delete;
};

/// The number of times that ioctl() made a timerfd readable, likewise.
long raise_calls() noexcept;

/// During its lifetime the kernel appears to refuse that ioctl().
class raising_refused {
 public:
  raising_refused() noexcept;
  ~raising_refused();
  raising_refused(const raising_refused&) = delete;
  raising_refused& operator=(const raising_refused&) = delete;
};

/// During its lifetime, clearing a descriptor waits until that time. For a single thread.
class clearing_slow {
 public:
  explicit clearing_slow(time_point until) noexcept;
  ~clearing_slow();
  clearing_slow(const clearing_slow&) = delete;
  clearing_slow& operator=(const clearing_slow&) = delete;
};

}  // namespace rondo::test
