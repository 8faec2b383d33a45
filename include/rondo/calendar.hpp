// Deadlines of the wall clock, which follow its steps, and recurrences of the calendar: daily, on days of the week, cron.
// A library of its own, rondo-calendar.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/executor.hpp>
#include <rondo/export.hpp>
#include <rondo/firing.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

/// A time of the wall clock: std::chrono::system_clock's, in UTC, to the nanosecond on every platform.
using wall_time = std::chrono::time_point<std::chrono::system_clock, duration>;

/// The type of parameters that take any time point of std::chrono::system_clock, `std::chrono::sys_days` included. Rounded
/// up and saturating, as saturate() does. The largest one means *never*.
class any_wall_time {
 public:
  /// Converts. NaN: std::invalid_argument.
  template <class Duration>
  constexpr any_wall_time(  // NOLINT(google-explicit-constructor): so that calls take the time point itself
      std::chrono::time_point<std::chrono::system_clock, Duration> t)
      : value_(rondo::saturate(t.time_since_epoch())) {}
  /// The converted time.
  constexpr operator wall_time() const noexcept { return value_; }

 private:
  wall_time value_;
};

namespace detail {
struct calendar_rule;
class calendar_core;
class step_listeners;
}  // namespace detail

/// A recurrence of the calendar, in the local time of a zone. Made by daily(), on_weekdays(), weekly() and cron(). A value:
/// copies share what they hold, and are used from any thread.
///
/// - Zones are those of the system's time zone database, by their names there ("Europe/Berlin", "UTC"). It is read once in
///   a process, when the first zone is asked for: a later update of its files takes effect when the program is restarted.
///   As far ahead as the files list changes of a zone they are followed; after the last one its offset stays.
/// - **A local time that does not exist**, as clocks are set forward over it, counts at the moment of that change: 02:30
///   in the night in which 02:00 becomes 03:00 is 03:00. Several such times make one point, also together with a
///   time that is named anyway.
/// - **A local time that comes twice**, as clocks are set back, counts the first time only.
/// - A cron() expression that names all hours (`*` in the second field) is different: it asks for elapsed time,
///   not for an hour of the day. It counts whenever a local clock shows a time that it names: in both passes of the hour
///   that comes twice, and not for the hour that does not come.
///
/// Copies share it. One that was moved from may only be destroyed or assigned to.
class RONDO_EXPORT calendar {
 public:
  /// The first point later than `after`. None if there is none before the end of the clock, in the year 2262. Takes some
  /// microseconds, up to about a millisecond for days that are years apart. Allocates nothing.
  std::optional<wall_time> next(any_wall_time after) const;

 private:
  friend RONDO_EXPORT calendar daily(any_duration time_of_day, const std::string& zone);
  friend RONDO_EXPORT calendar weekly(std::initializer_list<std::chrono::weekday> days,
                                      any_duration time_of_day, const std::string& zone);
  friend RONDO_EXPORT calendar cron(const std::string& expression, const std::string& zone);
  explicit calendar(std::shared_ptr<const detail::calendar_rule> rule) noexcept : rule_(std::move(rule)) {}

  std::shared_ptr<const detail::calendar_rule> rule_;
};

/// Each day at the same local time: daily(6h + 30min, "Europe/Berlin"). A time of day outside 0 … 24 h (exclusive), and a
/// zone that the database does not know: std::invalid_argument, which names it. A database or a zone's file that cannot be
/// read: std::runtime_error.
RONDO_EXPORT calendar daily(any_duration time_of_day, const std::string& zone);

/// As daily(), from Monday to Friday.
RONDO_EXPORT calendar on_weekdays(any_duration time_of_day, const std::string& zone);

/// As daily(), on these days of the week. None of them, or one that is not ok(): std::invalid_argument.
RONDO_EXPORT calendar weekly(std::initializer_list<std::chrono::weekday> days, any_duration time_of_day,
                             const std::string& zone);

/// The five fields of cron, separated by blanks: minute (0-59), hour (0-23), day of the month (1-31), month (1-12, or jan to
/// dec), day of the week (0-7, or sun to sat; 0 and 7 are Sunday).
///
///     rondo::cron("*/15 9-17 * * mon-fri", "America/New_York")
///
/// - A field is a list, separated by commas, of `*`, a value, or a range `first-last`; `*` and a range may be followed by
///   a step, `/n`: every n-th value, from the first on. Names are of any case.
/// - Day of the month and day of the week: if neither of these fields begins with `*`, a day counts that matches *either*;
///   otherwise it must match both.
/// - Seconds, years, macros (`@daily`), `?`, `L`, `W` and `#` are no part of it.
/// - Anything else, an expression that no day ever matches (`0 0 30 2 *`), or an unknown zone: std::invalid_argument, which
///   names the part that is wrong. What cannot be read: std::runtime_error, as with daily().
RONDO_EXPORT calendar cron(const std::string& expression, const std::string& zone);

