// Counts the system calls of event_fd in this program.
#pragma once

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

}  // namespace rondo::test
