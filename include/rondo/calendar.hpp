// Deadlines on the wall clock, which follow its steps, and calendar recurrences: daily, on days of the week, cron. A
// separate library, rondo-calendar.
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
#include <rondo/cron_syntax.hpp>
#include <rondo/executor.hpp>
#include <rondo/export.hpp>
#include <rondo/firing.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

namespace detail {
struct calendar_rule;
struct calendar_access;
class calendar_core;
class step_listeners;
}  // namespace detail

/// A calendar recurrence: in the local time of a zone, created by daily(), on_weekdays(), weekly() and cron(), or with
/// points of your own, created by calendar_of(). A value
/// type: copies share their contents and may be used from any thread. A moved-from calendar may only be destroyed or
/// assigned to.
///
/// - Zones come from the system's time zone database, in /usr/share/zoneinfo or the folder that the environment variable
///   TZDIR names, under the names used there ("Europe/Berlin"); "UTC" needs no data. The first request of a zone reads the
///   data of all of them; an update of the files takes effect with refresh_zone_data().
/// - **A local time that does not exist**, because clocks are set forward over it, counts at the moment of that change:
///   on the night when 02:00 becomes 03:00, 02:30 means 03:00. If a calendar names several such times, or such a time
///   and 03:00 itself, they become a single point.
/// - **A local time that occurs twice**, because clocks are set back, counts only the first time.
/// - A cron() expression whose minute or hour field begins with `*`, or that names all hours, is different, as in cron(8): it
///   asks for elapsed time, not for times of the day. It has a point whenever a local clock shows a time that it names: in
///   both passes of the hour that occurs twice, and not in the hour that is skipped.
class RONDO_EXPORT calendar {
 public:
  /// The first point later than `after`. Returns std::nullopt if there is none before the end of the clock, in the year
  /// 2262. Takes some microseconds, and up to about a millisecond for days that are years apart. Allocates nothing. For a
  /// calendar_of(), it calls the function and throws what that throws, or std::logic_error if the point is not later than
  /// `after`.
  std::optional<wall_time> next(any_wall_time after) const;

 private:
  friend RONDO_EXPORT calendar daily(any_duration time_of_day, const std::string& zone);
  friend RONDO_EXPORT calendar weekly(std::initializer_list<std::chrono::weekday> days,
                                      any_duration time_of_day, const std::string& zone);
  friend RONDO_EXPORT calendar cron(const std::string& expression, const std::string& zone,
                                    cron_syntax syntax);
  friend RONDO_EXPORT calendar calendar_of(std::function<std::optional<wall_time>(wall_time after)> next);
  friend class detail::calendar_core;
  friend struct detail::calendar_access;
  explicit calendar(std::shared_ptr<const detail::calendar_rule> rule) noexcept : rule_(std::move(rule)) {}

  std::shared_ptr<const detail::calendar_rule> rule_;
};

/// Each day at the same local time: daily(6h + 30min, "Europe/Berlin"). Throws std::invalid_argument if the time of day
/// is outside 0 … 24 h (exclusive) or the database does not know the zone; the message names the value and, if it is an
/// old name of a zone, the newer one. Throws std::runtime_error if the database is missing or empty, or if the zone's file
/// cannot be read. All messages are one line. The first request of a zone reads the data of all of them: that takes some 15 ms,
/// and 1 MB of memory. Calls that name a zone may read the environment, so no other thread should change it meanwhile.
RONDO_EXPORT calendar daily(any_duration time_of_day, const std::string& zone);

/// As daily(), from Monday to Friday.
RONDO_EXPORT calendar on_weekdays(any_duration time_of_day, const std::string& zone);

/// As daily(), but only on these days of the week. Throws std::invalid_argument if `days` is empty or contains a day
/// that is not ok().
RONDO_EXPORT calendar weekly(std::initializer_list<std::chrono::weekday> days, any_duration time_of_day,
                             const std::string& zone);

