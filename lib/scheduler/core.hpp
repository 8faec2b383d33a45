// Tasks over a wheel: everything that a scheduler does except for making time pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/timer_info.hpp>

#include "scheduler/checked.hpp"
#include "scheduler/ready_list.hpp"
#include "scheduler/record.hpp"
#include "scheduler/run_meter.hpp"
#include "scheduler/shards.hpp"
#include "scheduler/stack_marker.hpp"
#include "scheduler/timer_group.hpp"
#include "scheduler/user_handlers.hpp"
#include "sync/sync.hpp"
#include "sync/wait_point.hpp"
#include "trace/recorder.hpp"

namespace rondo::detail {

/// The longest delay means never, even before the clock's epoch, from where it would not reach the clock's end.
constexpr time_point deadline_after(time_point now, duration delay) noexcept {
  return delay == duration::max() ? time_point::max() : saturating_add(now, delay);
}

/// The common core of all schedulers. Drivers derive from it: they provide the time, call run_pass() when something is
/// due, and are notified when the next deadline moves earlier.
///
/// A timer takes this path. Each step is one function.
///
///     schedule() ─> wheel ─> ready list ─> dispatch() ─> run() ──────────────────────────> end_run() ─> freed
///                   ^        run_pass()              └> submit() ─> executor ─> start() ─┘     │
///                   └────────────────── wait_after_run(), if it is periodic ──────────────────────┘
///
/// finish() takes a timer that ends out of any of these; stop() finds it in any of them. Each arrow is one step
/// under the lock of the timer's shard.
///
/// Locks, in the order in which they may be nested: the wait point's, a shard's (or two, those of a timer and of the new
/// timer that replaces it, in the order of their addresses), then one of: the ready list's, a group's, that of the table of
/// records. Components on top may make calls with a `remainder` under their own locks. No lock is held while user code runs.
/// No call that schedules or cancels takes a lock that all callers share, except for that of the table, at most once in 64
/// calls.
class core : public job_host, public std::enable_shared_from_this<core> {
 public:
  /// Of two readings of a real clock, the later one shows which of two timers was scheduled later. Virtual time stands
  /// still, so timers are counted.
  enum class kind_of_time : std::uint8_t { real, virtual_time };
  core(const options&, time_point start, kind_of_time = kind_of_time::real);
  ~core() override = default;
  core(const core&) = delete;
  core& operator=(const core&) = delete;

  // What users call: see rondo::scheduler. The most frequent functions are flattened, because calls within them would
  // account for a fifth of their instructions.

  /// How a timer is scheduled: take_record() returns a free record that only the caller knows and that counts as a
  /// timer. The caller fills in the task, and perhaps its options, and calls schedule(), or, for a timer that will have an
  /// owner, schedule_member() or replace(). If that or anything before it throws, the caller calls discard(). A timer
  /// takes its permit under max_pending first; one with an owner takes it last, and only if it replaces no other timer.
  /// Throws stopped_error, capacity_error and std::bad_alloc.
  [[gnu::flatten]] record& take_record(bool is_owned);
  [[gnu::flatten]] timer_id schedule(record&, time_point due, time_point now);
  void discard(record&, bool is_owned) noexcept;

  /// Called before schedule(), for a timer that runs as `when` says. Returns when the first run is due.
  time_point make_periodic(record&, const recurrence& when, time_point now);

  [[gnu::flatten]] cancel_result cancel(timer_id);
  cancel_result cancel_and_wait(timer_id);
  /// Requests the stop of that timer's runs in progress, if its task can be interrupted. Runs user code.
  void interrupt(timer_id) noexcept;
  bool reschedule(timer_id, time_point due, time_point now);
  bool pending(timer_id) const;
  std::size_t pending() const noexcept;
  std::optional<time_point> due(timer_id);
  std::vector<timer_info> list();
  std::optional<time_point> next_due();
  std::vector<unfired> stop() { return *stop_by(time_point::max()); }
  /// Returns none if work was still in progress at `end`, in real time.
  std::optional<std::vector<unfired>> stop_by(time_point end);
  bool drain(duration limit);
  statistics stats() const;
  void dump(std::ostream&);
  void shrink_to_fit() noexcept;
  virtual time_point now() const noexcept = 0;

  // What components on top call: see timer_owner.

