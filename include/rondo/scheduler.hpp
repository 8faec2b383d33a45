// What tasks and users program against: everything about timers but how time passes.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

namespace rondo {

namespace detail {
class canceller;
class core;
}  // namespace detail

/// What cancel() has found.
enum class cancel_result {
  cancelled,  ///< it will never run (again), and its callable is destroyed
  running,    ///< the run in progress ends, no other follows
  gone        ///< it ran, was cancelled or handed back before, or the id names no timer of this scheduler
};

/// A timer that stop() handed back; `work()` runs it by hand.
struct unfired {
  timer_id id;  ///< it is `gone`
  time_point
      due;    ///< its deadline; of a periodic one that of its oldest job not started, else of its next run
  task work;  ///< never empty
};

/// How a scheduler is to be. New members are only ever appended.
struct options {
  /// The resolution: a task starts at the first tick at or after its deadline, never before its deadline.
  /// Ticks without work cost nothing, so it may be small. Not positive: std::invalid_argument.
  duration tick = std::chrono::milliseconds(1);
  /// Of the wheel; the constructor of rondo::wheel says what more of them cost and bring. Any number works for any
  /// delay, and 512 suits nearly all schedulers. A bucket takes some 160 bytes here: 512 buckets 0.1 MB, 32,768 buckets 5 MB.
  /// 0 or more than 2^20: std::invalid_argument.
  std::size_t buckets = 512;
  /// So many timers may be pending; one more: capacity_error. Exact under races. A limit costs an atomic
  /// counter.
  std::size_t max_pending = unlimited;
  /// Where tasks run. Empty: inline, on the driver.
  executor run_on = {};
  /// Told of whatever a task, an executor, `on_slow` or polled_timer's `on_earlier` throws. Empty: one line on
  /// std::cerr. If it throws itself: such a line.
  std::function<void(std::exception_ptr, const firing&)> on_error = {};
  /// The name of the driver thread (systems cut it to their limit; Linux: 15 characters).
  std::string name = "rondo";
  /// A watchdog: a run that takes longer is told to `on_slow`, as one slow task on the driver delays all others.
  /// Negative: std::invalid_argument. By default no run is.
  duration slow_after = duration::max();
  /// Told of each slow run when it is over, on the thread that ran it, before the callable of a last run is
  /// destroyed. Empty: one line on std::cerr. If it throws: `on_error`.
  std::function<void(const slow_run&)> on_slow = {};
};

/// A scheduler of tasks: `timer` has its own thread, `polled_timer` is for an event loop of yours,
/// `manual_timer` runs on virtual time.
///
/// - Threads: all members of this class are legal from any thread and from inside tasks. *Inside* means: on a
///   thread whose stack holds a task of this scheduler, the destruction of its callable after a run, or a call
///   of its `on_error`, `on_slow`, `run_on` or `on_earlier`.
/// - Deadlines: a task never starts before its exact deadline. It belongs to the first tick at or after it
///   (ticks count from the scheduler's start); one that is not later than now belongs to the tick that now lies
///   in, and runs in the next pass of the driver, never inside the scheduling call. Earlier ticks run first,
///   also after a stall; equal ticks in the order in which the calls took effect. What falls due because of a
///   task of one pass runs in the next pass.
/// - The largest duration, and a deadline past the end of the clock, mean *never*: accepted, pending,
///   cancellable, not fired, and not counted by next_due(). Durations of any unit are converted upwards and
///   saturate; NaN is std::invalid_argument.
/// - Pending are one-shots not yet started (those handed to the executor included) and periodic timers that
///   have not ended. pending(), next_due() and stats() are exact when no other call is in progress.
/// - No user code (task, its destructor, handler, executor) runs while a lock of the library is held.
/// - Cost: schedule and cancel O(1) amortised, no allocation in the long run for callables of up to 48 bytes.
///   What a timer took is kept, some 200 bytes, for those that come after it.
/// - The clock is steady_clock: it does not follow the wall clock. On Linux it stands still while the machine
///   sleeps: timers come later by the wall clock, and miss nothing. After a jump (of a clock that goes on
///   meanwhile, a process that was stopped, a driver that got no processor) what fell due runs in the next
///   pass, late and in order, and periodic timers do what they chose with recurrence::on_missed().
class RONDO_EXPORT scheduler {
 public:
  /// Which clock deadlines are of; a manual_timer has its own time on it.
  using clock = std::chrono::steady_clock;

