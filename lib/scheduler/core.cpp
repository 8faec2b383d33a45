#include "scheduler/core.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iostream>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include <rondo/detail/new_timer.hpp>

#include "scheduler/drawing.hpp"
#include "scheduler/timer_group.hpp"
#include "values/fresh_seed.hpp"
#include "values/interruption.hpp"

namespace rondo::detail {

// How a timer begins to wait, the first time and later.

namespace {

duration checked_tick(duration tick) {
  if (tick <= duration::zero())
    throw std::invalid_argument("rondo: the tick must be positive, not " + std::to_string(tick.count()) +
                                " ns");
  return tick;
}

duration checked_slow_after(duration slow_after) {
  if (slow_after < duration::zero())
    throw std::invalid_argument("rondo: slow_after must not be negative, but is " +
                                std::to_string(slow_after.count()) + " ns");
  return slow_after;
}

std::uint32_t next_scheduler_number() noexcept {
  static std::atomic<std::uint32_t> numbers{0};
  std::uint32_t number = 0;
  while (number == 0) number = numbers.fetch_add(1, relaxed) + 1;  // 0 means none
  return number;
}

}  // namespace

core::core(const options& o, time_point start, kind_of_time time)
    : number_(next_scheduler_number()),
      grid_(checked_tick(o.tick), start),
      wheel_(o.buckets, grid_.at_or_before(start)),
      handlers_({o.run_on, o.on_error, o.on_slow, o.on_rejected, o.propagate_exceptions}),
      slow_after_(checked_slow_after(o.slow_after)),
      max_pending_(o.max_pending),
      is_virtual_(time == kind_of_time::virtual_time) {}

/// Claims a place under the limit for one more timer. Throws capacity_error if none is free.
void core::claim_place() {
  std::size_t taken = places_taken_.load(relaxed);
  do {
    if (taken >= max_pending_)
      throw capacity_error("rondo: max_pending is " + std::to_string(max_pending_) +
                           ", and that many timers are pending");
  } while (!places_taken_.compare_exchange_weak(taken, taken + 1, relaxed));
}

void core::free_place() noexcept {
  if (max_pending_ != unlimited) places_taken_.fetch_sub(1, relaxed);
}

void core::refuse_stopped() const {
  throw stopped_error(
      abandoned()
          ? "rondo: a timer was scheduled in a child made by fork(), where the scheduler has no driver"
          : "rondo: a timer was scheduled after stop() or drain()");
}

timer_id core::id_of(const record& r) const noexcept {
  return timer_id_access::make(number_, r.slot, r.generation());
}

/// The record that serves, or served, a timer of this scheduler; null for other ids.
record* core::find(const timer_id_parts& id) const noexcept {
  return id.scheduler == number_ ? pool_.find(id.slot) : nullptr;
}

record& core::take_record(bool is_member) {
  if (stopping()) refuse_stopped();
  if (is_member || max_pending_ == unlimited) return pool_.take();
  return take_limited_record();
}

/// As take_record(), for a scheduler with a limit. (Not inlined: otherwise take_record() would save registers for it.)
record& core::take_limited_record() {
  claim_place();
  try {
    return pool_.take();
  } catch (...) {
    free_place();
    throw;
  }
}

void core::discard(record& r, bool is_member) noexcept {
  const auto kept =
      shared_from_this();  // the callable that is destroyed may be the last to own the scheduler
  {
    record_lock hold(r.mutex);
    r.plain.store(false, relaxed);  // whether it is plain may not have been determined yet
    end(r, ending::refused);
    if (!is_member) free_place();
    release(hold, r, marker::kind::destruction);
  }
  endings_.wake();  // drain() may have found it counted as pending
}

timer_id core::schedule(record& r, time_point due, time_point now) {
  tick_number tick = grid_.of_deadline(due, now);
  r.set_deadline(due);
  if (r.plain.load(relaxed))
    r.plain.store(task_access::trivial_to_destroy(r.work), relaxed);
  else
    tick = tick_of(r, tick, due);
  r.state.store(life::live, relaxed);
  const timer_id id = id_of(r);  // from insert() on, others may use the record
  if (tick == never_tick) [[unlikely]] {
    const record_lock hold(r.mutex);
    insert_never_due(r);
    return id;
  }
  waking wakes;
  insert(r, tick, now, wakes);
  if (wakes != nullptr) wakes->next_due_moved_earlier();
  return id;
}

time_point core::make_periodic(record& r, const recurrence& when, time_point now) {
  const recurrence::occurrence first = when.first(now, fresh_seed());
  r.repeats = std::make_unique<periodic_part>(periodic_part{{when, first}, {}});
  r.plain.store(false, std::memory_order_release);
  if (r.has_own_executor() || handlers_.has_executor()) r.repeats->submitted.reserve_one();
  return first.due;
}

/// Whether timers may begin to wait.
///
/// Memory order: stop() and drain() raise a flag and then visit each record and each stripe of the wheel under its lock. So a
/// caller that holds such a lock either is found or sees the flag. Two things are found in another way: that a record has been
/// made, by the pool's number of records, and that a node is parked, by its word. Both are stored before the look here, and
/// read after the flag is raised; all of that is seq_cst. So if the flag is not seen here, they are.
bool core::is_open() const noexcept {
  return !stopped_.load(std::memory_order_seq_cst) && !draining_.load(std::memory_order_seq_cst);
}

/// Makes a new timer known to all, unless the scheduler is stopped or draining. Either stop() finds it, or is_open() returns
/// false. If stop() begins between is_open() and schedule_in_place(), it finds the node in its place: parked, and drops it, or
/// scheduled. (As soon as the timer is scheduled, its task may run and destroy the scheduler.)
void core::insert(record& r, tick_number tick, time_point now, waking& wakes) {
  begin_wait(r, now);
  const place how = r.waits_as();
  if (!is_open()) refuse_stopped();
  if (is_good_place(r, tick, now) && wheel_.schedule_in_place(r, tick, how)) return;
  const auto may_insert = [this] { return is_open(); };
  if (!wheel_.schedule(r, tick, how, may_insert, [&] { wakes = shared_from_this(); })) refuse_stopped();
}

/// Whether the place of `r` in the wheel, if it has one, is not in the first eighth of the time until it is due. Otherwise
/// the driver would soon have to move it, which takes longer than to insert it now: with timers of 1 to 512 ms, which are
/// set again after a millisecond, the driver takes 3 instead of 9 % of a processor.
bool core::is_good_place(const record& r, tick_number due, time_point now) const noexcept {
  // Differences of time points, and of ticks in nanoseconds, fit into 64 bits if these have no sign.
  const auto nanoseconds = [](time_point t) {
    return static_cast<std::uint64_t>(t.time_since_epoch().count());
  };
  const std::uint64_t ticks_later = static_cast<std::uint64_t>(due) - static_cast<std::uint64_t>(r.due);
  const std::uint64_t until_due = nanoseconds(r.deadline()) - nanoseconds(now);
  return ticks_later * static_cast<std::uint64_t>(grid_.length().count()) <= until_due - until_due / 8;
}

/// As insert(), for a timer that is locked and that no tick is due for.
void core::insert_never_due(record& r) {
  if (!is_open()) refuse_stopped();
  wheel_.cancel(r);
  r.set_due(never_tick);
  set_never_due(r);
}

/// Numbers a wait of `r` that begins when the clock says `now`. In virtual time, which stands still, the numbers are
/// counted; invalidate_wait() needs some in between.
void core::begin_wait(record& r, time_point now) noexcept {
  const std::uint64_t least = r.arming.load(relaxed) + 1;
  constexpr std::uint64_t room = 64;
  const auto reading = static_cast<std::uint64_t>(now.time_since_epoch().count()) ^ std::uint64_t{1} << 63;
  r.arming.store(is_virtual_ ? std::max(next_number() * room, least) : pool_.number(reading, least), relaxed);
}

/// Makes `r`, which is locked, wait for `deadline`, and no longer for what it waits for now. If it is plain and was
/// cancelled in the meantime, does nothing and returns false. Strong guarantee.
bool core::arm(record& r, std::uint64_t generation, time_point deadline, tick_number tick, time_point now,
               waking& wakes) {
  const auto is_same = [&] { return r.generation() == generation; };
  // If `r` is plain, cancel() may end it as soon as it is in the wheel, so all that changes in it changes before.
  const auto moved = [&] {
    leave_count(r);
    r.where = waits_in::wheel;
    begin_wait(r, now);
    r.set_deadline(deadline);
    if (!r.periodic()) r.take_all_back();
  };
  // If stop() is in progress, it has not reached this record yet, because we hold the lock. So it finds the timer
  // later.
  if (tick != never_tick)
    return wheel_.reschedule(r, tick, r.waits_as(), is_same, moved, [&] { wakes = shared_from_this(); });
  if (!stop_waiting(r, is_same)) return false;
  disarm(r);
  wheel_.cancel(r);
  r.set_due(tick);
  r.set_deadline(deadline);
  if (!r.periodic()) r.take_all_back();
  set_never_due(r);
  return true;
}

/// As arm(), but for a periodic timer, and it cannot fail: if there is no memory, each pass tries again.
void core::arm_surely(record& r, time_point deadline, tick_number tick, time_point now,
                      waking& wakes) noexcept {
  try {
    arm(r, r.generation(), deadline, tick, now, wakes);
  } catch (const std::bad_alloc&) {
    disarm(r);
    wheel_.cancel(r);
    r.set_due(tick);
    begin_wait(r, now);
    r.set_deadline(deadline);
    r.where = waits_in::no_memory;
    without_memory_.fetch_add(1, relaxed);
    wakes = shared_from_this();  // the driver tries again, and no longer sleeps past the timer's time
  }
}

/// Ends the wait of `r`, which is locked. In the wheel, it is parked.
void core::disarm(record& r) noexcept {
  stop_waiting(r, [] { return true; });
  if (r.where == waits_in::nowhere) return;
  leave_count(r);
  r.where = waits_in::nowhere;
  r.invalidate_wait();
}

void core::leave_count(record& r) noexcept {
  if (r.where == waits_in::no_memory) without_memory_.fetch_sub(1, relaxed);
  if (r.where == waits_in::never_due) never_due_.fetch_sub(1, std::memory_order_acquire);
}

void core::set_never_due(record& r) noexcept {
  r.where = waits_in::never_due;
  r.number = next_number();
  never_due_.fetch_add(1, relaxed);
}

bool core::reschedule(timer_id id, time_point due, time_point now) {
  waking wakes;
  const bool moved = reschedule(id, due, now, wakes);
  if (wakes != nullptr) wakes->next_due_moved_earlier();
  return moved;
}

bool core::reschedule(timer_id id, time_point due, time_point now, waking& wakes) {
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr) return false;
  {
    const record_lock hold(r->mutex);
    const bool is_plain = r->plain.load(std::memory_order_acquire);
    if (!r->live(which.generation) || stopped()) return false;
    const bool is_periodic = !is_plain && r->periodic();
    if (is_periodic && draining()) return false;  // it is about to be ended
    tick_number tick = grid_.of_deadline(due, now);
    if (!is_plain) tick = tick_of(*r, tick, due);
    if (!arm(*r, which.generation, due, tick, now, wakes)) return false;
    if (is_periodic) {
      const submitted_runs::run* const oldest = r->oldest_submitted();
      r->repeats->next.moved_to(due, r->submitted, oldest != nullptr ? &oldest->what : nullptr);
      r->take_all_back();
    }
  }
  if (due == time_point::max()) endings_.wake();  // drain() no longer waits for it
  return true;
}