  /// The rest of a call that was made under a lock of the caller: the part that may run user code.
  struct remainder {
    record* ended = nullptr;  // what this timer owns must be destroyed
    bool wakes = false;       // the driver must be notified that next_due() has moved earlier
    bool has_ended =
        false;  // the timer of an owner has ended, with no run in progress; leave() is not called
  };
  /// Does the rest of the call. Preconditions: no lock is held, and the caller keeps this core alive.
  void finish(const remainder&) noexcept;

  /// Throws stopped_error (also if the group is closed), capacity_error and std::bad_alloc; strong guarantee.
  timer_id schedule_member(record&, time_point due, time_point now, timer_group&);
  /// If the timer `old`, of the same owner, is pending, the new timer replaces it, and it is cancelled. This is one step, so
  /// the old task no longer starts, and no place is needed at the limit. `tag` is for the owner. Calls no user code. Throws
  /// stopped_error, capacity_error and std::bad_alloc; strong guarantee.
  [[gnu::flatten]] timer_id replace(timer_id old, record&, time_point due, time_point now, timer_owner&,
                                    std::uint32_t tag, remainder&);

  // As the calls of the same name, but without the part that may run user code. If cancel() returns `running`, the caller
  // calls interrupt() afterwards.
  cancel_result cancel(timer_id, remainder&) noexcept;
  bool reschedule(timer_id, time_point due, time_point now, remainder&);
  /// As cancel() with a remainder, but the owner need not be told.
  cancel_result cancel_for_owner(timer_id, remainder&) noexcept;
  cancel_result cancel_member(timer_id, timer_group&);

  timer_id id_of(std::uint32_t slot, std::uint64_t generation) const noexcept {
    return timer_id_access::make(number_, slot, generation);
  }
  bool belongs(timer_id, const timer_group&) const;
  std::size_t pending(timer_group&) const;
  /// Whether a run of that timer, or the destruction of its callable, is on the caller's stack.
  bool inside(timer_id) const;
  /// As inside(), for any timer of that owner with that tag.
  bool inside_tagged(const timer_owner&, std::uint32_t tag) const;
  /// Cancels all timers that are members when it begins.
  void cancel_all(timer_group&);
  /// Closes the group, cancels all members, and returns when they are gone, except for those on the caller's stack.
  void close(timer_group&);

  /// What the destructor of a scheduler does: stops, waits, ends the driver, and destroys what was not fired and the
  /// user's handlers.
  void retire() noexcept;

  // What drivers call.

  /// Runs, or submits to the executor, what is due both at `until` and now, at most `limit` runs; the rest is left for
  /// the next call. Returns the number of runs. Throws std::bad_alloc and, if users want that, what a task throws; call
  /// again after that.
  std::size_t run_pass(time_point until, std::size_t limit, woken why = woken::polled);

  /// Must be called in a child made by fork(), where there is no driver: this is only a copy of a core that may have
  /// been changing, and its locks may never be free. From now on, everything that users may call reports this or does
  /// nothing, without reading the copy. The callables are never destroyed. Precondition: there is only one thread.
  void abandon() noexcept;
  bool abandoned() const noexcept { return abandoned_; }

  // Memory order: whoever depends on one of these holds the lock of a shard, which stop() and drain() take after they have
  // raised the flag; or is inside a pass, a job or a call of a handler; or sleeps where it is woken.
  bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }
  bool stopping() const noexcept { return stopped() || draining(); }
  bool draining() const noexcept { return draining_.load(std::memory_order_relaxed); }
  /// Throws std::logic_error if the caller is inside.
  void refuse_inside(const char* call) const;

  // What checked builds do around each call by the user, each pass and each job: see checked_call.
  void begin_call() noexcept { checks_.begin(); }
  void end_call(const char* name) noexcept;

  // What jobs call.
  void start(const job_ticket&) noexcept override;
  void drop(const job_ticket&) noexcept override;

 protected:
  /// Called, with no lock held, when next_due() may have moved earlier, and when the driver must notice stop().
  virtual void next_due_moved_earlier() noexcept {}
  virtual std::uint64_t wakeups() const noexcept { return 0; }
  /// Called while the scheduler is being destroyed, when it is stopped or abandoned.
  virtual void end_driver() noexcept {}
  /// Makes time pass, or lets the driver do so, until drained() or for `limit`. Returns whether it is drained. Where it
  /// waits for endings(), it also looks by itself: see cancel(timer_id).
  virtual bool pass_time_until_drained(duration limit);