/// A cron expression: by default the five fields of cron(8), separated by blanks: minute (0-59), hour (0-23), day of the month
/// (1-31), month (1-12, or jan to dec), day of the week (0-7, or sun to sat; 0 and 7 are Sunday).
///
///     rondo::cron("*/15 9-17 * * mon-fri", "America/New_York")
///     rondo::cron("@daily", "Europe/Berlin")
///     rondo::cron("*/10 * * * * *", "UTC", rondo::cron_syntax::seconds_first)   // every ten seconds
///     rondo::cron("0 30 6 ? * 2#1", "UTC", rondo::cron_syntax::quartz)          // the first Monday of each month
///
/// - A field is a comma-separated list of `*`, a value, or a range `first-last`. `*` and a range may be followed by a
///   step, `/n`: every n-th value, starting with the first; a step beyond the range means only that. Names are
///   case-insensitive.
/// - Day of the month and day of the week: if neither of these fields begins with `*`, a day counts if it matches
///   *either* field; otherwise it must match both.
/// - `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually` are at the beginning of each.
/// - The other syntaxes read what is written for another tool. rondo::cron_syntax and lib/calendar/README.md say what each of
///   them has: fields and their order, the number of Sunday, what two day fields mean, and which of these: `?` (a day field that
///   does not count), `L` (the last day of the month), `L-3` (three days before it), `LW` (the last day from Monday to Friday),
///   `L-1W`, `15W` (the one that is nearest to the 15th, in the month), `fril` or `6L` (the last Friday), `fri#2` (the second
///   one), `5/10` (from 5 on, every tenth).
/// - Throws std::invalid_argument for anything else, for an expression that no day ever matches (`0 0 30 2 *`) and for
///   an unknown zone; the message names the part that is wrong and, for a number of fields or a character of another syntax, that
///   syntax. Throws std::runtime_error as daily() does.
RONDO_EXPORT calendar cron(const std::string& expression, const std::string& zone,
                           cron_syntax syntax = cron_syntax::standard);

/// The machine's zone, as a name for daily(), cron() and the others: that of the environment variable TZ, or else of
/// /etc/localtime. Throws std::runtime_error if TZ names no zone of the database, as "CET-1CEST" does not, or if the machine
/// does not say which zone it has. Reads the environment, so no other thread should change that meanwhile.
RONDO_EXPORT std::string current_zone();

/// The version of the zone data that this process uses, "2026f"; empty if they do not say. Reads them as daily() does, and
/// throws what that throws of missing data.
RONDO_EXPORT std::string zone_data_version();

/// Reads the zone data again. Returns true if there was an update, which from then on all calendars use. Call it now and
/// then, or after the package with the data was updated, but not meanwhile: some files are new then, and others are not. Reads the
/// environment, as daily() does.
///
/// - Timers that wait follow the new rules. Each local time that a timer's calendar names counts once: one that has
///   run does not run again, even if the clock shows it again by the new rules; one that the new rules move to before now
///   runs at once, late. A cron() expression of elapsed time goes on from now.
/// - A zone that the update removes keeps its rules in calendars that use it, and is unknown to new ones.
/// - Throws std::runtime_error if the data are missing or empty, or if the file of a zone in use cannot be read; then
///   nothing has changed. Throws std::bad_alloc; then call it again, as not all timers may have been moved.
/// - Takes as long as the first request, and as a step of the clock for each calendar_timers. Keeps the old data of the
///   zones in use, some kilobytes each.
RONDO_EXPORT bool refresh_zone_data();

/// Your own points, trading days or tides: `next(after)` returns the first one later than `after`, or std::nullopt if
/// there are no more. The last point of the clock means *never*.
///
///     rondo::calendar_of([](rondo::wall_time after) { return next_high_tide(after); })
///
/// - A point that is not later than `after`, or an exception, ends the timer. It is reported to the scheduler's
///   `on_error`, as a failed run, in the driver's next pass: as a std::logic_error, or as what was thrown. (The run whose
///   successor was asked for takes place.)
/// - `next` is called with no lock held, by the call that schedules a timer, by each of its runs, also by one that the
///   executor drops, and, if the clock is set back far, by the thread that reports this. So two threads may call it at the
///   same time.
/// - Throws std::invalid_argument if `next` is empty, and std::bad_alloc.
RONDO_EXPORT calendar calendar_of(std::function<std::optional<wall_time>(wall_time after)> next);

/// A wall clock that reports when it was set. All members may be called from any thread.
class RONDO_EXPORT wall_clock {
 public:
  wall_clock() = default;
  virtual ~wall_clock();
  wall_clock(const wall_clock&) = delete;
  wall_clock& operator=(const wall_clock&) = delete;

