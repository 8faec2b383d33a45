// The interface of all schedulers: everything about timers except how time passes.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/call_site.hpp>
#include <rondo/detail/new_timer.hpp>
#include <rondo/errors.hpp>
#include <rondo/executor.hpp>
#include <rondo/export.hpp>
#include <rondo/firing.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/slow_run.hpp>
#include <rondo/statistics.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>
#include <rondo/timer_info.hpp>

namespace rondo {

namespace detail {
struct core_access;
}

/// What cancel() found.
enum class cancel_result {
  cancelled,  ///< it never runs again, and its callable is destroyed
  running,    ///< a run is in progress; it ends, and no other follows
  gone        ///< it has ended or was handed back by stop(), or the id names no timer of this scheduler
};

/// A timer that stop() handed back. Calling `work()` runs it by hand.
struct unfired {
  timer_id id;  ///< `gone`, for every call
  /// Its deadline. For a periodic timer: the deadline of its oldest job that has not started, else of its next run.
  time_point due;
  task work;              ///< never empty
  std::string name = {};  ///< as timer_options gave it
};

/// Configures a scheduler. New members are only ever appended.
struct options {
  /// The resolution: a task starts at the first tick at or after its deadline, never before the deadline. Ticks
  /// without work cost nothing, so a small one is fine. Not positive: std::invalid_argument.
  duration tick = std::chrono::milliseconds(1);
  /// The wheel's buckets; the constructor of rondo::wheel says what more of them cost and gain. Any number works for
  /// any delay, and 512 suits nearly all schedulers. A bucket takes about 160 bytes: 512 take 0.1 MB, 32,768 take 5 MB.
  /// Rounded up to a power of two. 0 or more than 2^20: std::invalid_argument.
  std::size_t buckets = 512;
  /// The limit of pending timers; scheduling one more throws capacity_error. Exact under races. Any limit but
  /// `unlimited` costs an atomic counter.
  std::size_t max_pending = unlimited;
  /// Runs the tasks. Empty: they run inline, on the driver.
  executor run_on = {};
  /// Called with whatever a task (but see propagate_exceptions), an executor, `on_slow`, `on_rejected` or polled_timer's
  /// `on_earlier` throws. Empty, or if it throws itself: one line on std::cerr.
  std::function<void(std::exception_ptr, const firing&)> on_error = {};
  /// The name of the driver thread, cut to what the system allows (Linux: 15 characters).
  std::string name = "rondo";
  /// A watchdog: each run that takes longer is reported to `on_slow`, because a slow task on the driver delays all
  /// others. Negative: std::invalid_argument. The default reports none.
  duration slow_after = duration::max();
  /// Called after each slow run, on the thread that ran it, before the callable of a last run is destroyed.
  /// Empty: one line on std::cerr. What it throws is reported to `on_error`.
  std::function<void(const slow_run&)> on_slow = {};
  /// Called for each run that does not happen because the executor destroyed its job uncalled, as a full pool does; not
  /// if the timer was cancelled, moved or stopped before. Called on the thread that destroyed the job (on the driver, if
  /// that was before the executor returned), when the timer has ended or waits for its next run. `lateness` is that of the
  /// hand-over. What it throws is reported to `on_error`. Empty: such runs are only counted, as statistics::rejected.
  std::function<void(const firing&)> on_rejected = {};
  /// An exception thrown by a task that runs inline leaves the call that drives the scheduler, and `on_error` is not told of
  /// it: polled_timer::poll(), event_fd::run_due(), manual_timer::advance() and advance_to_next(), and drain(). For loops
  /// that handle all exceptions in one place. By then the run is over, and counted as `failed`: a periodic timer waits for its
  /// next run, a one-shot is gone. What was due and has not run stays due: call again. On an executor, also one that runs
  /// jobs at once, tasks report to `on_error` as ever; so do executors and handlers that throw. For a `timer`, whose thread
  /// has no caller: std::invalid_argument.
  bool propagate_exceptions = false;
};

/// Runs tasks at given times. Three classes derive from it: `timer` has its own thread, `polled_timer` is driven by
/// your event loop, `manual_timer` runs on virtual time.
///
/// - Threads: all members of this class may be called from any thread and from inside tasks. *Inside* means: on a
///   thread whose stack holds a task of this scheduler, the destruction of its callable after a run, or a call
///   of its `on_error`, `on_slow`, `on_rejected`, `run_on` or `on_earlier`.
/// - Deadlines: a task never starts before its exact deadline. The deadline belongs to the first tick at or after it
///   (ticks count from the scheduler's start); one that is not later than now belongs to the current tick, and its
///   task runs in the next pass of the driver, never inside the scheduling call. Earlier ticks run first, also
///   after a stall; within a tick tasks run in the order in which the calls took effect. What becomes due because of
///   a task of one pass runs in the next pass.
/// - The largest duration, and a deadline past the end of the clock, mean *never*: such a timer is accepted, pending
///   and cancellable, does not fire, and does not count for next_due(). Durations of any unit are rounded up and
///   saturate; NaN is std::invalid_argument.
/// - Pending are one-shots that have not started (also if an executor has their job) and periodic timers that
///   have not ended. pending(), next_due() and stats() are exact when no other call is in progress.
/// - No user code (a task, its destructor, a handler, an executor) runs while a lock of the library is held.
/// - Cost: scheduling and cancelling take O(1), amortised, and in the long run no allocation for callables of up to 48
///   bytes. The memory of a timer, about 200 bytes, is kept for later ones until shrink_to_fit().
/// - The clock is steady_clock: it does not follow the wall clock. On Linux it stops while the machine is suspended:
///   by the wall clock timers then fire later, and they miss nothing. After a jump (the clock went on during a
///   suspension, the process was stopped, the driver got no processor) everything that became due runs in the next
///   pass, late and in order, and periodic timers follow their recurrence::on_missed().
class RONDO_EXPORT scheduler {
 public:
  /// The clock of all deadlines; a manual_timer counts its own time on it.
  using clock = std::chrono::steady_clock;