  /// Whether drain() has nothing left to wait for.
  bool drained() noexcept;
  /// Where threads wait until something has ended. A driver may wait there, too.
  wait_point& endings() noexcept { return endings_; }

  /// Calls a handler of the user unless stopped. `listener` is what stack_marker::inside() is asked about.
  void call_out(const void* listener, const std::function<void()>& handler) noexcept;

 private:
  using ready_entry = ready_list::entry;
  using marker = stack_marker;

  static constexpr bool is_checked = checks && sync::can_check;

  /// The state of a driver's pass.
  struct pass {
    const user_handlers& user;
    time_point reading;              // of the clock; taken after each run, and the start of the next
    std::exception_ptr thrown = {};  // by a task: propagates from the pass
  };

  /// What becomes of a timer in the pass.
  enum class verdict : std::uint8_t {
    stale,    // nothing: it was cancelled or moved, or the scheduler is stopped
    dropped,  // no run: its point overlaps a run in progress
    ended,    // no run, and none will follow
    run_here,
    submit,
  };

  struct dispatch_result {
    verdict what = verdict::stale;
    firing fact;
    // Only to submit:
    run_ticket ticket = 0;
    std::shared_ptr<const timer_options> own;  // the timer's options, or null
  };

  /// Of several calls of stop(), one gets the timers that have not fired. The others wait until it has them.
  enum class unfired_list : std::uint8_t { unclaimed, claimed, complete };

  /// A timer that stop() has found but not yet taken.
  struct candidate {
    timer_id id;
    tick_number tick;
    waits_in where;       // `nowhere` if a run of it is submitted
    std::uint64_t order;  // among those of its tick that wait in the same
  };

  /// This core, if the driver must be woken once no lock is held any more. As soon as the shard of a timer that waits is
  /// unlocked, its task may run and destroy the scheduler, so the core is kept from before that.
  using waking = std::shared_ptr<core>;

  class in_flight_guard;
  class pass_in_progress;

  std::optional<time_point> look_for_next_due();

  // How it begins to wait.
  [[noreturn, gnu::noinline]] void refuse_stopped() const;
  [[gnu::noinline]] record& take_limited_record();
  void take_permit();
  void return_permit() noexcept;
  record* find(timer_id, shard_lock& hold) const noexcept;
  timer_id id_of(const record& r) const noexcept { return id_of(r.slot, r.generation); }
  std::uint64_t next_number() noexcept { return numbers_.fetch_add(1, relaxed) + 1; }
  /// The tick that `r`, which is not plain or new, takes for a deadline whose own tick this is.
  tick_number tick_of(const record& r, tick_number own, time_point due) const noexcept {
    return r.slack() == duration::zero() ? own : grid_.with_slack(own, due, r.slack());
  }
  void publish(shard&, record&, time_point due, tick_number, time_point now, waking&);
  bool reschedule(timer_id, time_point due, time_point now, waking&);
  void wait(shard&, record&, time_point deadline, tick_number, time_point now, waking&);
  void wait_surely(record&, time_point deadline, tick_number, time_point now, waking&) noexcept;
  void set_order(shard&, record&, time_point now) noexcept;
  void stop_waiting(record&) noexcept;
  void leave_count(record&) noexcept;

  // A pass, and one run.
  std::size_t run_collected(pass&, std::size_t limit);
  std::size_t run_collected_traced(pass&, std::size_t limit, woken why);
  void collect(tick_number until);
  template <class Visit>
  void for_each_without_memory(Visit&& visit);
  void retry_insertions(tick_number until) noexcept;
  // Flattened: with calls, a one-shot would take half as many instructions again from the wheel to its end.
  [[gnu::flatten]] bool begin(const ready_entry&, pass&);
  dispatch_result dispatch(const ready_entry&, pass&);
  void dispatch_one_shot(shard_lock&, record&, dispatch_result&) noexcept;
  void dispatch_periodic(shard_lock&, const ready_entry&, time_point reading, dispatch_result&);
  void wait_for_next(record&, const repetition::step&, time_point now) noexcept;
  void begin_run(shard_lock&, record&, std::uint64_t missed) noexcept;
  time_point run(record&, const firing&, time_point start, std::exception_ptr* thrown) noexcept;
  time_point run_traced(traced, record&, const firing&, time_point start, time_point from,
                        std::exception_ptr* thrown) noexcept;
  time_point driver_waited_from(const ready_entry&, const firing&) const noexcept;
  bool end_run(record&, time_point ended) noexcept;
  void wait_after_run(record&, time_point ended, waking&) noexcept;

