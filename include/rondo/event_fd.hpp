// A file descriptor that is readable when a polled_timer has work. Linux only.
#pragma once

#ifndef __linux__
#error "rondo/event_fd.hpp needs Linux, whose timers are file descriptors"
#endif

#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>

#include <rondo/errors.hpp>
#include <rondo/polled_timer.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {

/// A timerfd: becomes readable at a given time, and stays readable until it is set again or cleared.
class alarm_descriptor {
 public:
  alarm_descriptor() : number_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (number_ < 0) refuse_system(errno, "rondo: timerfd_create()");
  }
  ~alarm_descriptor() { ::close(number_); }
  alarm_descriptor(const alarm_descriptor&) = delete;
  alarm_descriptor& operator=(const alarm_descriptor&) = delete;

  int number() const noexcept { return number_; }

  /// Makes it readable from `t` on: at once if `t` is in the past, never if there is no `t`.
  void set(std::optional<time_point> t) noexcept {
    using namespace std::chrono;
    itimerspec at{};  // zeros: never
    if (t) {
      const duration since_boot = std::max(t->time_since_epoch(), duration(1));
      const seconds whole = duration_cast<seconds>(since_boot);
      at.it_value.tv_sec = static_cast<std::time_t>(whole.count());
      at.it_value.tv_nsec = static_cast<long>(nanoseconds(since_boot - whole).count());
    }
    ::timerfd_settime(number_, TFD_TIMER_ABSTIME, &at, nullptr);
  }

  /// Makes it readable at once, and again at the time that was set; edge-triggered epoll reports it. This costs a
  /// fortieth of setting a time in the past, for which the kernel programs its clock. Returns false if this kernel
  /// cannot do it (before 3.17, or without CONFIG_CHECKPOINT_RESTORE); nothing has changed then.
  bool raise() noexcept {
    const std::uint64_t expirations = 1;
    return ::ioctl(number_, _IOW('T', 0, std::uint64_t), &expirations) == 0;  // TFD_IOC_SET_TICKS
  }

  /// Makes it unreadable until the time that was set, if that is still to come. This costs a third of setting it again.
  void clear() noexcept {
    std::uint64_t expirations = 0;
    [[maybe_unused]] const ssize_t taken = ::read(number_, &expirations, sizeof expirations);
  }

 private:
  const int number_;
};

}  // namespace detail

/// A file descriptor that is readable while a timer of a polled_timer is due, for loops that sleep in epoll, poll or
/// select, or in a library that does:
///
///     rondo::polled_timer timer;
///     rondo::event_fd due(timer);
///     …  // watch due.native_handle() for reading, and when it is readable:
///     due.run_due();
///
/// - Do not read from it: run_due() does everything. Level-triggered epoll reports it until nothing is due.
///   Edge-triggered epoll reports it each time a timer becomes due, and again if run_due() returns or throws while one
///   is due. While the earliest timer is due in more than a year, it becomes readable once a year.
/// - System calls: run_due() sets the descriptor again only after it was readable; otherwise it is set only when a
///   timer becomes the earliest. Scheduling a later timer makes no system call, nor does cancelling or postponing the
///   earliest (which may then wake the loop once, at the old time), nor does a timer that becomes due while the
///   descriptor is readable. When something is due, the descriptor is made readable by an ioctl(), which takes less
///   than a microsecond; arming a timerfd in the past takes twenty to forty. (On a kernel without that call,
///   TFD_IOC_SET_TICKS, it is armed in the past.)
/// - Timers may be scheduled from any thread: the event_fd owns the timer's on_earlier(), and replaces a callback that
///   was set earlier. A timer therefore has at most one event_fd, which must not outlive it. While it has one, creating
///   a second one or calling on_earlier() throws std::logic_error and changes nothing.
/// - A child process created by fork() shares the descriptor with its parent. The child's copy of the event_fd leaves
///   the descriptor alone, even when it is destroyed: its run_due() is poll(), and the descriptor reports nothing about
///   the child's timers. To wait for the timers that the child has a copy of (see polled_timer), destroy the copy and
///   create an event_fd in its place, which has its own descriptor.
class event_fd {
 public:
  /// Throws std::system_error if no descriptor is available, std::logic_error if the timer already has an event_fd, and
  /// std::bad_alloc.
  explicit event_fd(polled_timer& timer) : timer_(timer), forks_(timer.forks()), watch_(*this) {
    note_earlier();
  }
  /// Releases on_earlier(), which is empty afterwards; another event_fd may then be created. Must not be called inside
  /// run_due().
  ~event_fd() = default;
  event_fd(const event_fd&) = delete;
  event_fd& operator=(const event_fd&) = delete;

