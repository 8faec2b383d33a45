// Counts the system calls that event_fd makes in this program, and can make them fail or take long.
#pragma once

#include <rondo/scheduler.hpp>

namespace rondo::test {

/// The number of calls of timerfd_settime() since the last call of this function.
long settime_calls() noexcept;

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