// One scheduling call. It is here so that it needs no further call within the library to schedule a timer, which would
// account for a tenth of its instructions.

constexpr const char* in_schedule = "a scheduling call";  // for checked builds

[[gnu::flatten]] new_timer::new_timer(const std::shared_ptr<core>& c, timer_group* group)
    :
#if defined(RONDO_CHECKS)
      kept_(c),
#endif
      core_(*c),
      group_(group) {
  if constexpr (!checks) {
    record_ = &core_.take_record(group != nullptr);
  } else {
    core_.begin_call();  // first, because the record counts as a timer
    try {
      record_ = &core_.take_record(group != nullptr);
    } catch (...) {
      core_.end_call(in_schedule);
      throw;
    }
  }
  work_ = &record_->work;
}

new_timer& new_timer::with(timer_options&& o) {
  record_->keep(std::move(o));
  return *this;
}

[[gnu::flatten]] timer_id new_timer::schedule_after(duration delay) {
  const time_point now = core_.now();
  return schedule(deadline_after(now, delay), now);
}

[[gnu::flatten]] timer_id new_timer::schedule_at(time_point due) { return schedule(due, core_.now()); }

timer_id new_timer::schedule(const recurrence& when) {
  const time_point now = core_.now();
  return schedule(core_.make_periodic(*record_, when, now), now);
}

timer_id new_timer::schedule(time_point due, time_point now) {
  if (group_ != nullptr) return schedule_member(due, now);
  const timer_id id = core_.schedule(*record_, due, now);
  record_ = nullptr;
  if constexpr (checks) core_.end_call(in_schedule);
  return id;
}

timer_id new_timer::schedule_member(time_point due, time_point now) {
  core::remainder rest;
  const timer_id id = core_.schedule_member(*record_, due, now, *group_, nullptr, {}, rest);
  record_ = nullptr;
  core_.finish(rest);
  if constexpr (checks) core_.end_call(in_schedule);
  return id;
}

void new_timer::discard() noexcept {
  core_.discard(*record_, group_ != nullptr);
  if constexpr (checks) core_.end_call(in_schedule);
}

// A pass of the driver, and the life of one run.

/// While it lives, a pass of the driver, a job on an executor's thread, or a call of a handler is in progress. stop()
/// waits until there is none.
///
/// Memory order: it begins with a modification that acquires, and in_flight() is one that releases. So either in_flight()
/// counts it, or it sees what was done before in_flight(), above all that the scheduler is stopped.
class core::in_flight_guard {
 public:
  explicit in_flight_guard(core& core) noexcept : core_(core), here_(marker::kind::in_flight, &core) {
    core_.in_flight_.fetch_add(1, std::memory_order_acquire);
    if constexpr (is_checked) core_.begin_call();
  }
  ~in_flight_guard() {
    if constexpr (is_checked) core_.end_call("a pass, a job or a call of on_earlier");
    core_.in_flight_.fetch_sub(1, std::memory_order_release);
    core_.endings_.wake();
  }
  in_flight_guard(const in_flight_guard&) = delete;
  in_flight_guard& operator=(const in_flight_guard&) = delete;