  /// The time that the clock shows. It is called often, and while tasks wait, so it must not block.
  virtual wall_time now() const noexcept = 0;

  /// Registers `stepped` to be called after each step of the clock, on any thread. If `stepped` throws, the clock must
  /// call it again after a while. Destroying the result ends the registration and waits for a call in progress, except
  /// from inside that call. Returns null if this clock does not report steps; it must then be checked regularly.
  virtual std::shared_ptr<void> on_step(std::function<void()> stepped) = 0;
};

/// The system's clock. On Linux, on_step() starts a thread that sleeps in a timerfd, which the kernel wakes when the
/// clock is set and when the machine resumes (TFD_TIMER_CANCEL_ON_SET); it throws std::system_error if the thread or
/// the timerfd cannot be created. On other systems this clock does not report its steps.
RONDO_EXPORT wall_clock& system_wall_clock() noexcept;

/// A wall clock for tests: it advances with a scheduler's time, virtual or real, until it is set.
///
///     rondo::manual_timer time;
///     rondo::manual_wall_clock wall(time, std::chrono::sys_days(2026y / March / 29));
///     rondo::calendar_timers timers(time, wall);
///     timers.schedule(rondo::daily(2h + 30min, "Europe/Berlin"), work);
///     time.advance(24h);
class RONDO_EXPORT manual_wall_clock final : public wall_clock {
 public:
  /// Shows `t` now. The scheduler must outlive the clock. Throws std::bad_alloc.
  manual_wall_clock(const scheduler& goes_with, any_wall_time t);
  /// All registrations made with on_step() must have ended.
  ~manual_wall_clock() override;

  wall_time now() const noexcept override;
  std::shared_ptr<void> on_step(std::function<void()> stepped) override;

  /// Sets the clock and reports the step. If reporting throws, the clock is set; call set() again. If it throws
  /// std::bad_alloc before that, the clock is not set.
  void set(any_wall_time t);
  /// Sets the clock without reporting it: the state between a step and its report, or a clock that does not report
  /// steps.
  void set_silently(any_wall_time t);

 private:
  const scheduler& goes_with_;
  mutable std::mutex mutex_;
  wall_time shown_;   // at since_
  time_point since_;  // of the scheduler
  const std::shared_ptr<detail::step_listeners> listeners_;
};

/// One run of a timer on the wall clock. `wall_due` is the deadline that counts: `lateness` is the wall clock's time at
/// the start − `wall_due`, and `due`, on the steady clock, is that much before the start. `missed` counts points of the
/// calendar, at most 1000. `left` is 0 in the last run, and otherwise unknown.
struct wall_firing : firing {
  wall_time wall_due{};  ///< the run's exact deadline
};

/// The parameter type of the calls of calendar_timers: a task, or a callable that takes a `const wall_firing&`.
class wall_task {
 public:
  ///@{
  /// Holds the callable as task does; `{}` is an empty task. Throws what task's constructor throws.
  wall_task() noexcept = default;
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
  /// The task, which must only be called with a wall_firing.
  task take() && noexcept { return std::move(work_); }

 private:
  template <class F>
  struct taking_wall_firing {
    F callable;
    void operator()(const firing& f) { std::invoke(callable, static_cast<const wall_firing&>(f)); }
  };

  task work_;
};

