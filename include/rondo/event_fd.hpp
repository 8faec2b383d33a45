// A file descriptor that tells an event loop when a polled_timer has work. Linux.
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

/// A descriptor of Linux's that becomes readable at a given time, and stays so until it is set anew.
class alarm_descriptor {
 public:
  alarm_descriptor() : number_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (number_ < 0) refuse_system(errno, "rondo: timerfd_create()");
  }
  ~alarm_descriptor() { ::close(number_); }
  alarm_descriptor(const alarm_descriptor&) = delete;
  alarm_descriptor& operator=(const alarm_descriptor&) = delete;

  int number() const noexcept { return number_; }

  /// Readable from `t` on, at once if that is past; without one, never.
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

/// A file descriptor that is readable when something of a polled_timer is due, for a loop that sleeps in epoll,
/// poll or select, or in a library that does:
///
///     rondo::polled_timer timer;
///     rondo::event_fd due(timer);
///     …  // watch due.native_handle() for reading, and when it is readable:
///     due.run_due();
///
/// - It is never read: run_due() does all that is needed. Level-triggered epoll reports it until there is
///   nothing due; edge-triggered once for each time that something becomes due, and anew if run_due() returns
///   while something is.
/// - It is armed anew when run_due() has dealt with what was due, and otherwise only when the earliest timer
///   changes: a later one costs no system call, nor does one that is cancelled or postponed (it may then wake
///   the loop once at the old time), nor one that is due while it is readable.
/// - Timers may be scheduled from any thread: it owns the timer's on_earlier(), and replaces what was set there
///   before. So a timer has one event_fd at most, and must outlive it. Until that is destroyed, making a second one
///   and calling on_earlier() throw std::logic_error and change nothing.
/// - A child made by fork() shares the descriptor: it should make a timer and an event_fd of its own.
class event_fd {
 public:
  /// Throws std::system_error if there is no descriptor left, std::logic_error if the timer has an event_fd,
  /// and std::bad_alloc.
  explicit event_fd(polled_timer& timer) : timer_(timer), watch_(*this) { note_earlier(); }
  /// Gives on_earlier() back: nobody is told any more, and another event_fd may be made. Not from inside run_due().
  ~event_fd() = default;
  event_fd(const event_fd&) = delete;
  event_fd& operator=(const event_fd&) = delete;

  /// To be watched for reading; closed by the destructor.
  int native_handle() const noexcept { return readable_when_due_.number(); }

  /// One pass, `timer.poll(limit)`: runs what is due, at most `limit` of it, and returns how many that were.
  /// While more is due it stays readable. Throws what poll() does: call it again, as level-triggered epoll sees
  /// to by itself.
  std::size_t run_due(std::size_t limit = unlimited) {
    const std::size_t runs = timer_.poll(limit);
    const std::lock_guard hold(mutex_);
    arm(readable() ? renewal::always : renewal::if_changed);
    return runs;
  }

 private:
  enum class renewal { if_changed, always };

  /// Told, on any thread, after next_due() has moved earlier. While it is readable run_due() is to come, and
  /// looks at that itself.
  void note_earlier() {
    const std::lock_guard hold(mutex_);
    if (!readable()) arm(renewal::if_changed);
  }

  bool readable() const noexcept { return armed_ && *armed_ <= scheduler::clock::now(); }

  /// Arms it for what is the earliest now. Under the lock, so that of several looks the last one counts.
  void arm(renewal how) {
    const std::optional<time_point> earliest = timer_.next_due();
    if (how == renewal::if_changed && earliest == armed_) return;
    readable_when_due_.set(earliest);
    armed_ = earliest;
  }

  /// While it lives the timer tells. (Also the constructor may not come to its end.)
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
  std::optional<time_point> armed_;  // none: it is not
  detail::alarm_descriptor readable_when_due_;
  watch watch_;
};

}  // namespace rondo
