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
///       loop.wait_until(timer.next_due());              // none: no time limit
///       timer.poll();
///     }
///
/// Only poll() and drain() run tasks, on the thread that calls them.
///
/// A child process created by fork() has a copy of the timer that is independent of its parent's: what was pending is
/// pending in both processes, under the same ids, and runs in each process that polls; what one of them schedules,
/// cancels or runs does not affect the other. If the child should not run what its parent has scheduled, it calls
/// stop(), which returns those timers there, and creates a timer of its own. All this requires that no other thread was
/// inside a call of the timer when the process forked, because the locks of such a call are never released in the
/// child. The on_earlier() callback is copied as well; event_fd.hpp documents what applies to an event_fd.
class RONDO_EXPORT polled_timer final : public scheduler {
 public:
  /// Throws std::invalid_argument as documented for options.
  explicit polled_timer(options = {});
  /// As the destructor of scheduler.
  ~polled_timer() override;

  /// Makes one pass: runs at most `limit` of the due tasks (or submits them to the executor), and returns how many.
  /// What tasks make due during the pass is left to the next call, so a call always ends; what the limit leaves over
  /// comes first there. It does not wait for timers. One thread polls at a time; others wait for their turn. Throws
  /// std::logic_error from inside, std::bad_alloc and, with options::propagate_exceptions, what a task throws: nothing
  /// is lost, and tasks that have not run come first in the next call.
  std::size_t poll(std::size_t limit = unlimited);

  /// Calls `f` when next_due() moves earlier, on the thread that caused it and without holding a lock: a sleeping loop
  /// must then read next_due() again. `f` may be called more often than necessary, even from inside poll(); it may call
  /// the scheduler, but not poll(). Replaces the previous `f`, and returns once no call of that one is in progress
  /// (except from inside it). A null `f` is never called. Exceptions that `f` throws are reported to `on_error`, and
  /// the call that caused it still succeeds. While the timer has an event_fd, which owns this callback, on_earlier()
  /// throws std::logic_error and changes nothing.
  void on_earlier(std::function<void()> f);

 private:
  friend class event_fd;
  /// As on_earlier(), but both then refuse further calls until release_on_earlier().
  void reserve_on_earlier(std::function<void()> f);
  void release_on_earlier() noexcept;
  /// Throws std::logic_error if called from inside, as poll() does.
  void refuse_inside() const;
  /// The number of forks between the process that created the timer and this one.
  int forks() const noexcept;

  std::shared_ptr<detail::polled_core> core_;
  explicit polled_timer(std::shared_ptr<detail::polled_core>);
};

}  // namespace rondo