/// A wall clock that tells when it was set. All members may be called from any thread.
class RONDO_EXPORT wall_clock {
 public:
  wall_clock() = default;
  virtual ~wall_clock();
  wall_clock(const wall_clock&) = delete;
  wall_clock& operator=(const wall_clock&) = delete;

  /// The time that it shows. Called often, and while tasks wait: it must not block.
  virtual wall_time now() const noexcept = 0;

  /// Has `stepped` called after each step of the clock, on any thread. If it throws, it is to be called again after a while.
  /// Destroying the result ends that, and waits for a call in progress, except from inside that call. Null: this
  /// clock does not tell; it is to be looked at.
  virtual std::shared_ptr<void> on_step(std::function<void()> stepped) = 0;
};

/// The system's clock. On Linux on_step() makes a thread that sleeps in a timerfd, which the kernel wakes when the clock is
/// set and when the machine resumes (TFD_TIMER_CANCEL_ON_SET); std::system_error if it cannot be made. Elsewhere this clock
/// does not tell of its steps.
RONDO_EXPORT wall_clock& system_wall_clock() noexcept;

/// A wall clock for tests: it goes with a scheduler's time, virtual or real, until it is set.
///
///     rondo::manual_timer time;
///     rondo::manual_wall_clock wall(time, std::chrono::sys_days(2026y / March / 29));
///     rondo::calendar_timers timers(time, wall);
///     timers.schedule(rondo::daily(2h + 30min, "Europe/Berlin"), work);
///     time.advance(24h);
class RONDO_EXPORT manual_wall_clock final : public wall_clock {
 public:
  /// Shows `t` now. The scheduler must outlive it. Throws std::bad_alloc.
  manual_wall_clock(const scheduler& goes_with, any_wall_time t);
  /// What called on_step() must have ended that.
  ~manual_wall_clock() override;

  wall_time now() const noexcept override;
  std::shared_ptr<void> on_step(std::function<void()> stepped) override;

  /// Sets the clock, and tells of that. If telling throws, the clock is set; call it again. Throws std::bad_alloc: then it
  /// is not set.
  void set(any_wall_time t);
  /// The same, without telling: as between a step and its notice, or with a clock that does not tell.
  void set_silently(any_wall_time t);

 private:
  const scheduler& goes_with_;
  mutable std::mutex mutex_;
  wall_time shown_;   // at since_
  time_point since_;  // of the scheduler
  const std::shared_ptr<detail::step_listeners> listeners_;
};

/// One run of a timer of the wall clock. `wall_due` is what counts: `lateness` is the wall clock's time at the start −
/// `wall_due`, and `due`, on the steady clock, lies as long before the start. `missed` counts points of the calendar, at
/// most 1000.
struct wall_firing : firing {
  wall_time wall_due{};  ///< its exact deadline
};

/// What the calls of calendar_timers take: a task, or a callable that takes a `const wall_firing&`.
class wall_task {
 public:
  ///@{
  /// Holds the callable, as task does. Throws what task's constructor throws.
  wall_task(task work) noexcept : work_(std::move(work)) {}  // NOLINT(google-explicit-constructor)
  wall_task(std::nullptr_t) noexcept {}                      // NOLINT(google-explicit-constructor)
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, wall_task> && !std::same_as<std::remove_cvref_t<F>, task> &&
           (detail::task_callable<std::decay_t<F>> ||
            std::is_invocable_v<std::decay_t<F>&, const wall_firing&>))
      wall_task(F&& callable,  // NOLINT(bugprone-forwarding-reference-overload)
                detail::kept_call_site made_at = detail::kept_call_site::here()) {
    if constexpr (detail::task_callable<std::decay_t<F>>)
      work_ = task(std::forward<F>(callable), made_at);
    else if (!detail::is_null(callable))
      work_ = task(taking_wall_firing<std::decay_t<F>>{std::forward<F>(callable)}, made_at);
  }
  ///@}
  /// The task, which is to be called with a wall_firing alone.
  task take() && noexcept { return std::move(work_); }

 private:
  template <class F>
  struct taking_wall_firing {
    F callable;
    void operator()(const firing& f) { std::invoke(callable, static_cast<const wall_firing&>(f)); }
  };

  task work_;
};