  /// Stops, waits as stop() does, and destroys what has not fired. Called from inside, it waits for everything but
  /// what is on its own stack.
  virtual ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  ///@{
  /// Runs `work` once, `delay` from now (zero or negative: in the driver's next pass), with the executor and the name
  /// that `with` gives it. Throws std::invalid_argument if the task is empty, stopped_error after stop() or
  /// drain(), capacity_error at max_pending, and std::bad_alloc. Strong guarantee: if it throws, nothing is scheduled.
  timer_id schedule_after(any_duration delay, task work);
  timer_id schedule_after(any_duration delay, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule_after(any_duration delay, F&& work,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, std::forward<F>(work), made_at).schedule_after(delay);
  }
  template <detail::new_callable F>
  timer_id schedule_after(any_duration delay, F&& work, timer_options with,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::new_timer t(core_, std::forward<F>(work), made_at);
    t.set(std::move(with));
    return t.schedule_after(delay);
  }
  ///@}

  ///@{
  /// Runs `work` once, at `due`. Throws as schedule_after() does.
  timer_id schedule_at(any_time_point due, task work);
  timer_id schedule_at(any_time_point due, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule_at(any_time_point due, F&& work,
                       detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, std::forward<F>(work), made_at).schedule_at(due);
  }
  template <detail::new_callable F>
  timer_id schedule_at(any_time_point due, F&& work, timer_options with,
                       detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::new_timer t(core_, std::forward<F>(work), made_at);
    t.set(std::move(with));
    return t.schedule_at(due);
  }
  ///@}

  ///@{
  /// Runs `work` at now + period, now + 2 * period, … until it is cancelled: the same as schedule(every(period), work).
  /// A period that is not positive: std::invalid_argument. Otherwise throws as schedule_after() does.
  timer_id schedule_every(any_duration period, task work);
  timer_id schedule_every(any_duration period, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule_every(any_duration period, F&& work,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, std::forward<F>(work), made_at).schedule(every(period));
  }
  template <detail::new_callable F>
  timer_id schedule_every(any_duration period, F&& work, timer_options with,
                          detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::new_timer t(core_, std::forward<F>(work), made_at);
    t.set(std::move(with));
    return t.schedule(every(period));
  }
  ///@}

  ///@{
  /// Runs `work` repeatedly, as `when` says; rondo::recurrence also decides about missed points and those that
  /// come while a run is in progress. A run that throws does not end the timer. Throws as schedule_after() does.
  timer_id schedule(const recurrence& when, task work);
  timer_id schedule(const recurrence& when, task work, timer_options with);
  template <detail::new_callable F>
  timer_id schedule(const recurrence& when, F&& work,
                    detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return detail::new_timer(core_, std::forward<F>(work), made_at).schedule(when);
  }
  template <detail::new_callable F>
  timer_id schedule(const recurrence& when, F&& work, timer_options with,
                    detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::new_timer t(core_, std::forward<F>(work), made_at);
    t.set(std::move(with));
    return t.schedule(when);
  }
  ///@}

  /// Ends a timer. Effective until the task has started, also while an executor has its job. The callable is destroyed
  /// before this returns, on this thread, unless it is running: then when that run ends, and until then every
  /// cancel() returns `running`.
  cancel_result cancel(timer_id id);

  /// Cancels, and returns when no run of the timer is in progress and its callable is destroyed. Called from inside
  /// one of its own runs it does not wait. Two tasks that wait for each other in this way deadlock, and so does a call
  /// under a mutex that the task locks: a checked build tells of a call that has waited for five seconds.
  cancel_result cancel_and_wait(timer_id id);