 private:
  core& core_;
  const marker here_;
};

std::size_t core::run_pass(time_point until, std::size_t limit) {
  const in_flight_guard guard(*this);
  const auto user = handlers_.get();
  if (stopped() || user == nullptr) return 0;
  pass p{*user, now()};
  const tick_number due = grid_.at_or_before(std::min(until, p.reading));
  {
    const ready_list::filling in_order(ready_, due);
    collect(due);
    if (without_memory_.load(relaxed) != 0) retry_insertions(due);
  }
  std::size_t begun = 0;
  while (begun != limit && !stopped()) {
    const auto entry = ready_.front();
    if (!entry) break;
    if (begin(*entry, p)) ++begun;
    // Only now, and not if stop() has kept it from beginning: until a timer has begun, stop() finds it here.
    if (!stopped()) ready_.pop();
    if (p.thrown) std::rethrow_exception(std::move(p.thrown));
  }
  return begun;
}

/// Takes everything that is due out of the wheel before any of it runs: what tasks make due is for the next pass.
void core::collect(tick_number until) {
  for (;;) {
    const std::size_t room = ready_.make_room();
    const std::size_t taken = wheel_.take_due(until, room, [this](shared_node& n, tick_number tick) {
      ready_.push(static_cast<record&>(n), tick);
    });
    if (taken != room || room == 0) return;
  }
}

/// Calls visit(record&), with the record locked, for each timer that waits for memory. Nearly always there is none, so no
/// list of them is kept, and all records are searched. Precondition: there is one.
template <class Visit>
void core::for_each_without_memory(Visit&& visit) {
  std::size_t left = without_memory_.load(relaxed);
  pool_.any_of([&](record& r) {
    const record_lock hold(r.mutex);
    if (r.where != waits_in::no_memory) return false;
    visit(r);
    return --left == 0;
  });
}

/// Inserts the timers that waited for memory into the wheel, or, if they are due at `until`, into the pass, which takes
/// no memory. A timer waits for the same moment as before, so its `arming` stays: a stop() or drain() in progress may
/// have found it.
void core::retry_insertions(tick_number until) noexcept {
  for_each_without_memory([&](record& r) {
    if (r.due_tick() <= until && ready_.make_room() != 0) {
      ready_.push(r, r.due_tick());
    } else {
      try {
        // A drain() in progress waits for these. The driver itself inserts them, so no wake-up is needed.
        const auto is_open = [this] { return !stopped(); };
        if (!wheel_.schedule(r, r.due_tick(), r.waits_as(), is_open, [] {})) return;
      } catch (const std::bad_alloc&) {
        return;
      }
    }
    leave_count(r);
    r.where = waits_in::wheel;
  });
}

/// Runs the task or submits it to the executor. Returns false if the entry leads to no run.
bool core::begin(const ready_entry& entry, pass& p) {
  dispatch_result d = dispatch(entry, p);
  if (d.overlapped != 0) own_shard(pool_).here.counts.overlapped += d.overlapped;
  switch (d.what) {
    case verdict::run_here:
      p.reading = run(*entry.timer, d.fact, p.reading, p.user.propagate_exceptions ? &p.thrown : nullptr);
      end_run(*entry.timer, p.reading);
      return true;
    case verdict::submit:
      submit(*entry.timer, d, p.user);
      p.reading = now();
      return true;
    case verdict::stale:
    case verdict::dropped:
    case verdict::ended:
      break;
  }
  return false;
}

/// Decides what becomes of an entry, and makes the timer wait for its next run, if there is one. Strong guarantee.
core::dispatch_result core::dispatch(const ready_entry& entry, pass& p) {
  dispatch_result d;
  record& r = *entry.timer;
  record_lock hold(r.mutex);
  if (!entry.is_current() || stopped()) return d;
  // The pass may contain a timer that another thread made due just now, after the time was read.
  if (r.deadline() > p.reading) p.reading = now();
  const bool is_plain = r.plain.load(relaxed);
  d.what = p.user.run_on || (!is_plain && r.has_own_executor()) ? verdict::submit : verdict::run_here;
  d.fact.id = id_of(r);
  d.fact.due = r.deadline();
  d.fact.run = 1;
  if (!is_plain) d.fact.name = r.name();
  if (!is_plain && r.periodic())
    dispatch_periodic(hold, entry, p.reading, d);
  else
    dispatch_one_shot(hold, r, d);
  d.fact.lateness = saturating_difference(p.reading, d.fact.due);
  return d;
}

void core::dispatch_one_shot(record_lock& hold, record& r, dispatch_result& d) noexcept {
  r.where = waits_in::nowhere;  // the wheel has let go of it
  r.invalidate_wait();
  d.fact.left = 0;
  if (d.what == verdict::run_here) {
    ++r.running;
    end(r, ending::last_run);
    return hold.unlock();
  }
  d.ticket = next_number();
  d.own = r.own;
  r.submit(d.ticket);
}

void core::dispatch_periodic(record_lock& hold, const ready_entry& entry, time_point reading,
                             dispatch_result& d) {
  record& r = *entry.timer;
  const bool submits = d.what == verdict::submit;
  if (draining()) {
    d.what = verdict::ended;
    return finish(hold, r, ending::over);
  }
  if (submits) r.repeats->submitted.reserve_one();
  const time_point tick_begin = grid_.begin_of(grid_.at_or_before(reading));
  const repetition::step next = r.repeats->next.point_came({reading, tick_begin}, r.in_progress(), submits);
  await(r, next, reading);
  d.overlapped = next.overlapped;
  if (!next.run) {
    d.what = verdict::dropped;
    if (!r.over()) return;
    d.what = verdict::ended;
    return finish(hold, r, ending::over);
  }
  const bool is_later =
      next.run->due != d.fact.due;  // than the point that came, because others of a burst were missed
  d.fact.due = next.run->due;
  d.fact.run = next.run->run;
  d.fact.missed = next.missed;
  if (r.repeats->next.ends()) d.fact.left = r.left();
  if (!submits) return begin_run(hold, r, next.missed);
  d.ticket = next_number();
  d.own = r.own;
  const tick_number tick =
      is_later ? tick_of(r, grid_.of_deadline(d.fact.due, reading), d.fact.due) : entry.tick;
  r.submit({d.ticket, tick, *next.run});
}

/// Makes `r`, which is locked and in the pass, wait for what its repetition says.
void core::await(record& r, const repetition::step& next, time_point now) noexcept {
  if (!next.wait_for) return disarm(r);
  const tick_number tick = tick_of(r, grid_.of_point(*next.wait_for), *next.wait_for);
  if (next.is_late && tick <= ready_.collects_until) {  // it takes its turn in this pass
    begin_wait(r, now);
    r.set_deadline(*next.wait_for);
    r.set_due(tick);
    if (ready_.push_late(r, tick)) return;
  }
  waking unused;  // the driver itself needs no wake-up
  arm_surely(r, *next.wait_for, tick, now, unused);
}

