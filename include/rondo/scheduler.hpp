// The interface common to all schedulers: everything about timers except how time passes.
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
#include <rondo/scheduling_calls.hpp>
#include <rondo/slow_run.hpp>
#include <rondo/statistics.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>
#include <rondo/timer_info.hpp>

namespace rondo {

class trace;

/// The result of cancel().
enum class cancel_result {
  cancelled,  ///< the timer never runs again, and its callable is destroyed
  running,    ///< a run is in progress; it continues to its end and is the last
  gone        ///< the timer has ended or stop() returned it, or the id names no timer of this scheduler
};

/// A timer that stop() returned. Call `work()` to run it by hand.
struct unfired {
  timer_id id;  ///< no longer identifies a timer: cancel() returns `gone` for it
  /// Its deadline. For a periodic timer, the deadline of its oldest job that has not started, or else of its next run.
  time_point due;
  task work;              ///< never empty
  std::string name = {};  ///< the name in its timer_options; empty if it has none
};

/// The configuration of a scheduler. New members are always appended.
struct options {
  /// The resolution: a task starts at the first tick at or after its deadline, never before the deadline. Ticks without
  /// work cost nothing, so a small tick is fine. If it is not positive, the constructor throws std::invalid_argument.
  duration tick = std::chrono::milliseconds(1);
  /// The number of buckets of the wheel, rounded up to a power of two. Any number works for any delay, and 512 suits
  /// nearly all schedulers; the constructor of rondo::wheel documents what more buckets cost and gain. A bucket takes
  /// about 160 bytes: 512 take 0.1 MB, 32,768 take 5 MB. If it is 0 or more than 2^20, the constructor throws
  /// std::invalid_argument.
  std::size_t buckets = 512;
  /// The maximum number of pending timers; scheduling one more throws capacity_error. The limit is exact even when
  /// threads race for the last one. Any limit except `unlimited` costs an atomic counter.
  std::size_t max_pending = unlimited;
  /// Runs the tasks. If empty, they run inline, on the driver.
  executor run_on = {};
  /// Called with any exception thrown by a task (except one that runs inline with propagate_exceptions), an executor,
  /// `on_slow`, `on_rejected`, or a polled_timer's `on_earlier`. If `on_error` is empty or throws itself, one line is
  /// written to std::cerr.
  std::function<void(std::exception_ptr, const firing&)> on_error = {};
  /// The name of the driver thread, truncated to what the system allows (Linux: 15 characters).
  std::string name = "rondo";
  /// A watchdog: each run that takes longer than this is reported to `on_slow`, because a slow task on the driver
  /// delays all others. By default no run is reported. If slow_after is negative, the constructor throws
  /// std::invalid_argument.
  duration slow_after = duration::max();
  /// Called after each slow run, on the thread that ran it; if the run was the timer's last, before its callable is
  /// destroyed. If `on_slow` is empty, one line is written to std::cerr. Exceptions that it throws are reported to
  /// `on_error`.
  std::function<void(const slow_run&)> on_slow = {};
  /// Called for each run that does not happen because the executor destroyed its job without calling it, as a full pool
  /// does. It is not called if the timer was cancelled or rescheduled, or the scheduler was stopped, before that. It
  /// runs on the thread that destroyed the job (on the driver if that was before the executor returned), once the timer
  /// has ended or waits for its next run. `lateness` is measured at the time when the job was submitted. Exceptions
  /// that it throws are reported to `on_error`. If it is empty, rejected runs are only counted, in
  /// statistics::rejected. A rejected run is lost, except one of a wall-clock timer (rondo/calendar.hpp): the timer submits it
  /// again each second until it starts. Each of its points is reported and counted once.
  std::function<void(const firing&)> on_rejected = {};
  /// If true, an exception thrown by a task that runs inline propagates out of the call that drives the scheduler:
  /// polled_timer::poll(), event_fd::run_due(), manual_timer::advance(), advance_to_next() or drain(). It is not
  /// reported to `on_error`. When it propagates, the run is over and counted as `failed`: a periodic timer waits for
  /// its next run, a one-shot is gone. Tasks that were due and have not run stay due: call again. Tasks that run on an
  /// executor, even one that runs jobs at once, still report to `on_error`; so do executors and handlers that throw.
  /// This option is for loops that handle all exceptions in one place. A `timer`, whose thread has no caller, refuses
  /// it: its constructor throws std::invalid_argument.
  bool propagate_exceptions = false;
  /// Records what the scheduler does: see rondo/trace.hpp. Several schedulers may share one. By default nothing is
  /// recorded.
  std::shared_ptr<trace> traced_by = {};
};

/// Runs tasks at given times. Three classes derive from it: `timer` has its own thread, `polled_timer` is driven by
/// your event loop, and `manual_timer` runs on virtual time.
///
/// - Threads: all members of this class may be called from any thread and from inside tasks. *Inside* means on a thread
///   whose stack contains one of these: a task of this scheduler, the destruction of a task's callable after a run, a
///   call that has requested the stop of a run and runs its stop callbacks, or a call of the scheduler's `on_error`,
///   `on_slow`, `on_rejected`, `run_on` or `on_earlier`.
/// - Deadlines: a task never starts before its exact deadline. A deadline belongs to the first tick at or after it
///   (ticks count from the scheduler's start). If it is not later than now, it belongs to no later tick than the current
///   one, and its task runs in the driver's next pass, never inside the scheduling call. Earlier ticks run first, even after a
///   stall; within a tick, tasks run in the order in which the scheduling calls took effect. Work that becomes due
///   because of a task of one pass runs in the next pass.
/// - The largest duration, and a deadline past the end of the clock, mean *never*: such a timer is accepted, pending
///   and cancellable, but it does not fire, and next_due() ignores it. Durations of any unit are rounded up and
///   saturate; NaN throws std::invalid_argument.
/// - A timer is *pending* if it is a one-shot that has not started (even if an executor already has its job) or a
///   periodic timer that has not ended. pending(), next_due() and stats() are exact when no other call is in progress.
/// - No user code (a task, its destructor, a handler, an executor) runs while a lock of the library is held.
/// - Cost: scheduling and cancelling take amortised O(1) time. In the long run they do not allocate for callables of up
///   to 48 bytes. The memory of an ended timer, 128 bytes, is kept for later timers until shrink_to_fit() is
///   called.
/// - The clock is steady_clock: it does not follow the wall clock. On Linux it stops while the machine is suspended, so
///   timers then fire later by the wall clock, and none of their runs is missed. After a jump (the clock kept running
///   during a suspension, the process was stopped, or the driver was not given a processor) everything that became due
///   runs in the next pass, late and in order, and periodic timers follow their recurrence::on_missed().
class RONDO_EXPORT scheduler : public scheduling_calls {
 public:
  /// The clock of all deadlines. A manual_timer uses its time points for virtual time.
  using clock = std::chrono::steady_clock;