  ///@{
  /// Moves a pending timer as if it had been scheduled now. Of a periodic timer it moves the next run, from inside its
  /// own run too, and the grid continues from there. A job that an executor has and has not started is taken back.
  /// Returns false if the timer is not pending, or is periodic while drain() ends those. Strong guarantee.
  bool reschedule_after(timer_id id, any_duration delay);
  bool reschedule_at(timer_id id, any_time_point due);
  ///@}

  /// Whether the timer is pending, as defined above. O(1).
  bool pending(timer_id id) const;
  /// The number of pending timers. Adds up a few counters, however many timers there are.
  std::size_t pending() const noexcept;

  /// The exact deadline of the run that the timer waits for; time_point::max() if it is never due. None if it is not
  /// pending, or waits for no moment: an executor has its only run, or its next run waits for the end of one in progress.
  /// O(1).
  std::optional<time_point> due(timer_id id) const;

  /// The timers that are pending or have runs in progress, by due; those that are never due, and then those that wait for
  /// no moment, come last. For status pages and debugging: O(n log n) for n timers. Other calls go on meanwhile: a timer that
  /// is pending all the time is listed once, as it was at some moment. Throws std::bad_alloc.
  std::vector<timer_info> list() const;

  /// When the driver next has work: the beginning of a tick, which may be in the past. None if no timer is going to
  /// fire.
  std::optional<time_point> next_due() const;

  /// The scheduler's time: that of steady_clock, or of the manual_timer.
  time_point now() const noexcept;

  /// Ends all timers and returns those that have not started, by due (within a tick in the order of scheduling,
  /// those that are never due last). After it has returned no run starts and, unless it was called from inside, no run
  /// is in progress, nor any call of `run_on` or of a handler. Idempotent. Of concurrent calls all wait, and one gets
  /// the timers. Throws std::bad_alloc if there is no memory for the list: nothing is lost, call it again.
  std::vector<unfired> stop();

  /// The same, but waits no longer than `limit`, in real time, for what is in progress; negative: not at all. None:
  /// something is still in progress. The scheduler is stopped all the same, no further run starts, and a later call
  /// gets the timers.
  std::optional<std::vector<unfired>> stop(any_duration limit);

  /// Whether stop(), drain() or the destructor has begun: for long tasks to look at, so that nobody has to wait for them.
  bool stopping() const noexcept;

  /// Ends gently: periodic timers end (a run in progress is the last), new timers are refused, and one-shots fire when
  /// they are due. Returns true once none is pending and none runs; then the scheduler is stopped, and timers that are
  /// never due are left for stop() to return. Returns false when `limit` has passed on the scheduler's clock: draining
  /// continues, so call it again, or stop() for the rest.
  ///
  /// It advances a manual_timer, and waits in real time, no longer than `limit`, for jobs on other threads; it polls a
  /// polled_timer. Any number of calls may wait. From inside: std::logic_error. Without memory: std::bad_alloc; call it
  /// again, as after what a task throws with options::propagate_exceptions. (When it returns, a cancel() in progress on
  /// another thread may still be destroying its callable.)
  bool drain(any_duration limit);

  /// What the scheduler has done so far. Costs as much as copying two histograms, however many timers there are. Throws
  /// std::bad_alloc.
  statistics stats() const;

  /// Draws the wheel, for debugging: what each bucket holds, in the order of the delay queue, how many timers are
  /// further away, what is not in the wheel, and the first timers that have a name. About sixty lines at most, UTF-8; the
  /// format may change. While other calls are in progress it shows the parts of the wheel as it reads them, one after
  /// another. Costs as much as list(). Throws what the stream throws, and std::bad_alloc.
  void dump(std::ostream& out) const;

  /// Gives back memory that a burst of timers has left, to operator delete and, on Linux, to the system; elsewhere that of
  /// ended timers, about 200 bytes each, is kept for later ones. Ids stay what they are: those of ended timers are `gone`
  /// for ever. Timers and their order stay, too. What is left: a timer that is pending keeps up to 63 neighbours (12 KiB);
  /// and so do 128 ended ones for each other thread that has scheduled or ended timers; a list of what is due keeps 1.5 MB
  /// at most. Measured: 222 MB after a million timers have ended, 5 MB after this call, as much as a new scheduler. Runs no user code. Throws nothing:
  /// without memory for its own work (a bit a timer) it gives back less. O(buckets + timers that were pending at once): it
  /// takes a third of a second to a second after a million. Others need not wait that long: it holds locks for some
  /// microseconds at a time.
  void shrink_to_fit();

 protected:
  /// For the three classes that derive from it.
  explicit scheduler(std::shared_ptr<detail::core> core) noexcept;

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::core> core_;  // shared with jobs and the driver, which may outlive this object
};

}  // namespace rondo
