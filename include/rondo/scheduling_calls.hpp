// The calls that schedule timers.
#pragma once

#include <memory>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/detail/new_timer.hpp>
#include <rondo/executor.hpp>
#include <rondo/export.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

namespace detail {
struct core_access;
}

/// The calls that schedule timers: a scheduler and a timer_scope have them. `work` is a callable or a task. The options in
/// `with` are the executor, the name and the slack of the timer: `{.run_on = pool, .name = "report"}`, or
/// `rondo::on(pool)`. Copying or moving `work` must not destroy the scheduler or the scope.
class RONDO_EXPORT scheduling_calls {
 public:
  scheduling_calls(const scheduling_calls&) = delete;
  scheduling_calls& operator=(const scheduling_calls&) = delete;

  ///@{
  /// Runs `work` once, `delay` from now (if zero or negative, in the driver's next pass). Throws std::invalid_argument if
  /// the task is empty, stopped_error once stop() or drain(), or close() of the scope, has begun, capacity_error at
  /// options::max_pending, std::bad_alloc, and what copying or moving the callable throws. Strong guarantee: if it throws,
  /// nothing is scheduled.
  template <detail::schedulable F = task>
  timer_id schedule_after(any_duration delay, F&& work,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, group_.get(), detail::pass_on<F>(work), made_at).schedule_after(delay);
  }
  template <detail::schedulable F = task>
  timer_id schedule_after(any_duration delay, F&& work, timer_options with,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, group_.get(), detail::pass_on<F>(work), made_at)
        .with(std::move(with))
        .schedule_after(delay);
  }
  ///@}

  ///@{
  /// Runs `work` once, at `due`. Throws as schedule_after() does.
  template <detail::schedulable F = task>
  timer_id schedule_at(any_time_point due, F&& work,
                       detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, group_.get(), detail::pass_on<F>(work), made_at).schedule_at(due);
  }
  template <detail::schedulable F = task>
  timer_id schedule_at(any_time_point due, F&& work, timer_options with,
                       detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, group_.get(), detail::pass_on<F>(work), made_at)
        .with(std::move(with))
        .schedule_at(due);
  }
  ///@}

  ///@{
  /// Runs `work` at now + period, now + 2 * period, … until it is cancelled, as schedule(every(period), work) does.
  /// Throws std::invalid_argument if the period is not positive, and otherwise what schedule_after() throws.
  template <detail::schedulable F = task>
  timer_id schedule_every(any_duration period, F&& work,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return schedule(every(period), std::forward<F>(work), made_at);
  }
  template <detail::schedulable F = task>
  timer_id schedule_every(any_duration period, F&& work, timer_options with,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return schedule(every(period), std::forward<F>(work), std::move(with), made_at);
  }
  ///@}

  ///@{
  /// Runs `work` repeatedly, as `when` specifies; `when` also decides about points that have passed and points that
  /// arrive while a run is in progress. A run that throws does not end the timer. Throws as schedule_after() does.
  template <detail::schedulable F = task>
  timer_id schedule(const recurrence& when, F&& work,
                    detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, group_.get(), detail::pass_on<F>(work), made_at).schedule(when);
  }
  template <detail::schedulable F = task>
  timer_id schedule(const recurrence& when, F&& work, timer_options with,
                    detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, group_.get(), detail::pass_on<F>(work), made_at)
        .with(std::move(with))
        .schedule(when);
  }
  ///@}

 private:
  friend class scheduler;
  friend class timer_scope;
  friend struct detail::core_access;

  scheduling_calls(std::shared_ptr<detail::core> core, std::shared_ptr<detail::timer_group> group) noexcept
      : core_(std::move(core)), group_(std::move(group)) {}
  ~scheduling_calls() = default;

  // Shared with jobs, the driver and calls in progress, which may outlive this object.
  std::shared_ptr<detail::core> core_;
  std::shared_ptr<detail::timer_group> group_;  // of a scope; it keeps the core
};

}  // namespace rondo