  /// The descriptor, to be watched for reading. The destructor closes it.
  int native_handle() const noexcept { return readable_when_due_.number(); }

  /// Makes one pass, `timer.poll(limit)`: runs at most `limit` of the due tasks, and returns how many. The descriptor
  /// stays readable while more are due. Throws what poll() throws, including a task's exception with
  /// options::propagate_exceptions. What is left then is still due and is reported, as after a limit.
  std::size_t run_due(std::size_t limit = unlimited) {
    timer_.refuse_inside();
    const renewal after_the_pass{*this};
    return timer_.poll(limit);
  }

 private:
  /// Also if the pass throws, because otherwise edge-triggered epoll would report nothing more.
  struct renewal {
    event_fd& fd;
    ~renewal() { fd.renew(); }
  };

  /// Called on any thread after next_due() has moved earlier. While the descriptor is readable it does nothing:
  /// run_due() follows, and reads next_due().
  void note_earlier() {
    if (is_copy()) return;
    const std::lock_guard hold(mutex_);
    const time_point now = scheduler::clock::now();
    if (raised_ || (armed_ && *armed_ <= now)) return;
    const std::optional<time_point> earliest = timer_.next_due();
    if (!earliest) return;
    if (*earliest <= now)
      raise();
    else if (!armed_ || *earliest < *armed_)
      arm(earliest);
  }

  /// next_due() is read under the lock, here and above, so the latest reading prevails.
  void renew() {
    if (is_copy()) return;
    const std::lock_guard hold(mutex_);
    const std::optional<time_point> earliest = timer_.next_due();
    const time_point now = scheduler::clock::now();
    if (earliest && *earliest <= now) return raise();
    // If the timer it is armed for was cancelled, one unnecessary wake-up is cheaper than arming it after each pass.
    const bool wakes_in_time = armed_ ? *armed_ > now && (!earliest || *armed_ <= *earliest) : !earliest;
    if (!wakes_in_time) return arm(earliest);
    if (!raised_) return;
    readable_when_due_.clear();
    raised_ = false;
    if (armed_ && *armed_ <= scheduler::clock::now())
      raise();  // that time has come since, and clear() may have removed its event
  }

  void raise() {
    if (readable_when_due_.raise())
      raised_ = true;
    else
      arm(time_point::min());
  }

  void arm(std::optional<time_point> t) {
    if (t) t = std::min(*t, scheduler::clock::now() + longest_sleep);  // and then renew() arms it again
    readable_when_due_.set(t);
    armed_ = t;
    raised_ = false;
  }

  /// Whether this is a child's copy, made by fork(), of an event_fd of its parent.
  bool is_copy() const noexcept { return timer_.forks() != forks_; }

  /// Holds the timer's on_earlier(). It is a member, so that it is released even if the constructor throws.
  struct watch {
    polled_timer& timer;
    explicit watch(event_fd& fd) : timer(fd.timer_) {
      timer.reserve_on_earlier([&fd] { fd.note_earlier(); });
    }
    ~watch() { timer.release_on_earlier(); }
    watch(const watch&) = delete;
    watch& operator=(const watch&) = delete;
  };

  // A time_t of 32 bits counts the seconds of 68 years.
  static constexpr duration longest_sleep = std::chrono::hours(24 * 365);

  polled_timer& timer_;
  const int forks_;
  std::mutex mutex_;
  std::optional<time_point> armed_;  // when it becomes readable; none: never
  bool raised_ = false;              // whether it was made readable and not cleared since
  detail::alarm_descriptor readable_when_due_;
  watch watch_;
};

}  // namespace rondo
