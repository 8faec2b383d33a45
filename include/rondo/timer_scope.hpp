// Timers that end together: the timers of an object, a connection, a request.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/detail/new_timer.hpp>
#include <rondo/executor.hpp>
#include <rondo/export.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

/// Owns the timers scheduled through it: its destructor cancels them and waits for runs in progress. As the last member
/// of an object that its tasks use, a scope guarantees that none of its tasks runs after the object is destroyed.
///
///     class connection {
///       …
///       rondo::timer_scope timers_{scheduler};   // timers_.schedule_after(30s, [this] { close(); });
///     };
///
/// - Threads: all members may be called from any thread and from inside its tasks, which may also destroy it.
/// - The calls return and throw what the scheduler's calls do. For an id that was not scheduled through this scope they
///   return `gone` or false.
/// - It forgets timers that have ended. A timer that stop() returned belongs to the caller of stop(): it may be run by
///   hand, even after the scope is destroyed.
/// - Cost: the scheduler's call plus two short locks to set a timer and one to end it. A timer takes 24 bytes more than without a scope; they are used again
///   when it has ended, and kept until the scope is destroyed.
/// - It may outlive its scheduler. It treats the scheduler's destruction as a stop().
class RONDO_EXPORT timer_scope {
 public:
  /// Creates a scope without timers. Throws std::bad_alloc.
  explicit timer_scope(scheduler& s);
  /// Calls close(). Tasks that may run meanwhile must use a reference to the scope: see ~scheduler().
  ~timer_scope();
  timer_scope(const timer_scope&) = delete;
  timer_scope& operator=(const timer_scope&) = delete;

  ///@{
  /// As the scheduler's call of the same name. Throws stopped_error once close() or the destructor has begun.
  timer_id schedule_after(any_duration delay, task work);
  timer_id schedule_after(any_duration delay, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule_after(any_duration delay, F&& work,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at).schedule_after(delay);
  }
  template <detail::new_callable F>
  timer_id schedule_after(any_duration delay, F&& work, timer_options with,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at)
        .with(std::move(with))
        .schedule_after(delay);
  }
  timer_id schedule_at(any_time_point due, task work);
  timer_id schedule_at(any_time_point due, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule_at(any_time_point due, F&& work,
                       detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at).schedule_at(due);
  }
  template <detail::new_callable F>
  timer_id schedule_at(any_time_point due, F&& work, timer_options with,
                       detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at)
        .with(std::move(with))
        .schedule_at(due);
  }
  timer_id schedule_every(any_duration period, task work);
  timer_id schedule_every(any_duration period, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule_every(any_duration period, F&& work,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at).schedule(every(period));
  }
  template <detail::new_callable F>
  timer_id schedule_every(any_duration period, F&& work, timer_options with,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at)
        .with(std::move(with))
        .schedule(every(period));
  }
  timer_id schedule(const recurrence& when, task work);
  timer_id schedule(const recurrence& when, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule(const recurrence& when, F&& work,
                    detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at).schedule(when);
  }
  template <detail::new_callable F>
  timer_id schedule(const recurrence& when, F&& work, timer_options with,
                    detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = group_;
    return detail::new_timer(core_, kept.get(), std::forward<F>(work), made_at)
        .with(std::move(with))
        .schedule(when);
  }
  ///@}

  ///@{
  /// As the scheduler's call of the same name. Returns `gone` or false for an id that was not scheduled through this
  /// scope.
  cancel_result cancel(timer_id id);
  cancel_result cancel_and_wait(timer_id id);
  bool reschedule_after(timer_id id, any_duration delay);
  bool reschedule_at(timer_id id, any_time_point due);
  bool pending(timer_id id) const;
  ///@}

  /// The number of its pending timers. O(n): visits each timer.
  std::size_t pending() const;

  /// Cancels all its timers; runs in progress continue, and are asked to stop as cancel() does. A timer that another
  /// thread schedules during the call may remain.
  void cancel_all();

  /// Cancels all its timers, asks the runs in progress to stop as cancel() does, and returns when none of their runs is in
  /// progress and their callables are destroyed; it does not wait for those on its own stack. Once close() has begun,
  /// scheduling through the scope throws stopped_error, so a task in progress cannot leave a timer behind.
  void close();

 private:
  // Its timers, whose tasks may destroy this object: each call keeps the group, which keeps the core.
  std::shared_ptr<detail::timer_group> group_;
  std::shared_ptr<detail::core> core_;
};

}  // namespace rondo