/// Counts a run of `r`, which is locked, that begins now, and the points that it reports as missed. (Only now: a run that
/// was submitted may be taken back or rejected, and then reports nothing.) With its last run, the timer ceases to be
/// pending. Unlocks `r`.
void core::begin_run(record_lock& hold, record& r, std::uint64_t missed) noexcept {
  if (missed != 0) own_shard(pool_).here.counts.missed += missed;
  ++r.running;
  if (r.over())
    end(r, ending::last_run);
  else
    ++own_shard(pool_).here.counts.fired;
  hold.unlock();
}

/// Runs the task and returns the time at which it ended. What the task throws is stored in `thrown` or, if that is
/// null, reported. Precondition: begin_run() was called.
time_point core::run(record& r, const firing& fact, time_point start, std::exception_ptr* thrown) noexcept {
  meter_.record(meter_.lateness, fact.lateness);
  if constexpr (is_checked) count_run_on_this_thread();
  const marker here(marker::kind::user_code, this, &r);
  try {
    r.work(fact);
  } catch (...) {
    ++own_shard(pool_).here.counts.failed;
    if (thrown != nullptr)
      *thrown = std::current_exception();
    else
      handlers_.report(error_source::task, std::current_exception(), fact);
  }
  const time_point end = now();
  const duration run_time = saturating_difference(end, start);
  meter_.record(meter_.run_time, run_time);
  if (run_time <= slow_after_) return end;
  handlers_.report_slow({fact, run_time, r.work.made_at()});
  return now();
}

/// Called when a run is over: the timer ends with it or waits for its next run.
void core::end_run(record& r, time_point ended) noexcept {
  record_lock hold(r.mutex);
  if (r.periodic()) {
    if (r.live() && draining()) end(r, ending::over);  // the search of drain() may have missed the timer
    // The last run of a timer that is no longer live stays "running" until its callable is destroyed.
    if (r.live() || r.running != 1) {
      waking wakes;
      --r.running;
      if (r.live()) rearm(r, ended, wakes);
      hold.unlock();
      if (wakes != nullptr) wakes->next_due_moved_earlier();
      return;
    }
  }
  // A timer that was cancelled or handed back is already counted.
  if (r.state.load(relaxed) == life::completed) ++own_shard(pool_).here.counts.completed;
  release(hold, r, marker::kind::user_code);
}

/// Called when a run of `r`, which is locked and live, is over: what waited for that now waits for the driver.
void core::rearm(record& r, time_point ended, waking& wakes) noexcept {
  if (r.in_progress()) return;
  const auto due = r.repeats->next.run_ended(ended, r.where != waits_in::nowhere);
  if (due) arm_surely(r, *due, tick_of(r, grid_.of_deadline(*due, ended), *due), ended, wakes);
}

void core::call_out(const void* listener, const std::function<void()>& handler) noexcept {
  const in_flight_guard guard(*this);
  if (stopped()) return;
  const marker here(marker::kind::handler, this, listener);
  try {
    handler();
  } catch (...) {
    handlers_.report(error_source::on_earlier, std::current_exception(), {});
  }
}

// Runs that go through an executor: handoff.hpp explains how this works.

void core::submit(record& r, dispatch_result& d, const user_handlers& user) noexcept {
  std::exception_ptr thrown;
  const marker here(marker::kind::user_code, this);
  if (!meter_.is_shared) meter_.is_shared = true;  // it stays in other processors' caches
  const auto own = std::move(d.own);  // may be the last reference, if the timer is cancelled in the meantime
  executor_call_.begin(d.ticket);
  std::optional<watched_executor_call> watch;
  if constexpr (is_checked) watch.emplace();
  try {
    const executor& run_on = own != nullptr && own->run_on ? own->run_on : user.run_on;
    run_on(job(shared_from_this(),
               job_ticket{&r, d.ticket, d.fact.due, d.fact.lateness, d.fact.run, d.fact.missed}));
  } catch (...) {
    thrown = std::current_exception();
  }
  const bool dropped = executor_call_.end();
  if constexpr (is_checked) watch->check(d.fact);
  if (thrown) {
    ++own_shard(pool_).here.counts.failed;
    drop_submission(r, d.ticket, d.fact, failure::threw);
    handlers_.report(error_source::executor, thrown, d.fact);
  } else if (dropped) {
    drop_submission(r, d.ticket, d.fact, failure::rejected);
  }
}

void core::start(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const in_flight_guard guard(*this);
  record& r = *static_cast<record*>(ticket.record);
  firing fact;
  {
    record_lock hold(r.mutex);
    if (stopped() || !r.redeem(ticket.number)) return;
    fact.id = id_of(r);
    fact.name = r.name();
    fact.left = r.left();
    begin_run(hold, r, ticket.missed);
  }
  const time_point start = now();
  fact.due = ticket.due;
  fact.lateness = saturating_difference(start, ticket.due);
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  end_run(r, run(r, fact, start, nullptr));
}

void core::drop(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const in_flight_guard guard(*this);
  if (executor_call_.note_drop(ticket.number)) return;
  const marker here(marker::kind::user_code, this);
  firing fact;
  fact.due = ticket.due;
  fact.lateness = ticket.lateness;
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  drop_submission(*static_cast<record*>(ticket.record), ticket.number, fact, failure::rejected);
}

/// Called when a submitted run will not happen. Does nothing if the run has started or was taken back. If the run was
/// rejected, calls on_rejected after the timer has ended or waits for its next run. Precondition: a stack marker marks
/// user code.
void core::drop_submission(record& r, run_ticket number, firing fact, failure why) noexcept {
  const time_point reading = now();
  std::shared_ptr<const timer_options> own;  // keeps the name for the handler
  std::shared_ptr<rejection> says_which;
  record_lock hold(r.mutex);
  if (stopped() || !r.redeem(number)) return;
  fact.id = id_of(r);
  if (!r.plain.load(relaxed)) own = r.own;
  fact.name = r.name();
  fact.left = r.left();
  if (why == failure::rejected) says_which = task_access::rejecting(r.work);
  if (why == failure::rejected && says_which == nullptr) ++own_shard(pool_).here.counts.rejected;
  if (r.over() || (r.periodic() && draining())) {
    finish(hold, r, ending::over);
  } else {
    waking wakes;
    rearm(r, reading, wakes);
    hold.unlock();
    if (wakes != nullptr) wakes->next_due_moved_earlier();
  }
  if (why != failure::rejected || stopped()) return;
  if (says_which == nullptr) return handlers_.report_rejected(fact);
  says_which->report_rejected(fact, now(), [this](const firing& run) {
    ++own_shard(pool_).here.counts.rejected;
    handlers_.report_rejected(run);
    return pending(run.id);  // the handler may have ended it
  });
}

// How a timer ends.

cancel_result core::cancel(timer_id id) {
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr) return cancel_result::gone;
  // A plain timer that waits in the wheel is cancelled without a lock, and the record is then this call's own.
  if (!r->cancel_in_place(which.generation)) return cancel_slowly(id);
  r->invalidate_wait();
  r->state.store(life::free, relaxed);
  {
    const own_shard mine(pool_);
    mine.here.counts.count(ending::cancelled, false);
    pool_.give_back(*r, mine);
  }
  free_place();
  // A drain() that begins now may be overlooked here, and not yet see what was counted: only a fence could prevent that.
  // So drain() looks again by itself.
  if (draining()) endings_.wake();
  return cancel_result::cancelled;
}

