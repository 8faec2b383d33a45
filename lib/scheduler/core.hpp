// Tasks over a wheel: all that a scheduler does but for making time pass.
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
#include <rondo/detail/wheel_core.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/timer_info.hpp>

#include "scheduler/call_checks.hpp"
#include "scheduler/in_flight.hpp"
#include "scheduler/pending_limit.hpp"
#include "scheduler/phase.hpp"
#include "scheduler/ready_list.hpp"
#include "scheduler/record.hpp"
#include "scheduler/record_pool.hpp"
#include "scheduler/retry_list.hpp"
#include "scheduler/run_meter.hpp"
#include "scheduler/stack_marker.hpp"
#include "scheduler/timer_group.hpp"
#include "scheduler/traps.hpp"
#include "scheduler/user_handlers.hpp"
#include "sync/threads.hpp"
#include "sync/wait_point.hpp"

namespace rondo::detail {

/// The longest delay means never, also before the clock's epoch, from where it would not reach the clock's end.
constexpr time_point deadline_after(time_point now, duration delay) noexcept {
  return delay == duration::max() ? time_point::max() : saturating_add(now, delay);
}

/// The one body of work behind all schedulers. Drivers derive from it: they say what time it is, call run_pass() when
/// something is due, and are told when that moves earlier.
///
/// A timer goes this way; each step is one function, in the file named below it:
///
///     schedule() ─> wheel ─> ready list ─> dispatch() ─> run() ──────────────────────────> end_run() ─> freed
///     _schedule     ^        run_pass()    _dispatch  └> submit() ─> executor ─> start() ─┘     │
///                   │                                    _submit                                │
///                   └─────────────────────── rearm(), of a periodic one ────────────────────────┘
///
/// From each of these places finish() takes it out when it is to end (_finish); stop() finds it in each (_stop).
///
/// Locks, in the order in which they may be nested: the wait point's, a record's (and then that of the new timer that comes
/// in its place, and that nobody else knows), a stripe's of the wheel (or two, in the order of their addresses), then one
/// of: the delay queue's, the ready list's, the retry list's, a group's, a shard's of the pool and then the depot's. Calls
/// with a `remainder` may be made under locks of what stands on top. None is held while user code runs. No call takes a
/// lock that all callers share, except the delay queue's when a bucket gets its first timer, or a stripe an earlier far
/// one, and the depot's once in 64 calls at most.
template <class Sync>
class basic_core : public job_host, public std::enable_shared_from_this<basic_core<Sync>> {
 public:
  basic_core(const options&, time_point start);
  ~basic_core() override = default;
  basic_core(const basic_core&) = delete;
  basic_core& operator=(const basic_core&) = delete;

  using record_type = record<Sync>;

  // What users ask for: see rondo::scheduler. Those that are called most are one piece of code each, as a fifth of their
  // instructions would be for calls within them.

  /// How a timer is scheduled: take_record() gives a free record that only the caller knows, and that counts as a timer.
  /// The caller fills in the task, and perhaps its options, and calls schedule(). If that or something before it throws,
  /// the caller calls discard(). Throws stopped_error, capacity_error and std::bad_alloc.
  [[gnu::flatten]] record_type& take_record();
  [[gnu::flatten]] timer_id schedule(record_type&, time_point due, time_point now);
  timer_id schedule(record_type&, const recurrence&, time_point now);
  void discard(record_type&) noexcept;

  /// As schedule() with a recurrence, but for the last step: returns when the first run is due.
  time_point make_periodic(record_type&, const recurrence&, time_point now);