  /// Stops the scheduler, waits as stop() does, and destroys what has not fired. Called from inside, it waits for
  /// everything except what is on its own stack. Tasks that may run meanwhile must use a reference to the scheduler: a
  /// std::optional or std::unique_ptr that holds it may already be empty. Destroys the handlers, too: what there is to
  /// report of a run on its own stack goes to std::cerr afterwards, as if there were none.
  virtual ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  /// Ends a timer. A run that has not started will not start, even if an executor already has its job. The callable is
  /// destroyed before cancel() returns, on this thread, unless it is running: then it is destroyed when that run ends,
  /// and until then every cancel() of the timer returns `running`.
  ///
  /// If it is running and its task takes a std::stop_token, cancel() requests the stop of all its runs in progress. The
  /// stop callbacks run on this thread, with no lock held, and are *inside* a run of that timer. cancel_and_wait(),
  /// stop() and the destructor request it in the same way, before they wait; reschedule_*() and drain() do not.
  /// A stop callback must not destroy the scheduler while the run is in progress on another thread: the destructor would
  /// wait for the run, and the run for the end of its callback.
  cancel_result cancel(timer_id id);

  /// Cancels, and returns when no run of the timer is in progress and its callable is destroyed. Called from inside one
  /// of the timer's own runs, it does not wait. It deadlocks if two tasks wait for each other in this way, or if it is
  /// called while holding a mutex that the task locks. A checked build reports a call that has waited for five seconds.
  cancel_result cancel_and_wait(timer_id id);

  ///@{
  /// Moves a pending timer as if it had just been scheduled. For a periodic timer it moves the next run, even from
  /// inside one of its runs, and the grid continues from there. A job that an executor has not started yet is taken
  /// back. Returns false if the timer is not pending. Strong guarantee.
  bool reschedule_after(timer_id id, any_duration delay);
  bool reschedule_at(timer_id id, any_time_point due);
  ///@}

  /// Whether the timer is pending, as defined above. O(1).
  bool pending(timer_id id) const;
  /// The number of pending timers. Adds up a few counters; the cost does not depend on the number of timers.
  std::size_t pending() const noexcept;

  /// The exact deadline of the run that the timer waits for; time_point::max() if it is never due. Returns std::nullopt
  /// if the timer is not pending or waits for no point in time: an executor has its only run, or its next run waits for
  /// the end of one in progress. O(1).
  std::optional<time_point> due(timer_id id) const;