/// Timers with deadlines on the wall clock, on any scheduler.
///
///     rondo::calendar_timers timers(timer);   // timer: any scheduler
///     timers.schedule_at(std::chrono::sys_days(2027y / January / 1), [] { … });
///     timers.schedule(rondo::daily(6h + 30min, "Europe/Berlin"), [] { … });
///
/// - Threads: all members may be called from any thread and from inside its tasks, which may also destroy it.
/// - When the clock is set, each deadline moves with it. A task never starts before its deadline on the wall clock,
///   even if the report of a step is late. If the clock reports its steps, no wake-ups are needed to detect them.
///   Otherwise it is checked every second: a step of a millisecond or more is followed after at most a second.
/// - **A deadline that the clock has passed** (because it was set forward, the machine was suspended, or the driver was
///   busy): the task runs at once, late. If several points of a calendar have passed, it runs once, for the oldest:
///   `wall_due` is that point, `missed` the number of the others. A task that is useless when it is late should check
///   `lateness`.
/// - **A clock that is set back** by up to three hours since the last run: the next point stays the same, so no point
///   runs twice. If the clock is set back further, as after a wrong time, the calendar starts over at the new time, and
///   points repeat.
/// - A run of a calendar never overlaps the previous one: of the points that arrive during a run, the oldest runs late,
///   once that run has ended, and the others count as missed. If only one arrives, its run has `missed` 0.
/// - **A full pool**: if the executor drops a run, the timer submits it again each second until it starts, late; so a daily
///   job is not lost. The scheduler's `on_rejected` is told of each point once, with its own `due`: first of the point that
///   is to run, then of each later one that has come by the time of a further drop; if the clock passes many at once, of
///   the first 1001. statistics::rejected counts these calls.
/// - The ids are the scheduler's, and its calls (cancel(), pending(), stop(), …) treat these timers as periodic timers,
///   except that its reschedule_after() and reschedule_at() move a timer only until the clock is set, and never to
///   before its deadline. Each timer counts for `max_pending`, pending() and list(); so does the timer that checks a
///   clock which does not report its steps. In the scheduler's stats(), a one-shot timer that has run counts as
///   cancelled, and checks before a deadline count as runs, although no task runs.
/// - The scheduler's drain() ends all of them, as it ends periodic timers. What stop() returns may be run by hand.
/// - It may outlive its scheduler. It treats the scheduler's destruction as a stop().
/// - In a child made by fork(), a copy of the parent's does not notice when the clock is set. It can be destroyed there if no other
///   thread, its scheduler's included, was inside one of its calls or runs during the fork. Create the child's own in the child.
/// - No user code runs under its lock. Cost: as the scheduler's periodic timers, plus an allocation of about 270 bytes
///   for each. A step of the clock moves all of them, on the thread that reports it; refresh_zone_data() does so too.
class RONDO_EXPORT calendar_timers {
 public:
  ///@{
  /// Creates an object without timers. `clock`, by default the system's, must outlive it. Throws what on_step() throws
  /// and, for a clock that does not report steps, what the scheduling calls throw.
  explicit calendar_timers(scheduler& s);
  calendar_timers(scheduler& s, wall_clock& clock);
  ///@}
  /// Cancels all its timers, and returns when none of their runs is in progress and their callables are destroyed; it
  /// does not wait for those on its own stack. Tasks that may run meanwhile must use a reference to this object: see
  /// ~scheduler().
  ~calendar_timers();
  calendar_timers(const calendar_timers&) = delete;
  calendar_timers& operator=(const calendar_timers&) = delete;

  ///@{
  /// Runs `work` once, when the wall clock shows `due` or a later time; wall_time::max() means *never*. Throws what the
  /// scheduler's calls throw: std::invalid_argument if the task is empty, stopped_error if the scheduler is stopped or
  /// destroyed, capacity_error, and std::bad_alloc. Strong guarantee.
  timer_id schedule_at(any_wall_time due, wall_task work);
  timer_id schedule_at(any_wall_time due, wall_task work, timer_options with);
  ///@}

  ///@{
  /// Runs `work` at each point of the calendar later than now. A run that throws does not end the timer. Throws as
  /// schedule_at() does.
  timer_id schedule(const calendar& when, wall_task work);
  timer_id schedule(const calendar& when, wall_task work, timer_options with);
  ///@}

  ///@{
  /// As the scheduler's calls of the same name. Return `gone` or false for an id that was not scheduled here.
  cancel_result cancel(timer_id id);
  cancel_result cancel_and_wait(timer_id id);
  bool pending(timer_id id) const;
  ///@}
  /// The number of its pending timers. O(n).
  std::size_t pending() const;

  /// When the timer is next due on the wall clock: wall_time::max() if never. Returns std::nullopt if it is not pending
  /// or its task is running. O(n).
  std::optional<wall_time> due(timer_id id) const;
  /// When the earliest timer is due on the wall clock. Returns std::nullopt if none is going to fire. O(n).
  std::optional<wall_time> next_due() const;

 private:
  std::shared_ptr<detail::calendar_core>
      core_;  // shared with its timers, whose tasks may destroy this object
};

}  // namespace rondo
