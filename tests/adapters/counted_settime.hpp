// Counts the system calls of event_fd in this program, and has them fail or take long.
#pragma once

#include <rondo/scheduler.hpp>

namespace rondo::test {

/// How often timerfd_settime() was called since the last call of this.
long settime_calls() noexcept;

/// How often a timerfd was made readable by ioctl(), likewise.
long raise_calls() noexcept;

/// During its lifetime the kernel seems to refuse that.
class raising_refused {
 public:
  raising_refused() noexcept;
  ~raising_refused();
  raising_refused(const raising_refused&) = delete;
  raising_refused& operator=(const raising_refused&) = delete;
};

/// During its lifetime descriptors are cleared after that time, by a single thread.
class clearing_slow {
 public:
  explicit clearing_slow(time_point until) noexcept;
  ~clearing_slow();
  clearing_slow(const clearing_slow&) = delete;
  clearing_slow& operator=(const clearing_slow&) = delete;
};

}  // namespace rondo::test