  /// Stops, waits as stop() does, and destroys what was not fired. Called from inside, it waits for all but
  /// what lies on its own stack.
  virtual ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  ///@{
  /// Runs `work` once, `delay` from now (zero or negative: as soon as the driver comes to it), where
  /// `options::run_on` says, or on an executor of its own.
  /// Empty task: std::invalid_argument. After stop() or drain(): stopped_error. More than max_pending:
  /// capacity_error. Strong guarantee: if it throws, nothing was scheduled.
  timer_id schedule_after(any_duration delay, task work);
  timer_id schedule_after(any_duration delay, task work, const on& where);
  ///@}

  ///@{
  /// Runs `work` once, at `due`. Throws as schedule_after() does.
  timer_id schedule_at(any_time_point due, task work);
  timer_id schedule_at(any_time_point due, task work, const on& where);
  ///@}

  ///@{
  /// Runs `work` at now + period, now + 2 * period, … until it is cancelled: schedule(every(period), work).
  /// Not positive: std::invalid_argument. Throws otherwise as schedule_after() does.
  timer_id schedule_every(any_duration period, task work);
  timer_id schedule_every(any_duration period, task work, const on& where);
  ///@}

  ///@{
  /// Runs `work` again and again, as `when` says: see rondo::recurrence, also for points that were missed,
  /// and for those that come while a run is in progress. A run that throws does not end it. Throws as
  /// schedule_after() does.
  timer_id schedule(const recurrence& when, task work);
  timer_id schedule(const recurrence& when, task work, const on& where);
  ///@}

  /// Ends a timer; effective until the task has really started, also after it was handed to an executor. The
  /// callable is destroyed at once, on this thread, unless it is running: then when that run ends, and every
  /// cancel says `running` until then.
  cancel_result cancel(timer_id id);

  /// The same, and returns only when no run of it is in progress and its callable is destroyed; from inside
  /// one of its own runs it does not wait. (Two tasks that wait for each other wait for ever.)
  cancel_result cancel_and_wait(timer_id id);

  ///@{
  /// Moves a pending timer, as if it had been scheduled now; a periodic one's next run, also from inside its
  /// own run: its grid goes on from there. One that was handed to an executor and has not started is taken
  /// back. False if it is not pending, or periodic while drain() ends those. Strong guarantee.
  bool reschedule_after(timer_id id, any_duration delay);
  bool reschedule_at(timer_id id, any_time_point due);
  ///@}

  /// Whether the timer is pending: see above. O(1).
  bool pending(timer_id id) const;
  /// How many are. It adds up a few counters, however many timers there are.
  std::size_t pending() const noexcept;

  /// When the driver next has work: the beginning of a tick, which may be past. None if nothing is to fire
  /// ever.
  std::optional<time_point> next_due() const;

  /// The scheduler's time: steady_clock's, or a manual_timer's own.
  time_point now() const noexcept;

  /// Ends all timers and hands back those that have not started, in due order (in a tick in the order of
  /// scheduling; those never due last). Once it returns no run starts any more and, unless it was called from
  /// inside, none is in progress, nor any call of `run_on`, `on_error`, `on_slow` or `on_earlier`. Idempotent; of
  /// several one gets the unfired, and all wait. Throws std::bad_alloc if there is no memory for the list: nothing
  /// is lost, call it again.
  std::vector<unfired> stop();

  /// The gentle end: periodic timers end (a run in progress is the last), new ones are refused from now on,
  /// and one-shots fire when they are due. True once none is pending and none runs; then the scheduler is
  /// stopped (timers that are never due are left for stop() to hand back). False when `limit` has passed, on
  /// the scheduler's clock: draining goes on, so call it again, or stop() for the rest. It advances a
  /// manual_timer, waiting in real time, for as long as `limit` at most, for jobs on other threads, and polls
  /// a polled_timer. Several calls may wait at a time. From inside: std::logic_error. Without memory it throws
  /// std::bad_alloc: call it again. (When it returns, a cancel() in progress on another thread may still be
  /// destroying its callable.)
  bool drain(any_duration limit);

  /// What it has done so far. As expensive as copying two histograms, however many timers there are. Throws
  /// std::bad_alloc.
  statistics stats() const;

  /// Draws the wheel for a person who is debugging: which buckets hold what, in the order of the delay queue,
  /// how many timers are further away, and what is not in the wheel. About forty lines at most; UTF-8; its form is no
  /// contract. Other calls may be in progress: it shows the parts of the wheel as they are one after another. Memory
  /// O(buckets), time O(buckets + pending). Throws what the stream does, and std::bad_alloc.
  void dump(std::ostream& out) const;

 protected:
  /// For the three that derive from it.
  explicit scheduler(std::shared_ptr<detail::core> core) noexcept;

 private:
  friend class detail::canceller;
  std::shared_ptr<detail::core> core_;  // shared with jobs and the driver, which may outlive this object
};

}  // namespace rondo
