// A scheduler for your own event loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {
class polled_core;
}

/// A scheduler in real time that has no thread: your loop calls poll().
///
///     rondo::polled_timer timer;
///     timer.on_earlier([&] { loop.wake(); });           // only if other threads schedule
///     for (;;) {
///       loop.wait_until(timer.next_due());              // none: for ever
///       timer.poll();
///     }
///
/// Only poll() and drain() run tasks, on the thread that calls them.
///
/// A child made by fork() has a copy of it, which goes on by itself: what was pending is pending in both processes, by
/// the same ids, and runs in each of them that polls; what one of them schedules, cancels or runs is nothing to the other.
/// A child that is not to run what its parent has begun calls stop(), which hands that back there, and makes a timer of
/// its own. The condition is that as the process forked no other thread was inside a call of the timer: the locks of
/// such a call are never free in the child. on_earlier() is copied as well; event_fd.hpp says what holds of an event_fd.
class RONDO_EXPORT polled_timer final : public scheduler {
 public:
  /// Throws std::invalid_argument as options says.
  explicit polled_timer(options = {});
  /// As that of scheduler.
  ~polled_timer() override;

  /// One pass: runs at most `limit` of the tasks that are due (or hands them to the executor), and returns how
  /// many. What tasks make due meanwhile is left to the next call, so a call always ends; what the limit left over
  /// comes first there. Does not wait for timers. One thread polls at a time: others wait for their turn. From
  /// inside: std::logic_error. Throws std::bad_alloc and, with options::propagate_exceptions, what a task throws: nothing
  /// is lost, and what was not run comes first in the next call.
  std::size_t poll(std::size_t limit = unlimited);

  /// Calls `f` when next_due() moves earlier, on the thread that caused it and with no lock held: a sleeping loop
  /// must then read next_due() again. `f` may be called more often than necessary, also from inside poll(); it may
  /// call the scheduler, but not poll(). Replaces the previous `f`, and returns once no call of that is in progress
  /// (except from inside it). A null `f` is never called. What `f` throws is reported to `on_error`, and the call
  /// that caused it still succeeds. While the timer has an event_fd, which owns this callback: std::logic_error,
  /// and nothing changes.
  void on_earlier(std::function<void()> f);

 private:
  friend class event_fd;
  /// As on_earlier(), but both refuse further calls until release_on_earlier().
  void reserve_on_earlier(std::function<void()> f);
  void release_on_earlier() noexcept;
  /// std::logic_error, as poll() says, from inside.
  void refuse_inside() const;
  /// How many times this process and those before it have forked since the timer was made, down to this one.
  int forks() const noexcept;

  std::shared_ptr<detail::polled_core> core_;
  explicit polled_timer(std::shared_ptr<detail::polled_core>);
};

}  // namespace rondo