  [[gnu::flatten]] cancel_result cancel(timer_id);
  cancel_result cancel_and_wait(timer_id);
  bool reschedule(timer_id, time_point due, time_point now);
  bool pending(timer_id) const;
  std::size_t pending() const noexcept;
  std::optional<time_point> due(timer_id);
  std::vector<timer_info> list();
  std::optional<time_point> next_due();
  std::vector<unfired> stop() { return *stop_by(time_point::max()); }
  /// None: what is in progress was not over at `end`, in real time.
  std::optional<std::vector<unfired>> stop_by(time_point end);
  bool drain(duration limit);
  statistics stats() const;
  void dump(std::ostream&);
  void shrink_to_fit() noexcept;
  virtual time_point now() const noexcept = 0;

  // What stands on top asks for: see timer_group.

  using group_type = timer_group<Sync>;

  /// What is left of a call that was made under a lock of the caller's: the part that may run user code.
  struct remainder {
    record_type* ended = nullptr;  // what this timer owns is to be destroyed
    bool wakes = false;            // the driver is to be told that next_due() has moved earlier
  };
  /// Does what is left of the call. Precondition: no lock is held, and the caller keeps this core alive.
  void finish(const remainder&) noexcept;

  /// How a member of a group is scheduled: as with take_record(), but a place under the limit is claimed only by the last
  /// call, and only if no other timer makes place.
  record_type& take_member_record();
  /// The new timer comes in the place of the member `in_place_of`, which is cancelled, if that is pending: in one step, so
  /// its task does not start any more, and at the limit no place is needed. `tag` is for the group. Calls no user code.
  /// Throws stopped_error, also if the group is closed, capacity_error and std::bad_alloc; strong guarantee.
  timer_id schedule_member(record_type&, time_point due, time_point now, group_type&, void* tag,
                           timer_id in_place_of, remainder&);
  void discard_member(record_type&) noexcept;

  // The calls of that name, of a member, but for what may run user code.
  cancel_result cancel(timer_id, remainder&) noexcept;
  bool reschedule(timer_id, time_point due, time_point now, remainder&);

  bool belongs(timer_id, const group_type&) const;
  std::size_t pending(group_type&) const;
  /// Goes on by one member: returns its id if it has that tag, that of no timer if it has another one, and none if there
  /// was no more. Precondition: what guards the tags is locked.
  std::optional<timer_id> next_tagged(typename group_type::cursor& members, const void* tag) const;
  /// Whether the caller's stack holds a run of a member with that tag, or the destruction of its callable.
  bool inside_tagged(const group_type&, const void* tag) const;
  /// Cancels all that are members as it begins.
  void cancel_all(group_type&);
  /// Closes the group, cancels all members, and returns when they are gone, except for those on the caller's stack.
  void close(group_type&);

  /// What the destructor of a scheduler does: stops, waits, ends the driver, destroys what was not fired and the user's
  /// handlers.
  void retire() noexcept;

  // What drivers ask for.

  /// Runs, or submits to the executor, what is due at `until` and now; at most `limit` of it, and what is left then is
  /// for the next call. Returns how many that were. Throws std::bad_alloc and, if users want that, what a task throws:
  /// call again.
  std::size_t run_pass(time_point until, std::size_t limit);

  /// To be called in a child made by fork(), where there is no driver: this is only a copy, of what was perhaps just
  /// changing, and its locks may never be free. All that users may call says so or does nothing from now on, and does not
  /// look at that; the callables are never destroyed. Precondition: there is one thread.
  void abandon() noexcept;
  bool abandoned() const noexcept { return phase_.abandoned(); }

  bool stopped() const noexcept { return phase_.stopped(); }
  bool stopping() const noexcept { return phase_.ending(); }
  bool draining() const noexcept { return phase_.draining(); }
  /// std::logic_error if the caller is inside.
  void refuse_inside(const char* call) const;

  // What checked builds do around each call of the user's, each pass and each job: see checked_call.
  void begin_call() noexcept { checks_.begin(); }
  void end_call(const char* name) noexcept;

  // What jobs ask for.
  void start(const job_ticket&) noexcept override;
  void drop(const job_ticket&) noexcept override;