/// Not inlined: otherwise cancel() would save registers for it.
cancel_result core::cancel_slowly(timer_id id) {
  remainder rest;
  const cancel_result result = cancel(id, rest);
  finish(rest);
  if (result == cancel_result::running) interrupt(id);
  return result;
}

void core::interrupt(timer_id id) noexcept {
  const timer_id_parts which = timer_id_access::parts(id);
  if (record* const r = find(which)) interrupt(*r, which.generation);
}

/// Asks the runs of one timer to stop. Their callbacks may still be running when the runs are over, and the record serves
/// another timer.
struct core::request {
  record& of;
  std::uint64_t generation;
};

/// Does nothing if `r` serves another timer than the one of that generation, if one is given. The callbacks are inside a run
/// of the timer, and may destroy the scheduler: nothing of it is used after them.
void core::interrupt(record& r, std::optional<std::uint64_t> generation) noexcept {
  std::shared_ptr<interruption> runs;
  request asked{r, 0};
  {
    const record_lock hold(r.mutex);
    asked.generation = r.generation();
    if (asked.generation != generation.value_or(asked.generation) || r.running == 0 || r.destroying) return;
    runs = task_access::interrupting(r.work);
  }
  if (runs == nullptr) return;
  const marker here(marker::kind::request, this, &asked);
  runs->request_stop();
}

/// Precondition: stopped(). So a run that is not found here has seen that, or will, and does not begin.
void core::interrupt_all() noexcept {
  if (!interruption::any()) return;
  pool_.for_each([this](record& r) { interrupt(r, {}); });
}

/// Ends the wait of `r`, which is locked, in the wheel or the pass, if it waits there; its node may stay in its place.
/// Returns false if a cancel() that does not lock `r` was faster. still() returns whether `r` still serves the same timer.
template <class Still>
bool core::stop_waiting(record& r, Still&& still) noexcept {
  if (r.where != waits_in::wheel) return true;
  const auto may_leave = [&](node_word w) { return w.where() != place::parked && still(); };
  const node_word found = r.word();
  if (!may_leave(found)) return false;
  // If the driver is just taking the node, or moving it, this waits for the lock.
  if (!r.park(found) && !wheel_.take_out(r, may_leave)) return false;
  r.where = waits_in::nowhere;
  r.invalidate_wait();
  return true;
}

cancel_result core::cancel_and_wait(timer_id id) {
  const cancel_result result = cancel(id);
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr || inside(id)) return result;
  const auto is_free = [&] {
    const record_lock hold(r->mutex);
    if (r->generation() != which.generation) return true;
    r->awaited = true;
    return false;
  };
  wait_watched("cancel_and_wait()", time_point::max(),
               [&](time_point end) { return endings_.wait_until(end, is_free); });
  return result;
}

/// wait(end) waits no longer than until `end`, in real time, and returns whether what it waits for has happened. A
/// checked build reports a wait without an end that takes long.
template <class Wait>
bool core::wait_watched(const char* call, time_point end, Wait&& wait) {
  if constexpr (is_checked) {
    if (end == time_point::max()) {
      if (wait(real_time_after(suspicious_wait))) return true;
      warn_of_wait(call);
    }
  }
  return wait(end);
}

/// The timer of `r`, which is locked, ceases to be pending: no further run starts. Counts it, and frees its place under
/// the limit. If no run is in progress, the caller releases the record; otherwise the end of that run does so.
void core::end(record& r, ending how) noexcept {
  disarm(r);
  r.take_all_back();
  const bool completes = how == ending::last_run || how == ending::over;
  r.state.store(completes ? life::completed : life::ended, relaxed);
  // What is destroyed later may read the counters.
  own_shard(pool_).here.counts.count(how, r.running != 0);
  // Only now: there are never more timers pending than places.
  if (how != ending::replaced && how != ending::refused) free_place();
}

/// Ends the timer of `r`, and releases the record unless a run is in progress. Precondition: `hold` locks `r`. It is
/// unlocked afterwards.
void core::finish(record_lock& hold, record& r, ending how) noexcept {
  end(r, how);
  if (r.running != 0) return hold.unlock();
  // What a pass, a job or the end of the scheduler destroys is inside it; what a cancel() destroys is not.
  release(hold, r, how == ending::over ? marker::kind::user_code : marker::kind::destruction);
}

/// Destroys what a timer owned that has ended and has no run in progress, and frees its record. Precondition: `hold`
/// locks `r`, or refers to its lock and only the caller is to release `r`. It is unlocked afterwards.
void core::release(record_lock& hold, record& r, marker::kind what) noexcept {
  if (r.plain.load(relaxed)) {
    if (!hold.owns_lock()) hold.lock();
    return free_record(hold, r);
  }
  if (hold.owns_lock()) {
    r.destroying = true;
    hold.unlock();
  }
  const marker here(what, this, &r);  // keeps this core if what is destroyed destroys the scheduler
  timer_group* const group = r.member.group;
  r.destroy_what_it_owns();
  if (group != nullptr) group->leave(r, id_of(r));
  hold.lock();
  if (group != nullptr) r.member = {};
  r.destroying = false;
  free_record(hold, r);
}

/// Threads are woken only if one waits for this: cancel_and_wait() has left a note under the lock; drain() has raised its
/// flag and then locked each record, so either it finds the timer gone, or its flag is seen here. Precondition: `hold`
/// locks `r`. It is unlocked afterwards.
void core::free_record(record_lock& hold, record& r) noexcept {
  r.advance_generation();
  r.invalidate_wait();
  r.where = waits_in::wheel;
  r.submitted = r.running = 0;
  r.state.store(life::free, relaxed);
  const bool is_awaited = r.awaited;
  r.awaited = false;
  hold.unlock();
  pool_.give_back(r);
  if (is_awaited || draining()) endings_.wake();
}

/// Gives back the memory that ended timers have left.
void core::shrink_to_fit() noexcept {
  if (abandoned()) return;
  pool_.shrink_to_fit([this](record& r) { wheel_.cancel(r); });
  wheel_.shrink_to_fit();
}

// Timers that are members of a group, and calls in two parts.

timer_id core::schedule_member(record& r, time_point due, time_point now, timer_group& group, void* tag,
                               timer_id in_place_of, remainder& rest) {
  waking wakes;
  record_lock made_hold(r.mutex, std::defer_lock);
  record_lock old_hold;
  record* const old = lock_both(r, made_hold, in_place_of, old_hold);
  if (old == nullptr && max_pending_ != unlimited) {
    group.check_open();  // a closed group says so, even if the scheduler is full
    claim_place();
  }
  const timer_id id = id_of(r);
  try {
    publish_member(r, due, tick_of(r, grid_.of_deadline(due, now), due), now, group, tag, wakes);
  } catch (...) {
    if (old == nullptr) free_place();
    throw;
  }
  made_hold.unlock();
  rest.wakes = wakes != nullptr;
  if (old != nullptr) {
    end(*old, ending::replaced);
    if (old->running == 0) rest.ended = old;
  }
  return id;
}

