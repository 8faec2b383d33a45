#include "adapters/counted_settime.hpp"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<long> calls{0};

}  // namespace

// In place of the C library's.
extern "C" int timerfd_settime(int fd, int flags, const itimerspec* at, itimerspec* old) noexcept {
  ++calls;
  return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, at, old));
}

namespace rondo::test {

long settime_calls() noexcept { return calls.exchange(0); }

}  // namespace rondo::test