 protected:
  /// Called, with no lock held, when next_due() may have moved earlier, and when the driver is to notice stop().
  virtual void next_due_moved_earlier() noexcept {}
  virtual std::uint64_t wakeups() const noexcept { return 0; }
  /// Called as the scheduler is destroyed, when it is stopped or abandoned.
  virtual void end_driver() noexcept {}
  /// Makes time pass until drained(), or for `limit`, or lets the driver do it; returns which it was.
  virtual bool pass_time_until_drained(duration limit);

  /// Whether drain() has nothing more to wait for.
  bool drained() const noexcept;
  /// Where one waits until something has ended; a driver may wait there, too.
  wait_point<Sync>& endings() noexcept { return endings_; }

  /// Calls a handler of the user, unless stopped; `listener` is what stack_marker::inside() is asked for.
  void call_out(const void* listener, const std::function<void()>& handler) noexcept;

 private:
  using record_lock = std::unique_lock<typename Sync::record_mutex>;
  using ready_entry = typename ready_list<Sync>::entry;
  using marker = stack_marker;

  // Tests with locks of their own check at each step themselves.
  static constexpr bool is_checked = checks && std::is_same_v<Sync, threads>;

  /// What a pass of the driver knows.
  struct pass {
    const user_handlers& user;
    time_point reading;              // of the clock; taken after each run, and the start of the next
    std::exception_ptr thrown = {};  // by a task: leaves the pass
  };

  /// What comes of a timer in the pass.
  enum class verdict : std::uint8_t {
    stale,    // nothing: it was cancelled or moved, or the scheduler is stopped
    dropped,  // no run: its point overlaps a run in progress
    ended,    // no run, nor will there be one
    run_here,
    submit,
  };

  struct dispatch_result {
    verdict what = verdict::stale;
    firing fact;
    std::uint64_t overlapped = 0;  // points that were dropped
    // To submit:
    run_ticket ticket = 0;
    std::shared_ptr<const timer_options> own;  // the timer's, or null
  };

  /// Where stop() finds a timer, in the order in which those of one tick would have run.
  enum class found_in { no_queue, pass, late_in_pass, wheel };

  /// A timer that stop() has found, not yet taken.
  struct candidate {
    record_type* timer;
    std::uint64_t arming;
    tick_number tick;
    found_in where;
    std::uint64_t order;

    /// Whether the timer, locked, still is what it was. (Whether it is live is asked last: if the record serves another
    /// timer by now, others write that.)
    bool is_current() const noexcept {
      return timer->arming.load(std::memory_order_relaxed) == arming && timer->state.live();
    }
  };

  class wake_hook;
  class insert_hooks;
  class move_hooks;
  class in_flight_guard;

  // core_schedule.hpp
  [[noreturn]] void refuse_stopped() const;
  record_type* find(timer_id) const noexcept;
  timer_id id_of(const record_type& r) const noexcept {
    return timer_id_access::make(number_, r.slot, r.generation);
  }
  std::uint64_t next_order() noexcept { return orders_.fetch_add(1, std::memory_order_relaxed) + 1; }
  bool publish(record_type&, tick_number, insert_hooks&);
  bool publish_locked(record_type&, tick_number, insert_hooks&);
  bool reschedule(timer_id, time_point due, time_point now, move_hooks&);
  bool arm(record_type&, time_point deadline, tick_number, move_hooks&);
  void arm_surely(record_type&, time_point deadline, tick_number, move_hooks&) noexcept;
  void disarm(record_type&) noexcept;
  void leave_lists(record_type&) noexcept;
  void set_never_due(record_type&) noexcept;