/// Locks the record of a new timer and the record of the timer `id`, in the order of their addresses, so that two
/// threads never wait for each other. Returns the latter record. If that timer is not pending, returns null and does
/// not keep its lock.
record* core::lock_both(record& made, record_lock& made_hold, timer_id id, record_lock& old_hold) const {
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr || r == &made || std::less<>()(&made, r)) made_hold.lock();
  // r == &made if the id is stale and its record has just been taken again.
  if (r == nullptr || r == &made) return nullptr;
  __builtin_prefetch(&r->member, 1);
  record_lock held(r->mutex);
  if (!made_hold) made_hold.lock();
  if (!r->live(which.generation)) return nullptr;
  old_hold = std::move(held);
  return r;
}

/// Makes the new timer of `r`, which is locked, a member, and then makes it known to all. Either close() finds the
/// timer in the group, and finds it pending because the record is locked until the timer is published; or the group is
/// found to be closed here.
void core::publish_member(record& r, time_point due, tick_number tick, time_point now, timer_group& group,
                          void* tag, waking& wakes) {
  group.join(r, tag);
  r.plain.store(false, relaxed);
  r.state.store(life::live, relaxed);
  r.set_deadline(due);
  try {
    if (tick == never_tick)
      insert_never_due(r);
    else
      insert(r, tick, now, wakes);
  } catch (...) {
    r.state.store(life::ended,
                  relaxed);  // a visit of the group that waits for the lock then finds nothing to end
    group.withdraw(r);
    throw;
  }
}

cancel_result core::cancel(timer_id id, remainder& rest) noexcept {
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr) return cancel_result::gone;
  __builtin_prefetch(&r->member, 1);
  const record_lock hold(r->mutex);
  const auto is_same = [&] { return r->generation() == which.generation; };
  if (!is_same()) return cancel_result::gone;
  const bool is_running = r->running != 0;
  if (!r->live()) return is_running ? cancel_result::running : cancel_result::gone;
  if (!stop_waiting(*r, is_same)) return cancel_result::gone;
  end(*r, ending::cancelled);
  if (!is_running) rest.ended = r;
  return is_running ? cancel_result::running : cancel_result::cancelled;
}

bool core::reschedule(timer_id id, time_point due, time_point now, remainder& rest) {
  waking wakes;
  const bool moved = reschedule(id, due, now, wakes);
  rest.wakes = wakes != nullptr;
  return moved;
}

/// Destroys first: waking the driver may run user code that waits for the end of the timer, which this call must
/// complete.
void core::finish(const remainder& rest) noexcept {
  if (rest.ended != nullptr) {
    record_lock hold(rest.ended->mutex, std::defer_lock);
    release(hold, *rest.ended, marker::kind::destruction);
  }
  if (rest.wakes) next_due_moved_earlier();
}

bool core::belongs(timer_id id, const timer_group& group) const {
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr) return false;
  const record_lock hold(r->mutex);
  return r->generation() == which.generation && r->member.group == &group;
}

template <class Visit>
void core::for_each_member(timer_group& group, Visit&& visit) const {
  if (abandoned()) return;
  timer_group::cursor members(group);
  while (const auto place = members.next())
    visit(timer_id_access::make(number_, place->slot, place->generation));
}

std::optional<timer_id> core::next_tagged(timer_group::cursor& members, const void* tag) const {
  timer_id id;
  const bool is_one = members.next([&](const auto& place, const record& r) {
    if (r.member.tag == tag) id = timer_id_access::make(number_, place.slot, place.generation);
  });
  return is_one ? std::optional(id) : std::nullopt;
}

bool core::inside(timer_id id) const {
  const record* const r = find(timer_id_access::parts(id));
  return r != nullptr && inside_any([r](const record& own) { return &own == r; });
}

bool core::inside_tagged(const timer_group& group, const void* tag) const {
  return inside_any([&](const record& own) { return own.member.group == &group && own.member.tag == tag; });
}

/// Whether the caller is inside a run of a timer, or the destruction of its callable, whose record is(record) returns true
/// for.
template <class Is>
bool core::inside_any(Is&& is) const {
  return marker::inside_any(this, [&](marker::kind what, const void* which) {
    if (what != marker::kind::request) return is(*static_cast<const record*>(which));
    const auto& asked = *static_cast<const request*>(which);
    const record_lock hold(asked.of.mutex);
    return asked.of.generation() == asked.generation && is(asked.of);
  });
}

std::size_t core::pending(timer_group& group) const {
  std::size_t count = 0;
  for_each_member(group, [&](timer_id id) {
    if (pending(id)) ++count;
  });
  return count;
}

void core::cancel_all(timer_group& group) {
  for_each_member(group, [this](timer_id id) { cancel(id); });
}

void core::close(timer_group& group) {
  if (abandoned()) return;
  group.close();
  cancel_all(group);  // before it waits for any of them, so that nothing starts in the meantime
  for_each_member(group, [this](timer_id id) { cancel_and_wait(id); });
}

// The end of a scheduler.

std::optional<std::vector<unfired>> core::stop_by(time_point end) {
  const bool from_inside = stack_marker::inside(this);
  std::vector<unfired> list;
  if (abandoned()) return list;
  std::vector<candidate> found;
  if (unfired_.load(relaxed) == unfired_list::unclaimed) {
    const std::size_t expected = pending() + 64;  // 64 for what other threads may schedule in the meantime
    list.reserve(expected);
    found.reserve(3 * expected);  // each of the three searches may find the same timer
  }
  set_stopped();
  interrupt_all();
  const auto all_over = [this](time_point until) { return wait_for_others(0, until); };
  if (!from_inside && !wait_watched("stop()", end, all_over)) return std::nullopt;
  for (;;) {
    auto state = unfired_list::unclaimed;
    if (unfired_.compare_exchange_strong(state, unfired_list::claimed, relaxed, std::memory_order_acquire))
      break;
    if (from_inside || state == unfired_list::complete) return list;
    const auto is_decided = [this] { return unfired_.load(relaxed) != unfired_list::claimed; };
    if (!endings_.wait_until(end, is_decided)) return std::nullopt;
  }
  std::vector<std::string> names;
  try {
    find_unfired(found);
    names = names_of(found);
    list.reserve(found.size());
  } catch (...) {                  // no memory, because others scheduled more than expected
    set(unfired_list::unclaimed);  // another call may have it
    throw;
  }
  for (std::size_t i = 0; i != found.size(); ++i)
    hand_back(found[i], names.empty() ? std::string() : std::move(names[i]), list);
  set(unfired_list::complete);
  return list;
}

void core::set(unfired_list state) noexcept {
  unfired_.store(state, std::memory_order_release);
  endings_.wake();
}

void core::set_stopped() noexcept {
  stopped_.store(true, std::memory_order_seq_cst);
  next_due_moved_earlier();  // for the driver to notice
}

/// Waits until only `own` passes, jobs and calls of handlers are in flight, those that the calling thread is inside, but
/// no longer than until `end`, in real time. Returns whether only those are left.
bool core::wait_for_others(std::size_t own, time_point end) {
  return endings_.wait_until(end, [&] { return in_flight() == own; });
}

std::size_t core::in_flight() noexcept { return in_flight_.fetch_add(0, std::memory_order_acq_rel); }

/// One name for each candidate, copied before the first timer is handed back, so that a lack of memory loses none.
/// Empty if no timer has a name.
std::vector<std::string> core::names_of(const std::vector<candidate>& found) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i != found.size(); ++i) {
    if (found[i].plain) continue;  // it has no name
    record& r = *found[i].timer;
    const record_lock hold(r.mutex);
    if (!found[i].is_current() || r.name().empty()) continue;
    names.resize(found.size());
    names[i] = r.name();
  }
  return names;
}

