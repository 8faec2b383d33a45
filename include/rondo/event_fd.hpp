// A file descriptor that is readable when a polled_timer has work. Linux.
#pragma once

#ifndef __linux__
#error "rondo/event_fd.hpp needs Linux, whose timers are file descriptors"
#endif

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <optional>

#include <rondo/errors.hpp>
#include <rondo/polled_timer.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {

/// A timerfd: becomes readable at a given time, and stays readable until it is set again.
class alarm_descriptor {
 public:
  alarm_descriptor() : number_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (number_ < 0) refuse_system(errno, "rondo: timerfd_create()");
  }
  ~alarm_descriptor() { ::close(number_); }
  alarm_descriptor(const alarm_descriptor&) = delete;
  alarm_descriptor& operator=(const alarm_descriptor&) = delete;

  int number() const noexcept { return number_; }

  /// Readable from `t` on, so at once if `t` is past; never, if there is none.
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
/// - Do not read from it: run_due() does everything. Level-triggered epoll reports it until nothing is due;
///   edge-triggered epoll reports it each time that a timer becomes due, and again if run_due() returns while one is.
/// - run_due() re-arms it after it has found it readable; otherwise it is re-armed only when the earliest timer
///   changes. A later timer costs no system call, nor does cancelling or postponing the earliest (which may then
///   wake the loop once, at the old time), nor a timer that becomes due while it is readable.
/// - Timers may be scheduled from any thread: it owns the timer's on_earlier(), and replaces a callback set before.
///   So a timer has at most one event_fd, which it must outlive. While it has one, making a second one and calling
///   on_earlier() throw std::logic_error and change nothing.
/// - A child made by fork() shares the descriptor: it should make its own timer and event_fd.
class event_fd {
 public:
  /// Throws std::system_error if no descriptor is left, std::logic_error if the timer has an event_fd, and
  /// std::bad_alloc.
  explicit event_fd(polled_timer& timer) : timer_(timer), watch_(*this) { note_earlier(); }
  /// Releases on_earlier(), which is then empty, and another event_fd may be made. Not allowed inside run_due().
  ~event_fd() = default;
  event_fd(const event_fd&) = delete;
  event_fd& operator=(const event_fd&) = delete;

  /// The descriptor, to be watched for reading; the destructor closes it.
  int native_handle() const noexcept { return readable_when_due_.number(); }

  /// One pass, `timer.poll(limit)`: runs at most `limit` of the tasks that are due, and returns how many. The
  /// descriptor stays readable while more are due. Throws what poll() throws: then call it again (level-triggered
  /// epoll reports the descriptor again by itself).
  std::size_t run_due(std::size_t limit = unlimited) {
    const std::size_t runs = timer_.poll(limit);
    const std::lock_guard hold(mutex_);
    arm(readable() ? renewal::always : renewal::if_changed);
    return runs;
  }

 private:
  enum class renewal { if_changed, always };

  /// Called on any thread after next_due() has moved earlier. While the descriptor is readable it does nothing:
  /// run_due() follows, and reads next_due().
  void note_earlier() {
    const std::lock_guard hold(mutex_);
    if (!readable()) arm(renewal::if_changed);
  }

  bool readable() const noexcept { return armed_ && *armed_ <= scheduler::clock::now(); }

  /// Arms the descriptor for the earliest timer. next_due() is read under the lock, so the latest reading is the one
  /// that stays.
  void arm(renewal how) {
    const std::optional<time_point> earliest = timer_.next_due();
    if (how == renewal::if_changed && earliest == armed_) return;
    readable_when_due_.set(earliest);
    armed_ = earliest;
  }

  /// Holds the timer's on_earlier(). A member, so that it is released also if the constructor throws.
  struct watch {
    polled_timer& timer;
    explicit watch(event_fd& fd) : timer(fd.timer_) {
      timer.reserve_on_earlier([&fd] { fd.note_earlier(); });
    }
    ~watch() { timer.release_on_earlier(); }
    watch(const watch&) = delete;
    watch& operator=(const watch&) = delete;
  };

  polled_timer& timer_;
  std::mutex mutex_;
  std::optional<time_point> armed_;  // none: it is not armed
  detail::alarm_descriptor readable_when_due_;
  watch watch_;
};

}  // namespace rondo