  // Runs that go through an executor.
  void submit(dispatch_result&, const user_handlers&) noexcept;
  time_point submit_traced(const ready_entry&, dispatch_result&, pass&) noexcept;
  enum class failure { rejected, threw };
  void drop_submission(std::uint32_t slot, run_ticket, firing, failure) noexcept;

  // How it ends.
  [[gnu::noinline]] cancel_result cancel_any(timer_id);
  void end(record&, ending) noexcept;
  void finish(shard_lock&, record&) noexcept;
  void release(shard_lock&, record&, stack_marker::kind) noexcept;
  void free_record(shard_lock&, record&) noexcept;

  template <class Wait>
  bool wait_watched(const char* call, time_point end, Wait&& wait);

  // Timers with an owner.
  timer_id replace_in_place(timer_id old_id, record&, time_point due, time_point now, std::uint32_t tag,
                            waking&);
  record* lock_both(shard_lock& made_hold, timer_id, shard_lock& old_hold) const;
  void end_for_owner(shard_lock&, record&, ending, remainder&) noexcept;
  void publish_owned(record&, time_point due, time_point now, waking&);
  template <class Visit>
  void for_each_member(timer_group&, Visit&&) const;

  // The end of the scheduler.
  void find_unfired(std::vector<candidate>&);
  std::vector<std::string> names_of(const std::vector<candidate>&) const;
  void hand_back(const candidate&, std::string&& name, std::vector<unfired>&);
  void end_periodic_timers();
  void interrupt(record&, shard_lock&) noexcept;
  void interrupt_all() noexcept;
  template <class Is>
  bool inside_any(Is&&) const;
  void stop_one_by_one() noexcept;
  void set(unfired_list) noexcept;
  void set_stopped() noexcept;
  bool wait_for_others(std::size_t own, time_point end = time_point::max());
  std::size_t in_flight() noexcept;

  std::uint32_t number_;  // of this scheduler in the process; changes when it is abandoned
  const tick_grid grid_;
  shards shards_;
  ready_list ready_;  // only the driver fills and empties it
  run_meter meter_;
  call_checks checks_;
  shared_handlers handlers_;
  executor_call executor_call_;
  const recorder trace_;
  const duration slow_after_;
  const std::size_t max_pending_;
  const bool is_virtual_;
  sync::atomic<std::size_t> permits_taken_{0};  // unless the limit is `unlimited`

  // The end. Both flags only rise: from the first one on there are no new timers, and periodic ones end; from the
  // second one on there are no new runs, either.
  sync::atomic<bool> draining_{false};
  sync::atomic<bool> stopped_{false};
  bool abandoned_ = false;  // changes only while there is one thread
  wait_point endings_;
  sync::atomic<std::size_t> in_flight_{0};  // passes, jobs and calls of handlers
  sync::atomic<unfired_list> unfired_{unfired_list::unclaimed};
  // The last number given out: to a submitted run, as its ticket. In virtual time, also to each wait.
  sync::atomic<std::uint64_t> numbers_{0};
  sync::atomic<std::uint64_t> passes_{0};        // how often one began or ended; odd while one is in progress
  sync::atomic<bool> asks_again_{false};         // somebody has read next_due() during a pass
  sync::atomic<std::uint64_t> made_due_{0};      // how often a timer that was never due was moved, or ended
  sync::atomic<std::size_t> without_memory_{0};  // how many wait for memory; the driver reads it in each pass
  // Counted also for timers that are gone.
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> rejected_{0};
};

/// One call by the user. When it ends, a checked build verifies the scheduler, which the call may have destroyed.
class verified_call {
 public:
  verified_call(core& c, const char* name) noexcept : core_(c.shared_from_this()), name_(name) {
    core_->begin_call();
  }
  ~verified_call() { core_->end_call(name_); }
  verified_call(const verified_call&) = delete;
  verified_call& operator=(const verified_call&) = delete;

 private:
  const std::shared_ptr<core> core_;
  const char* const name_;
};

/// In other builds, a call costs nothing in addition.
struct unverified_call {
  const core& on;
  const char* name;
};

using checked_call = std::conditional_t<checks, verified_call, unverified_call>;

/// For components on top.
struct core_access {
  static const std::shared_ptr<core>& of(const scheduler& s) noexcept { return s.core_; }
};

}  // namespace rondo::detail
