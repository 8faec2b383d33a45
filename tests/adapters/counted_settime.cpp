#include "adapters/counted_settime.hpp"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>

namespace {

std::atomic<long> settimes{0}, raises{0};
std::atomic<bool> refused{false};
std::atomic<std::int64_t> last_set{0}, seconds_ahead{0};
std::optional<rondo::time_point> read_not_before;

}  // namespace

// Replaces the function of the C library.
extern "C" int timerfd_settime(int fd, int flags, const itimerspec* at, itimerspec* old) noexcept {
  ++settimes;
  last_set = std::int64_t{at->it_value.tv_sec} * 1'000'000'000 + at->it_value.tv_nsec;
  return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, at, old));
}

// Likewise. (If the caller passed no argument, the kernel ignores the value that is read here.)
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == _IOW('T', 0, std::uint64_t)) {
    ++raises;
    if (refused) {
      errno = ENOTTY;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

// Likewise: steady_clock calls it.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_MONOTONIC) now->tv_sec += static_cast<std::time_t>(seconds_ahead);
  return result;
}

// Likewise.
extern "C" ssize_t read(int fd, void* to, std::size_t size) {
  while (read_not_before && rondo::scheduler::clock::now() <= *read_not_before) {
  }
  return ::syscall(SYS_read, fd, to, size);
}

namespace rondo::test {

long settime_calls() noexcept { return settimes.exchange(0); }
time_point last_set_time() noexcept { return time_point(std::chrono::nanoseconds(last_set)); }
long raise_calls() noexcept { return raises.exchange(0); }

clock_ahead::clock_ahead(std::chrono::seconds by) noexcept { seconds_ahead = by.count(); }
clock_ahead::~clock_ahead() { seconds_ahead = 0; }

raising_refused::raising_refused() noexcept { refused = true; }
raising_refused::~raising_refused() { refused = false; }

clearing_slow::clearing_slow(time_point until) noexcept { read_not_before = until; }
clearing_slow::~clearing_slow() { read_not_before.reset(); }

}  // namespace rondo::test