  // core_dispatch.hpp
  void collect(tick_number until);
  void retry_insertions(tick_number until) noexcept;
  // One piece of code: with calls a one-shot would take half as many instructions again from the wheel to its end.
  [[gnu::flatten]] bool begin(const ready_entry&, pass&);
  dispatch_result dispatch(const ready_entry&, pass&);
  void dispatch_one_shot(record_lock&, record_type&, dispatch_result&) noexcept;
  void dispatch_periodic(record_lock&, const ready_entry&, time_point reading, dispatch_result&);
  void await(record_type&, const repetition::step&) noexcept;
  void begin_run(record_lock&, record_type&) noexcept;
  time_point run(record_type&, const firing&, time_point start, std::exception_ptr* thrown) noexcept;
  void end_run(record_type&, time_point ended) noexcept;
  void rearm(record_type&, time_point ended, move_hooks&) noexcept;

  // core_submit.hpp
  void submit(record_type&, dispatch_result&, const user_handlers&) noexcept;
  enum class failure { rejected, threw };
  void drop_submission(record_type&, run_ticket, firing, failure) noexcept;

  // core_finish.hpp
  bool cancel_waiting(record_type&, std::uint64_t generation) noexcept;
  template <class Still>
  bool stop_waiting(record_type&, Still&&) noexcept;
  void end(record_type&, ending) noexcept;
  void finish(record_lock&, record_type&, ending) noexcept;
  template <class Count>
  void dispose(record_lock&, record_type&, stack_marker::kind, Count&&) noexcept;
  void destroy(record_lock&, record_type&, stack_marker::kind) noexcept;
  template <class Count>
  void free_record(record_lock&, record_type&, Count&&) noexcept;

  template <class Wait>
  bool wait_watched(const char* call, time_point end, Wait&& wait);

  // core_group.hpp
  record_type* lock_both(record_type& made, record_lock& made_hold, timer_id, record_lock& old_hold) const;
  void publish_member(record_type&, time_point due, tick_number, group_type&, void* tag, insert_hooks&);
  void end_at_once(record_type&, ending, remainder&) noexcept;
  template <class Visit>
  void for_each_member(group_type&, Visit&&) const;

  // core_stop.hpp
  void find_unfired(std::vector<candidate>&);
  void find_unqueued(record_type&, std::vector<candidate>&);
  std::vector<std::string> names_of(const std::vector<candidate>&) const;
  void hand_back(const candidate&, std::string&& name, std::vector<unfired>&);
  void end_periodic_timers(std::vector<candidate>&);
  void stop_one_by_one() noexcept;

  // core_query.hpp
  std::optional<time_point> deadline_of(record_type&, std::uint64_t generation);
  static bool has_entry(const std::vector<ready_entry>& in_pass, const record_type&);
  bool list_timer(record_type&, const std::vector<ready_entry>& in_pass, std::vector<timer_info>&);
  std::string fault();
  std::string fault_when_quiescent();

  std::uint32_t number_;  // of this scheduler in the process; changes when it is abandoned
  const tick_grid grid_;
  wheel_core<Sync> wheel_;
  record_pool<Sync> pool_;
  ready_list<Sync> ready_;  // filled and emptied by the driver alone
  retry_list<Sync> retries_;
  run_meter<Sync> meter_;
  call_checks<Sync> checks_;
  pending_limit<Sync> limit_;
  shared_handlers<Sync> handlers_;
  executor_call<Sync> executor_call_;
  phase<Sync> phase_;
  wait_point<Sync> endings_;
  in_flight<Sync> in_flight_{endings_};
  unfired_claim<Sync> unfired_{endings_};
  // The last number given out: to a submitted run, as its ticket, or to a timer that is never due.
  typename Sync::template atomic<std::uint64_t> orders_{0};
  typename Sync::template atomic<std::size_t> never_due_{0};  // how many timers are
};

/// The core of the schedulers that users get.
class core : public basic_core<threads> {
 public:
  using basic_core::basic_core;
};

/// The public headers know a record by its address alone.
inline core::record_type& record_at(void* r) noexcept { return *static_cast<core::record_type*>(r); }

extern template class basic_core<threads>;

}  // namespace rondo::detail