/// Finds all timers that wait, in the order in which stop() hands them back. A timer may be found twice. Precondition:
/// stopped() or draining(). While draining, timers that are not periodic may be left out if they move in the meantime.
///
/// A pass and other calls may be in progress. By itself, a timer moves only from waiting for memory to the wheel or
/// the pass, and from the wheel to the pass; the searches are in that order. Any other move is made under the record's
/// lock, which the first search also takes, so the later searches find the timer where it is then. schedule() inserts
/// nothing any more.
void core::find_unfired(std::vector<candidate>& found) {
  pool_.for_each([&](record& r) { find_unqueued(r, found); });
  wheel_.for_each([&](shared_node& n) {
    auto& r = static_cast<record&>(n);
    const node_word word = r.word();  // a plain timer may be cancelled at any time
    const std::uint64_t arming = r.arming.load(relaxed);
    found.push_back({&r, word.generation(), arming, word.where() != place::guarded, r.due_tick(),
                     found_in::wheel, arming});
  });
  ready_.for_each_current([&](const ready_entry& entry, bool is_late) {
    const record& r = *entry.timer;
    found.push_back({entry.timer, r.generation(), entry.arming, r.plain.load(relaxed), entry.tick,
                     is_late ? found_in::late_in_pass : found_in::pass,
                     is_late ? entry.arming : found.size()});
  });
  std::sort(found.begin(), found.end(), [](const candidate& a, const candidate& b) {
    return std::tie(a.tick, a.where, a.order) < std::tie(b.tick, b.where, b.order);
  });
}

/// Finds `r` if it is neither in the wheel nor in the pass, but with the executor, never due, or waiting for memory. If
/// it is running, that run is its last.
void core::find_unqueued(record& r, std::vector<candidate>& found) {
  record_lock hold(r.mutex);
  const waits_in where = r.where;
  const bool is_unqueued = where == waits_in::never_due || where == waits_in::no_memory;
  if ((!r.in_progress() && !is_unqueued) || !r.live()) return;
  if (r.running != 0) return finish(hold, r, ending::over);
  const auto next = r.first_run();
  found.push_back({&r, r.generation(), r.arming.load(relaxed), r.plain.load(relaxed), next.tick,
                   found_in::no_queue, next.order});
}

void core::hand_back(const candidate& c, std::string&& name, std::vector<unfired>& list) {
  record& r = *c.timer;
  record_lock hold(r.mutex);
  if (!c.is_current() || !stop_waiting(r, [&] { return c.is_current(); })) return;
  const timer_id id = id_of(r);
  const time_point due = r.first_run().due;
  end(r, ending::returned);
  hold.unlock();
  list.push_back({id, due, std::move(r.work), std::move(name)});  // moving a callable is user code
  hold.lock();
  if (r.running == 0)
    release(hold, r, marker::kind::user_code);  // its executor may stop or destroy the scheduler
}

void core::refuse_inside(const char* call) const {
  if (stack_marker::inside(this))
    throw std::logic_error(std::string("rondo: ") + call + "() was called from inside a task");
}

bool core::drain(duration limit) {
  refuse_inside("drain");
  if (abandoned()) return true;
  std::vector<candidate> found;
  found.reserve(3 * (pending() + 64));  // as in stop()
  draining_.store(true, std::memory_order_seq_cst);
  end_periodic_timers(found);
  if (!pass_time_until_drained(limit)) return false;
  set_stopped();
  return true;
}

/// Ends the periodic timers that it finds; a run in progress is their last. The others end by themselves: the flag is
/// up, so a periodic timer that the driver dispatches later, or whose run ends later, waits for no further run, and
/// none can be moved.
void core::end_periodic_timers(std::vector<candidate>& found) {
  find_unfired(found);
  for (const candidate& c : found) {
    if (c.plain) continue;
    record_lock hold(c.timer->mutex);
    if (c.is_current() && c.timer->periodic()) finish(hold, *c.timer, ending::over);
  }
}

/// (pending() is never too low here, because no timer is scheduled any more. It may be too high for a while: see cancel().)
///
/// Memory order: if the end of a timer is counted in what pending() has read, then so is, in the other two, what the thread
/// that counted it had done before: a timer that is no longer never due, a pass or a job that has begun. The modifications
/// here see to that. One that came before that thread's would make it acquire what is released here, and so pending() could
/// not have read what it counted afterwards.
bool core::drained() noexcept {
  return pending() <= never_due_.fetch_add(0, std::memory_order_release) && in_flight() == 0;
}

bool core::pass_time_until_drained(duration limit) {
  const time_point begin = now();
  return endings_.look_until(begin, saturating_add(begin, limit), [this] { return drained(); });
}

/// Stops when there is no memory for a list: destroys what was not fired.
void core::stop_one_by_one() noexcept {
  set_stopped();
  interrupt_all();
  wait_for_others(marker::in_flight(this));
  wheel_.for_each([](shared_node&) {});  // drops what could still be scheduled in its place
  pool_.for_each([this](record& r) {
    record_lock hold(r.mutex);
    const std::uint64_t generation = r.generation();
    const auto is_live = [&] { return r.live(generation); };
    if (is_live() && stop_waiting(r, is_live)) finish(hold, r, ending::over);
  });
}

void core::abandon() noexcept {
  number_ = next_scheduler_number();  // so that no id names any of its timers
  abandoned_ = true;
  stopped_.store(true, relaxed);
}

void core::retire() noexcept {
  if (abandoned()) return end_driver();
  marker::keep(this, shared_from_this());
  try {
    const std::vector<unfired> destroyed_here = stop();
  } catch (const std::bad_alloc&) {
    stop_one_by_one();
  }
  wait_for_others(marker::in_flight(this));
  end_driver();
  handlers_.release();
}

// Queries, and what checked builds verify after each call.

bool core::pending(timer_id id) const {
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr) return false;
  const record_lock hold(r->mutex);
  return r->live(which.generation);
}

/// The deadline that `r`, which is locked, waits for. None if it waits for no moment, or is plain and was cancelled in
/// the meantime.
std::optional<time_point> core::deadline_of(record& r, std::uint64_t generation) {
  switch (r.where) {
    case waits_in::nowhere:
      return std::nullopt;
    case waits_in::never_due:
      return time_point::max();
    case waits_in::no_memory:
    case waits_in::wheel:
      break;
  }
  // A plain timer leaves the wheel without the record's lock, and then another timer may have the record.
  for (;;) {
    const node_word word = r.word();
    if (word.generation() != generation) return std::nullopt;
    if (const auto found = r.deadline_if(word)) return found;
  }
}

std::optional<time_point> core::due(timer_id id) {
  const timer_id_parts which = timer_id_access::parts(id);
  record* const r = find(which);
  if (r == nullptr) return std::nullopt;
  const record_lock hold(r->mutex);
  return r->live(which.generation) ? deadline_of(*r, which.generation) : std::nullopt;
}

/// Whether a pass holds the timer of `r`, which is locked. Precondition: `in_pass` is in the order of records.
bool core::has_entry(const std::vector<ready_entry>& in_pass, const record& r) {
  const auto found =
      std::lower_bound(in_pass.begin(), in_pass.end(), &r,
                       [](const ready_entry& e, const record* timer) { return e.timer < timer; });
  return found != in_pass.end() && found->timer == &r && found->is_current();
}