/// Timers whose deadlines are those of the wall clock, on any scheduler.
///
///     rondo::calendar_timers timers(timer);   // timer: any scheduler
///     timers.schedule_at(std::chrono::sys_days(2027y / January / 1), [] { … });
///     timers.schedule(rondo::daily(6h + 30min, "Europe/Berlin"), [] { … });
///
/// - Threads: all members may be called from any thread and from inside its tasks, which may also destroy it.
/// - When the clock is set, each deadline moves with it. A task never starts before its deadline by the wall clock, even
///   if the notice of a step is late. Where the clock tells of its steps, nothing wakes up for that. A clock that does not
///   tell is looked at each second: a step of a millisecond or more is followed after a second at most.
/// - **A deadline that the clock has passed** (it was set forward, the machine was suspended, the driver was busy): the task
///   runs at once, late. Of several points of a calendar that have gone by it runs once, for the oldest: `wall_due` is that
///   point, `missed` the number of the others. A task that is of no use then looks at `lateness`.
/// - **A clock that is set back** by up to three hours since the last run: the next point stays what it is, so no point runs
///   twice. Set back further, as after a false time, the calendar begins anew at the new time, and points come again.
/// - A run of a calendar never overlaps the one before: points that come during a run are as missed as others.
/// - The ids are the scheduler's, and its calls (cancel(), pending(), stop(), …) know them as periodic timers, except that
///   its reschedule_after() and reschedule_at() move a timer only until the clock is set, never to before its deadline. Each
///   timer counts for `max_pending`, and for pending() and list(); so does the look at a clock that does not tell of its
///   steps. In the scheduler's stats() a single one that has run counts as cancelled; looks
///   before a deadline count as runs, which nobody sees.
/// - drain() of the scheduler ends all of them, as it ends periodic timers. What stop() hands back may be run by hand.
/// - It may outlive its scheduler, whose end it takes for a stop().
/// - No user code runs under its lock. Cost: that of the scheduler's periodic timers, and an allocation of some 200 bytes
///   each. A step of the clock moves all of them, on the thread that tells of it.
class RONDO_EXPORT calendar_timers {
 public:
  ///@{
  /// Without timers. The clock, that of the system if none is named, must outlive it. Throws what on_step() and, for a clock
  /// that does not tell, the scheduling calls throw.
  explicit calendar_timers(scheduler& s);
  calendar_timers(scheduler& s, wall_clock& clock);
  ///@}
  /// Cancels all its timers, and returns when no run of them is in progress and their callables are destroyed; it does not
  /// wait for those on its own stack.
  ~calendar_timers();
  calendar_timers(const calendar_timers&) = delete;
  calendar_timers& operator=(const calendar_timers&) = delete;

  ///@{
  /// Runs `work` once, when the wall clock shows `due` or a later time. Throws what the scheduler's calls throw: the task is
  /// empty, std::invalid_argument; the scheduler is stopped or gone, stopped_error; capacity_error; std::bad_alloc. Strong
  /// guarantee.
  timer_id schedule_at(any_wall_time due, wall_task work);
  timer_id schedule_at(any_wall_time due, wall_task work, timer_options with);
  ///@}

  ///@{
  /// Runs `work` at each point of the calendar later than now. A run that throws does not end it. Throws as
  /// schedule_at() does.
  timer_id schedule(const calendar& when, wall_task work);
  timer_id schedule(const calendar& when, wall_task work, timer_options with);
  ///@}

  ///@{
  /// As the scheduler's calls of that name; for an id that was not scheduled here: `gone`, or false.
  cancel_result cancel(timer_id id);
  cancel_result cancel_and_wait(timer_id id);
  bool pending(timer_id id) const;
  ///@}
  /// The number of its pending timers. O(n).
  std::size_t pending() const;

  /// When the timer is due next, by the wall clock: wall_time::max() if never. None if it is not pending, or its task is
  /// running. O(n).
  std::optional<wall_time> due(timer_id id) const;
  /// When the earliest of them is due, by the wall clock. None if none is going to fire. O(n).
  std::optional<wall_time> next_due() const;

 private:
  std::shared_ptr<detail::calendar_core>
      core_;  // shared with its timers, whose tasks may destroy this object
};

}  // namespace rondo