  /// The timers that are pending or have runs in progress, ordered by deadline; those that are never due, and then
  /// those that wait for no point in time, come last. For status pages and debugging: O(n log n) for n timers. Other
  /// calls continue during this one: a timer that is pending throughout is listed once, as it was at some moment.
  /// Throws std::bad_alloc.
  std::vector<timer_info> list() const;

  /// When the driver next has work: the beginning of a tick, which may be in the past. Returns std::nullopt if no timer
  /// is going to fire.
  std::optional<time_point> next_due() const;

  /// The scheduler's current time: that of steady_clock, or the virtual time of a manual_timer.
  time_point now() const noexcept;

  /// Ends all timers and returns those that are pending, ordered by deadline (within a tick in the order of scheduling;
  /// those that are never due last). Called from inside, it does not return a periodic timer that has a run in progress.
  /// After it has returned, no run starts. Unless it was called from inside, no run is in progress either, nor any call
  /// of `run_on` or of a handler. Requests the stop of the runs in progress, as cancel() does. Idempotent. Concurrent
  /// calls all wait, and one of them gets the timers. Throws std::bad_alloc if there is no memory for the list: nothing
  /// is lost, so call it again.
  std::vector<unfired> stop();

  /// As stop(), but waits for work in progress for at most `limit` of real time; a negative limit does not wait.
  /// Returns std::nullopt if something is still in progress. The scheduler is stopped all the same, no further run
  /// starts, and a later call gets the timers.
  std::optional<std::vector<unfired>> stop(any_duration limit);

  /// Whether stop(), drain() or the destructor has begun. Long tasks can check it to end early, so that nobody has to
  /// wait for them.
  bool stopping() const noexcept;

  /// Ends the scheduler gently: periodic timers end (a run in progress is the last), new timers are refused, and
  /// one-shots fire when they are due. Returns true once no timer is pending and no task is running; then the scheduler
  /// is stopped, and timers that are never due are left for stop() to return. Returns false when `limit` has passed on
  /// the scheduler's clock: draining continues, so call it again, or call stop() for the rest.
  ///
  /// It advances a manual_timer and polls a polled_timer. With a manual_timer it waits for jobs on other threads in
  /// real time, for at most `limit`. Several threads may call it at once. Throws std::logic_error from inside,
  /// std::bad_alloc, and what a task throws with options::propagate_exceptions; after the latter two, call it again.
  /// (When it returns, a cancel() in progress on another thread may still be destroying its callable. If a thread cancels
  /// the last timer just as drain() begins, drain() may overlook that at first. It looks again after 1 ms, 3 ms, 7 ms and so
  /// on.)
  bool drain(any_duration limit);

  /// Counters and histograms of what the scheduler has done so far. Costs as much as copying two histograms, regardless
  /// of the number of timers. Throws std::bad_alloc.
  statistics stats() const;

  /// Draws the wheel, for debugging: what each bucket holds, in the order of the delay queue, how many timers are
  /// further away, what is not in the wheel, and the first timers that have a name. At most about sixty lines, in
  /// UTF-8; the format may change. While other calls are in progress, it shows each part of the wheel as it was when
  /// that part was read. Costs as much as list(). Throws what the stream throws, and std::bad_alloc.
  void dump(std::ostream& out) const;

  /// Releases memory left over from a burst of timers: to operator delete and, with glibc, from there to the system (by
  /// malloc_trim(), so also what other parts of the process have freed). Ids stay valid: those of ended timers remain
  /// `gone` forever. Timers and their order do not change either.
  ///
  /// What remains: each pending timer keeps the memory of up to 63 neighbours (8 KiB), and so does each of up to 128
  /// ended timers for every other thread that has scheduled timers. While a pass is in progress, all memory stays of a
  /// thread whose timers are still to run in it; a list of due timers keeps at most 1.5 MB. Measured: 206 MB after a million
  /// timers have ended, and 5 MB after this call, as a process with a new scheduler takes.
  ///
  /// Runs no user code and throws nothing: if it cannot allocate its own work space (one byte for 64 timers), it
  /// releases less. O(buckets + timers that were pending at once): a tenth to half a second after a million timers.
  /// Other calls need not wait that long, but those about timers of one thread wait while that thread's wheel is searched for
  /// cancelled timers, if it has any left.
  void shrink_to_fit();

 protected:
  /// For the three classes that derive from it.
  explicit scheduler(std::shared_ptr<detail::core> core) noexcept;
};

}  // namespace rondo