/// Adds the timer of `r` if it is pending or running. Returns false if it may be in the pass but is not in `in_pass`.
///
/// A record whose timer is under construction must be left alone, because the scheduling thread writes what is marked
/// [new]. That timer is neither in the wheel nor in the pass, and no run of it is in progress; its state says that it
/// waits in the wheel, as the state of a free record does.
bool core::list_timer(record& r, const std::vector<ready_entry>& in_pass, std::vector<timer_info>& timers) {
  const record_lock hold(r.mutex);
  if (r.destroying) return true;
  const waits_in where = r.where;
  std::optional<time_point> due;
  // A plain timer leaves the wheel without the record's lock, and then another timer may have the record.
  node_word word = r.word();
  if (where == waits_in::wheel &&
      word.where() == place::out)  // if it is just being taken, the pass has it afterwards
    wheel_.take_out(r, [&](node_word now) {
      word = now;
      return false;
    });
  bool is_plain = false;
  for (;; word = r.word()) {
    is_plain = r.plain.load(std::memory_order_acquire);
    if (where != waits_in::wheel || !word.is_scheduled() || (due = r.deadline_if(word))) break;
  }
  if (!due) {
    if (!r.live() && r.running == 0) return true;
    if (where == waits_in::wheel && !r.in_progress() && !has_entry(in_pass, r)) return false;
    if (where == waits_in::never_due) due = time_point::max();
    if (where == waits_in::wheel || where == waits_in::no_memory) due = r.deadline();
  }
  timer_info info{.id = timer_id_access::make(number_, r.slot, word.generation()),
                  .due = due,
                  .runs = r.running,
                  .running = r.running};
  if (!is_plain) {
    info.name = r.name();
    info.periodic = r.periodic();
    if (info.periodic) info.runs = r.repeats->next.runs() - r.submitted;
  }
  timers.push_back(std::move(info));
  return true;
}

/// Visits each record once, so that a timer that moves in the meantime is neither left out nor listed twice. Visits
/// again those that may have been in the pass, because timers enter the pass without a lock that is held here.
std::vector<timer_info> core::list() {
  std::vector<timer_info> timers;
  if (abandoned()) return timers;
  std::vector<record*> again;
  std::vector<ready_entry> in_pass;
  pool_.for_each([&](record& r) {
    if (!list_timer(r, in_pass, timers)) again.push_back(&r);
  });
  for (int looks = 0; looks != 3 && !again.empty(); ++looks) {  // timers under construction stay
    in_pass.clear();
    ready_.for_each_current([&](const ready_entry& entry, bool) { in_pass.push_back(entry); });
    std::sort(in_pass.begin(), in_pass.end(),
              [](const ready_entry& a, const ready_entry& b) { return a.timer < b.timer; });
    std::erase_if(again, [&](record* r) { return list_timer(*r, in_pass, timers); });
  }
  std::sort(timers.begin(), timers.end(), [](const timer_info& a, const timer_info& b) {
    return std::tuple(!a.due, a.due, a.id) < std::tuple(!b.due, b.due, b.id);
  });
  return timers;
}

std::size_t core::pending() const noexcept {
  if (abandoned()) return 0;
  return static_cast<std::size_t>(pool_.total().pending());
}

statistics core::stats() const {
  statistics s;
  if (abandoned()) return s;
  const counters c = pool_.total();
  s.pending = c.pending();
  s.scheduled = c.scheduled;
  s.fired = c.fired;
  s.completed = c.completed;
  s.cancelled = c.cancelled;
  s.returned = c.returned;
  s.failed = c.failed;
  s.missed = c.missed;
  s.overlapped = c.overlapped;
  s.rejected = c.rejected;
  s.wakeups = wakeups();
  s.lateness = meter_.lateness.snapshot();
  s.run_time = meter_.run_time.snapshot();
  return s;
}

std::optional<time_point> core::next_due() {
  if (stopped()) return std::nullopt;
  std::optional<tick_number> earliest = wheel_.next_due();
  const auto consider = [&](tick_number tick) {
    if (!earliest || tick < *earliest) earliest = tick;
  };
  if (const auto in_pass = ready_.next_due()) consider(*in_pass);
  if (without_memory_.load(relaxed) != 0) for_each_without_memory([&](record& r) { consider(r.due_tick()); });
  if (!earliest) return std::nullopt;
  return grid_.begin_of(*earliest);
}

void core::dump(std::ostream& out) {
  if (abandoned()) {
    out << "rondo: this is a copy of a scheduler in a child made by fork(); the driver is in the parent\n";
    return;
  }
  picture p{.grid = grid_, .now = now(), .size = wheel_.buckets()};
  describe(wheel_, p);
  ready_.for_each_current([&](const auto&, bool) { ++p.ready; });
  pool_.for_each([&](record& r) {
    const record_lock hold(r.mutex);
    if (r.where == waits_in::never_due) ++p.never_due;
    if (r.where == waits_in::no_memory) ++p.without_memory;
    p.submitted += r.submitted;
    p.running += r.running;
  });
  p.named = list();
  std::erase_if(p.named, [](const timer_info& t) { return t.name.empty(); });
  draw(out, p);
}

void core::end_call(const char* name) noexcept {
  const std::size_t steps = wheel_.buckets() + pool_.slots() / 8;  // most slots are usually free
  if (!abandoned() && checks_.enough_for(steps)) {
    std::string wrong = fault();
    if (wrong.empty()) wrong = fault_when_quiescent();
    if (!wrong.empty()) {
      dump(std::cerr);
      die("the scheduler is broken after " + std::string(name) + ": " + wrong);
    }
  }
  checks_.end();
}

/// Verifies what is true at any time, whether or not other calls are in progress.
std::string core::fault() {
  std::string wrong = wheel_.fault();
  pool_.for_each([&](record& r) {
    if (!wrong.empty()) return;
    const record_lock hold(r.mutex);
    wrong = r.fault();
    if (!wrong.empty()) wrong = "the timer in slot " + std::to_string(r.slot) + ": " + wrong;
  });
  return wrong;
}

/// Verifies what is true when no other call, pass or job is in progress. Returns an empty string if one is, or if one
/// begins in between.
std::string core::fault_when_quiescent() {
  std::string wrong;
  const bool was_quiescent = checks_.alone_during([&] {
    census found;
    // for_each() would drop cancelled nodes, but a check changes nothing.
    wheel_.for_each_entry([&](std::optional<std::size_t>, tick_number, auto&& each) {
      each([&](const shared_node&) { ++found.in_wheel; });
    });
    ready_.for_each_current([&](const auto&, bool) { ++found.in_pass; });
    pool_.for_each([&](record& r) {
      const record_lock hold(r.mutex);
      if (r.where == waits_in::never_due) ++found.never_due;
      if (r.where == waits_in::no_memory) ++found.without_memory;
      if (r.where == waits_in::nowhere) ++found.with_executor;  // no run is in progress
    });
    found.slots = pool_.slots();
    found.free = pool_.free();
    wrong = fault_of(pool_.total(), found);
  });
  return was_quiescent ? wrong : "";
}

}  // namespace rondo::detail
