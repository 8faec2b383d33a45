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

#include "scheduler/shown.hpp"
#include "scheduler/timer_group.hpp"
#include "values/fresh_seed.hpp"
#include "platform.hpp"
#include "values/interruption.hpp"

#if RONDO_HAS_MALLOC_TRIM
#include <malloc.h>
#endif

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
      shards_(o.buckets, grid_.at_or_before(start)),
      handlers_({o.run_on, o.on_error, o.on_slow, o.on_rejected, o.propagate_exceptions}),
      trace_(o.traced_by, number_, o.name, time == kind_of_time::virtual_time),
      slow_after_(checked_slow_after(o.slow_after)),
      max_pending_(o.max_pending),
      is_virtual_(time == kind_of_time::virtual_time) {}

/// Takes a permit for one more timer. Throws capacity_error if max_pending are taken.
void core::take_permit() {
  std::size_t taken = permits_taken_.load(relaxed);
  do {
    if (taken >= max_pending_)
      throw capacity_error("rondo: max_pending is " + std::to_string(max_pending_) +
                           ", and that many timers are pending");
  } while (!permits_taken_.compare_exchange_weak(taken, taken + 1, relaxed));
}

void core::return_permit() noexcept {
  if (max_pending_ != unlimited) permits_taken_.fetch_sub(1, relaxed);
}

void core::refuse_stopped() const {
  throw stopped_error(
      abandoned()
          ? "rondo: a timer was scheduled in a child made by fork(), where the scheduler has no driver"
          : "rondo: a timer was scheduled after stop() or drain()");
}

/// The record that serves the timer, with its shard locked by `hold`; or null, and `hold` owns nothing.
record* core::find(timer_id id, shard_lock& hold) const noexcept {
  const timer_id_parts which = timer_id_access::parts(id);
  if (which.scheduler != number_) return nullptr;
  record* const r = shards_.find(which.slot, hold);
  return r != nullptr && r->generation == which.generation ? r : nullptr;
}

record& core::take_record(bool is_owned) {
  if (stopping()) refuse_stopped();
  if (is_owned || max_pending_ == unlimited) return shards_.take();
  return take_limited_record();
}

/// As take_record(), for a scheduler with a limit. (Not inlined: otherwise take_record() would save registers for it.)
record& core::take_limited_record() {
  take_permit();
  try {
    return shards_.take();
  } catch (...) {
    return_permit();
    throw;
  }
}

void core::discard(record& r, bool is_owned) noexcept {
  r.leave_owner();
  const marker here(marker::kind::destruction, this,
                    &r);  // keeps this core if what is destroyed destroys the scheduler
  if (!is_owned) return_permit();
  r.destroy_what_it_owns();
  shard_lock hold(shards_.of(r).mutex);
  free_record(hold, r);
}

timer_id core::schedule(record& r, time_point due, time_point now) {
  tick_number tick = grid_.of_deadline(due, now);
  if (r.plain())
    r.kind = task_access::trivial_to_destroy(r.work) ? timer_kind::plain : timer_kind::one_shot;
  else
    tick = tick_of(r, tick, due);
  const timer_id id = id_of(r);  // as soon as the shard is unlocked, others may use the record
  waking wakes;
  {
    shard& s = shards_.of(r);
    const std::lock_guard hold(s.mutex);
    publish(s, r, due, tick, now, wakes);
  }
  if (wakes != nullptr) wakes->next_due_moved_earlier();
  return id;
}

/// Makes a new timer, whose shard is locked, known to all, unless the scheduler is stopped or draining. stop() and drain()
/// raise a flag, and then visit each record with its shard locked: so they find the timer, or the flag is seen here.
void core::publish(shard& s, record& r, time_point due, tick_number tick, time_point now, waking& wakes) {
  if (stopping()) refuse_stopped();
  wait(s, r, due, tick, now, wakes);
  r.state = life::live;
  ++s.counts.scheduled;
}

time_point core::make_periodic(record& r, const recurrence& when, time_point now) {
  const recurrence::occurrence first = when.first(now, fresh_seed());
  r.with_extra().repeats = std::make_unique<periodic_part>(periodic_part{{when, first}, {}});
  r.kind = timer_kind::periodic;
  if (r.has_own_executor() || handlers_.has_executor()) r.repeats().submitted.reserve_one();
  return first.due;
}

/// Sets the order of a wait of `r` that begins when the clock says `now`. In virtual time, which stands still, waits are
/// counted; invalidate_wait() needs some numbers in between.
void core::set_order(shard& s, record& r, time_point now) noexcept {
  const std::uint64_t least = r.order.load(relaxed) + 1;
  if (is_virtual_) {
    constexpr std::uint64_t room = 64;
    r.order.store(std::max(next_number() * room, least), relaxed);
  } else {
    const auto reading = static_cast<std::uint64_t>(now.time_since_epoch().count()) ^ std::uint64_t{1} << 63;
    s.last_order = std::max({reading, s.last_order + 1, least});
    r.order.store(s.last_order, relaxed);
  }
}

/// Makes `r`, whose shard `s` is locked, wait for `deadline`, and no longer for what it waits for now. Strong guarantee.
void core::wait(shard& s, record& r, time_point deadline, tick_number tick, time_point now, waking& wakes) {
  if (tick == never_tick) [[unlikely]] {
    leave_count(r);
    if (r.wheel != nullptr) r.wheel->erase(r);
    r.due = never_tick;
    r.where = waits_in::never_due;
    ++s.counts.never_due;
  } else {
    s.wheel.schedule(r, tick);
    if (shards_.note_key(s)) wakes = shared_from_this();
    leave_count(r);
    r.where = waits_in::wheel;
  }
  set_order(s, r, now);
  r.deadline = deadline;
}

/// As wait(), but it cannot fail: if there is no memory, each pass tries again.
void core::wait_surely(record& r, time_point deadline, tick_number tick, time_point now,
                       waking& wakes) noexcept {
  try {
    wait(shards_.of(r), r, deadline, tick, now, wakes);
  } catch (const std::bad_alloc&) {
    leave_count(r);
    if (r.wheel != nullptr) r.wheel->erase(r);
    r.due = tick;
    set_order(shards_.of(r), r, now);
    r.deadline = deadline;
    r.where = waits_in::no_memory;
    without_memory_.fetch_add(1, relaxed);
    wakes = shared_from_this();  // the driver tries again, and no longer sleeps past the timer's time
  }
}

/// Ends the wait of `r`, whose shard is locked.
void core::stop_waiting(record& r) noexcept {
  if (r.where == waits_in::nowhere) return;
  if (r.where == waits_in::wheel) r.wheel->cancel(r);
  leave_count(r);
  r.where = waits_in::nowhere;
  r.invalidate_wait();
}

void core::leave_count(record& r) noexcept {
  if (r.where == waits_in::no_memory) without_memory_.fetch_sub(1, relaxed);
  if (r.where == waits_in::never_due) {
    --shards_.of(r).counts.never_due;
    made_due_.fetch_add(1, relaxed);
  }
}

bool core::reschedule(timer_id id, time_point due, time_point now) {
  waking wakes;
  const bool moved = reschedule(id, due, now, wakes);
  if (wakes != nullptr) wakes->next_due_moved_earlier();
  return moved;
}

bool core::reschedule(timer_id id, time_point due, time_point now, waking& wakes) {
  shard_lock hold;
  record* const r = find(id, hold);
  if (r == nullptr || !r->live() || stopped()) return false;
  tick_number tick = grid_.of_deadline(due, now);
  if (!r->plain()) tick = tick_of(*r, tick, due);
  wait(shards_.of(*r), *r, due, tick, now, wakes);
  if (r->periodic()) {
    const submitted_runs::run* const oldest = r->oldest_submitted();
    r->repeats().next.moved_to(due, r->submitted(), oldest != nullptr ? &oldest->what : nullptr);
  }
  r->take_all_back();
  hold.unlock();
  if (tick == never_tick) endings_.wake();  // drain() no longer waits for it
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
  const timer_id id = core_.schedule_member(*record_, due, now, *group_);
  record_ = nullptr;
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

/// While it lives, a pass is in progress, in which timers come from the wheels and go back there. Who has read next_due()
/// meanwhile, on another thread, may have missed one, and is told at the end.
///
/// Memory order: next_due() raises `asks_again_` and then reads `passes_`; the end of a pass does the reverse. So at least one of
/// them sees what the other has done.
class core::pass_in_progress {
 public:
  explicit pass_in_progress(core& core) noexcept : core_(core) { count(); }
  ~pass_in_progress() {
    count();
    if (core_.asks_again_.load() && core_.asks_again_.exchange(false)) core_.next_due_moved_earlier();
  }
  pass_in_progress(const pass_in_progress&) = delete;
  pass_in_progress& operator=(const pass_in_progress&) = delete;

 private:
  void count() noexcept { core_.passes_.store(core_.passes_.load(relaxed) + 1); }

  core& core_;
};

std::size_t core::run_pass(time_point until, std::size_t limit, woken why) {
  const in_flight_guard guard(*this);
  const pass_in_progress counted(*this);
  const auto user = handlers_.get();
  if (stopped() || user == nullptr) return 0;
  pass p{*user, now()};
  const tick_number due = grid_.at_or_before(std::min(until, p.reading));
  {
    const ready_list::filling in_order(ready_, due);
    collect(due);
    if (without_memory_.load(relaxed) != 0) retry_insertions(due);
  }
  return trace_ ? run_collected_traced(p, limit, why) : run_collected(p, limit);
}

std::size_t core::run_collected(pass& p, std::size_t limit) {
  std::size_t begun = 0;
  while (begun != limit) {
    const auto entry = ready_.front();
    if (!entry) break;
    if (begin(*entry, p)) ++begun;
    if (p.thrown) std::rethrow_exception(std::move(p.thrown));
  }
  return begun;
}

/// A loop may poll often, so what found nothing due is not recorded. (But a driver thread has a reason to wake.)
[[gnu::noinline]] std::size_t core::run_collected_traced(pass& p, std::size_t limit, woken why) {
  const bool is_asked = why == woken::polled || why == woken::advanced;
  if (is_asked && !ready_.front()) return 0;
  struct traced_pass {
    core& of;
    time_point begin;
    recorder::begun here;
    ~traced_pass() { recorder::end(here, saturating_difference(of.now(), begin)); }
  };
  const traced_pass in_trace{*this, p.reading, trace_.pass(p.reading, why)};
  p.reading = now();  // what it took to collect is no part of the first run
  return run_collected(p, limit);
}

/// Takes everything that is due out of the wheels before any of it runs: what tasks make due is for the next pass.
void core::collect(tick_number until) {
  for (;;) {
    const std::size_t room = ready_.make_room();
    // Not once stop() may look where timers wait: see find_unfired().
    const auto may_take = [this] { return !stopped(); };
    const std::size_t taken = shards_.take_due(until, room, may_take, [this](record& r, tick_number tick) {
      r.where = waits_in::pass;
      ready_.push(r, tick);
    });
    if (taken != room || room == 0) return;
  }
}

/// Calls visit(record&), with its shard locked, for each timer that waits for memory. Nearly always there is none, so no
/// list of them is kept, and all records are searched. Precondition: there is one.
template <class Visit>
void core::for_each_without_memory(Visit&& visit) {
  std::size_t left = without_memory_.load(relaxed);
  shards_.any_timer([&](record& r, const shard_lock&) {
    if (r.where != waits_in::no_memory) return false;
    visit(r);
    return --left == 0;
  });
}

/// Inserts the timers that waited for memory into the wheel, or, if they are due at `until`, into the pass, which takes
/// no memory. A timer waits for the same moment as before, so its `order` stays.
void core::retry_insertions(tick_number until) noexcept {
  for_each_without_memory([&](record& r) {
    if (stopped()) return;
    shard& s = shards_.of(r);
    if (r.due <= until && ready_.make_room() != 0) {
      ready_.push(r, r.due);
      shards::note_listed(s, 1);
      r.where = waits_in::pass;
    } else {
      try {
        s.wheel.schedule(r, r.due);
      } catch (const std::bad_alloc&) {
        return;
      }
      shards_.note_key(s);  // the driver itself needs no wake-up
      r.where = waits_in::wheel;
    }
    without_memory_.fetch_sub(1, relaxed);
  });
}

/// Removes the first entry, and runs the task or submits it to the executor. Returns false if the entry leads to no run.
bool core::begin(const ready_entry& entry, pass& p) {
  dispatch_result d = dispatch(entry, p);
  ready_.pop();
  shards_.note_unlisted(*entry.timer);
  switch (d.what) {
    case verdict::run_here: {
      std::exception_ptr* const thrown = p.user.propagate_exceptions ? &p.thrown : nullptr;
      p.reading = trace_ ? run_traced(traced::run, *entry.timer, d.fact, p.reading,
                                      driver_waited_from(entry, d.fact), thrown)
                         : run(*entry.timer, d.fact, p.reading, thrown);
      if (end_run(*entry.timer, p.reading)) p.reading = now();
      return true;
    }
    case verdict::submit:
      if (trace_) {
        p.reading = submit_traced(entry, d, p);
        return true;
      }
      submit(d, p.user);
      p.reading = now();
      return true;
    case verdict::ended:
      p.reading = now();
      break;
    case verdict::stale:
    case verdict::dropped:
      break;
  }
  return false;
}

/// Decides what becomes of an entry, and makes the timer wait for its next run, if there is one. Strong guarantee.
core::dispatch_result core::dispatch(const ready_entry& entry, pass& p) {
  dispatch_result d;
  record& r = *entry.timer;
  shard_lock hold(shards_.of(r).mutex);
  if (!entry.is_current() || stopped()) return d;
  // The pass may contain a timer that another thread made due just now, after the time was read.
  if (r.deadline > p.reading) p.reading = now();
  d.what = p.user.run_on || r.has_own_executor() ? verdict::submit : verdict::run_here;
  d.fact.id = id_of(r);
  d.fact.due = r.deadline;
  d.fact.run = 1;
  d.fact.name = r.name();
  if (r.periodic())
    dispatch_periodic(hold, entry, p.reading, d);
  else
    dispatch_one_shot(hold, r, d);
  d.fact.lateness = saturating_difference(p.reading, d.fact.due);
  return d;
}

void core::dispatch_one_shot(shard_lock& hold, record& r, dispatch_result& d) noexcept {
  stop_waiting(r);
  d.fact.left = 0;
  if (d.what == verdict::run_here) {
    r.note_begin();
    end(r, ending::last_run);
    return hold.unlock();
  }
  d.ticket = next_number();
  d.own = r.own();
  r.submit(d.ticket);
}

void core::dispatch_periodic(shard_lock& hold, const ready_entry& entry, time_point reading,
                             dispatch_result& d) {
  record& r = *entry.timer;
  periodic_part& repeats = r.repeats();
  const bool submits = d.what == verdict::submit;
  const bool is_busy = r.in_progress();
  if (draining()) {
    d.what = verdict::ended;
    return finish(hold, r);
  }
  if (submits && (!is_busy || repeats.next.allows_overlap())) repeats.submitted.reserve_one();
  const time_point tick_begin = grid_.begin_of(grid_.at_or_before(reading));
  const repetition::step next = repeats.next.point_came({reading, tick_begin}, is_busy, submits);
  wait_for_next(r, next, reading);
  shards_.of(r).counts.overlapped += next.overlapped;
  if (!next.run) {
    d.what = verdict::dropped;
    if (trace_ && next.overlapped != 0) trace_.note(traced::overlapped, d.fact, reading, next.overlapped);
    if (!r.over()) return;
    d.what = verdict::ended;
    return finish(hold, r);
  }
  const bool is_later =
      next.run->due != d.fact.due;  // than the point that came, because others of a burst were missed
  d.fact.due = next.run->due;
  d.fact.run = next.run->run;
  d.fact.missed = next.missed;
  if (repeats.next.ends()) d.fact.left = r.left();
  if (!submits) return begin_run(hold, r, next.missed);
  d.ticket = next_number();
  d.own = r.own();
  const tick_number tick =
      is_later ? tick_of(r, grid_.of_deadline(d.fact.due, reading), d.fact.due) : entry.tick;
  r.submit({d.ticket, tick, *next.run});
}

/// Makes `r`, whose shard is locked, and which was in the pass, wait for what its repetition says.
void core::wait_for_next(record& r, const repetition::step& next, time_point now) noexcept {
  if (!next.wait_for) return stop_waiting(r);
  const tick_number tick = tick_of(r, grid_.of_point(*next.wait_for), *next.wait_for);
  // It takes its turn in this pass.
  if (next.is_late && tick <= ready_.collects_until && tick != never_tick) {
    shard& s = shards_.of(r);
    set_order(s, r, now);
    if (ready_.push_late(r, tick)) {
      shards::note_listed(s, 1);
      r.deadline = *next.wait_for;
      r.due = tick;
      r.where = waits_in::late_pass;
      return;
    }
  }
  waking unused;  // the driver itself needs no wake-up
  wait_surely(r, *next.wait_for, tick, now, unused);
}

/// Counts a run of `r`, whose shard is locked, that begins now, and the points that it reports as missed. (Only now: a run that
/// was submitted may be taken back or rejected, and then reports nothing.) With its last run, the timer ceases to be
/// pending. Unlocks `r`.
void core::begin_run(shard_lock& hold, record& r, std::uint64_t missed) noexcept {
  counters& counts = shards_.of(r).counts;
  counts.missed += missed;
  r.note_begin();
  if (r.over())
    end(r, ending::last_run);
  else
    ++counts.fired;
  hold.unlock();
}

/// Runs the task and returns the time when it, and what is told of it, has ended. What the task throws is stored in `thrown` or, if
/// that is null, reported. Precondition: begin_run() was called.
time_point core::run(record& r, const firing& fact, time_point start, std::exception_ptr* thrown) noexcept {
  meter_.record(meter_.lateness, fact.lateness);
  if constexpr (is_checked) count_run_on_this_thread();
  const marker here(marker::kind::user_code, this, &r);
  duration reporting{};
  try {
    r.work(fact);
  } catch (...) {
    failed_.fetch_add(1, relaxed);
    if (thrown != nullptr) {
      *thrown = std::current_exception();
    } else {
      const time_point threw = now();
      handlers_.report(error_source::task, std::current_exception(), fact);
      reporting = saturating_difference(now(), threw);
    }
  }
  const time_point end = now();
  const duration run_time = saturating_difference(end, start) - reporting;
  meter_.record(meter_.run_time, run_time);
  if (run_time <= slow_after_) return end;
  handlers_.report_slow({fact, run_time, r.work.made_at()});
  return now();
}

/// As run(), and records it. `from` is as recorder::run() says.
[[gnu::noinline]] time_point core::run_traced(traced what, record& r, const firing& fact, time_point start,
                                              time_point from, std::exception_ptr* thrown) noexcept {
  const recorder::begun here = trace_.run(what, fact, start, from);
  const time_point ended = run(r, fact, start, thrown);
  recorder::end(here, saturating_difference(ended, start));
  return ended;
}

/// Since when only the driver has kept an entry from starting: its deadline and its tick have come, and it was set. (Its
/// first wait says when that was, unless time is virtual.)
[[gnu::noinline]] time_point core::driver_waited_from(const ready_entry& entry,
                                                      const firing& fact) const noexcept {
  time_point from = std::max(fact.due, grid_.begin_of(entry.tick));
  if (fact.run == 1 && !is_virtual_)
    from = std::max(from,
                    time_point(duration(static_cast<duration::rep>(entry.order ^ std::uint64_t{1} << 63))));
  return from;
}

/// Called when a run is over: the timer ends with it or waits for its next run. Returns whether it has destroyed a callable of
/// the user's, which may have taken a while.
bool core::end_run(record& r, time_point ended) noexcept {
  shard_lock hold(shards_.of(r).mutex);
  if (r.periodic()) {
    // The last run of a timer that is no longer live stays "running" until its callable is destroyed.
    if (r.live() || r.running() != 1) {
      waking wakes;
      r.note_end();
      if (r.live()) wait_after_run(r, ended, wakes);
      hold.unlock();
      if (wakes != nullptr) wakes->next_due_moved_earlier();
      return false;
    }
  }
  // A timer that was cancelled is already counted.
  if (r.state == life::completed) ++shards_.of(r).counts.completed;
  const bool owns_nothing = r.plain() || r.owned();
  release(hold, r, marker::kind::user_code);
  return !owns_nothing;
}

/// Called when a run of `r`, which is live and whose shard is locked, is over: what waited for that now waits for the driver.
void core::wait_after_run(record& r, time_point ended, waking& wakes) noexcept {
  if (r.in_progress()) return;
  const auto due = r.repeats().next.run_ended(ended, r.where != waits_in::nowhere);
  if (due) wait_surely(r, *due, tick_of(r, grid_.of_deadline(*due, ended), *due), ended, wakes);
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

void core::submit(dispatch_result& d, const user_handlers& user) noexcept {
  const std::uint32_t slot = timer_id_access::parts(d.fact.id).slot;
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
               job_ticket{slot, d.ticket, d.fact.due, d.fact.lateness, d.fact.run, d.fact.missed}));
  } catch (...) {
    thrown = std::current_exception();
  }
  const bool dropped = executor_call_.end();
  if constexpr (is_checked) watch->check(d.fact);
  if (thrown) {
    failed_.fetch_add(1, relaxed);
    drop_submission(slot, d.ticket, d.fact, failure::threw);
    handlers_.report(error_source::executor, thrown, d.fact);
  } else if (dropped) {
    drop_submission(slot, d.ticket, d.fact, failure::rejected);
  }
}

/// As submit(), and records it. Returns the time at which the executor returned.
[[gnu::noinline]] time_point core::submit_traced(const ready_entry& entry, dispatch_result& d,
                                                 pass& p) noexcept {
  const recorder::begun here =
      trace_.run(traced::hand_over, d.fact, p.reading, driver_waited_from(entry, d.fact));
  submit(d, p.user);
  const time_point ended = now();
  recorder::end(here, saturating_difference(ended, p.reading));
  return ended;
}

void core::start(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const in_flight_guard guard(*this);
  firing fact;
  shard_lock hold;
  record* const r = shards_.find(ticket.slot, hold);
  if (r == nullptr || stopped() || !r->redeem(ticket.number)) return;
  fact.id = id_of(*r);
  fact.name = r->name();
  fact.left = r->left();
  begin_run(hold, *r, ticket.missed);
  const time_point start = now();
  fact.due = ticket.due;
  fact.lateness = saturating_difference(start, ticket.due);
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  const time_point handed_over = saturating_add(ticket.due, ticket.lateness);
  end_run(*r, trace_ ? run_traced(traced::job, *r, fact, start, handed_over, nullptr)
                     : run(*r, fact, start, nullptr));
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
  drop_submission(ticket.slot, ticket.number, fact, failure::rejected);
}

/// Called when a submitted run will not happen. Does nothing if the run has started or was taken back. If the run was
/// rejected, calls on_rejected after the timer has ended or waits for its next run. Precondition: a stack marker marks
/// user code.
void core::drop_submission(std::uint32_t slot, run_ticket number, firing fact, failure why) noexcept {
  const time_point reading = now();
  std::shared_ptr<const timer_options> own;  // keeps the name for the handler
  std::shared_ptr<rejection> says_which;
  shard_lock hold;
  record* const found = shards_.find(slot, hold);
  if (found == nullptr || stopped() || !found->redeem(number)) return;
  record& r = *found;
  fact.id = id_of(r);
  own = r.own();
  fact.name = r.name();
  fact.left = r.left();
  if (trace_) trace_.note(why == failure::rejected ? traced::rejected : traced::threw, fact, reading, 0);
  if (why == failure::rejected) says_which = task_access::rejecting(r.work);
  if (why == failure::rejected && says_which == nullptr) rejected_.fetch_add(1, relaxed);
  if (r.over()) {
    finish(hold, r);
  } else {
    waking wakes;
    wait_after_run(r, reading, wakes);
    hold.unlock();
    if (wakes != nullptr) wakes->next_due_moved_earlier();
  }
  if (why != failure::rejected || stopped()) return;
  if (says_which == nullptr) return handlers_.report_rejected(fact);
  says_which->report_rejected(fact, now(), [this](const firing& run) {
    rejected_.fetch_add(1, relaxed);
    handlers_.report_rejected(run);
    return pending(run.id);  // the handler may have ended it
  });
}

// How a timer ends.

/// Here a plain timer waits in the wheel. If the driver has taken it out, or an executor has it, stop_waiting() changes its order
/// or the run is taken back, and dispatch() or start() sees that under the shard's lock.
cancel_result core::cancel(timer_id id) {
  const timer_id_parts which = timer_id_access::parts(id);
  shard* const s = which.scheduler == number_ ? shards_.of(which.slot) : nullptr;
  if (s == nullptr) return cancel_result::gone;
  s->mutex.lock();
  record* const r = s->at(which.slot);
  if (r == nullptr || r->generation != which.generation || r->where != waits_in::wheel || !r->plain()) {
    s->mutex.unlock();
    return cancel_any(id);
  }
  // The same as end() and free_record(), for a plain timer in the wheel.
  s->wheel.cancel(*r);
  r->where = waits_in::nowhere;
  r->state = life::free;
  ++r->generation;
  s->counts.count(ending::cancelled, false);
  shards::give_back(*r, *s);
  return_permit();
  if (draining()) endings_.wake();
  return cancel_result::cancelled;
}

/// Not inlined: otherwise cancel() would save registers for it.
cancel_result core::cancel_any(timer_id id) {
  remainder rest;
  const cancel_result result = cancel(id, rest);
  finish(rest);
  if (result == cancel_result::running) interrupt(id);
  return result;
}

void core::interrupt(timer_id id) noexcept {
  shard_lock hold;
  if (record* const r = find(id, hold)) interrupt(*r, hold);
}

/// `hold` locks the shard of `r`; it is unlocked afterwards. The callbacks are inside a run of the timer, and may destroy
/// the scheduler: nothing of it is used after them.
void core::interrupt(record& r, shard_lock& hold) noexcept {
  if (!r.is_running || r.destroying) return hold.unlock();
  const timer_id asked = id_of(r);
  const std::shared_ptr<interruption> runs = task_access::interrupting(r.work);
  const std::uint64_t timer = runs != nullptr ? runs->timer() : 0;
  hold.unlock();
  if (runs == nullptr) return;
  const marker here(marker::kind::request, this, &asked);
  runs->request_stop(timer);
}

/// Precondition: stopped(). So a run that is not found here has seen that, or will, and does not begin. (A thread that has
/// scheduled a task without seeing it has unlocked its shard before this thread locks it.)
void core::interrupt_all() noexcept {
  shards_.for_each([](const shard& s) { const std::lock_guard meets(s.mutex); });
  if (!interruption::any()) return;
  shards_.for_each_timer([this](record& r, shard_lock& hold) { interrupt(r, hold); });
}

cancel_result core::cancel_and_wait(timer_id id) {
  const cancel_result result = cancel(id);
  if (inside(id)) return result;
  const auto is_free = [&] {
    shard_lock hold;
    record* const r = find(id, hold);
    if (r != nullptr) r->awaited = true;
    return r == nullptr;
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

/// The timer of `r`, whose shard is locked, ceases to be pending: no further run starts. Counts it, and returns its
/// permit. If no run is in progress, the caller releases the record; otherwise the end of that run does so.
void core::end(record& r, ending how) noexcept {
  stop_waiting(r);
  r.take_all_back();
  const bool completes = how == ending::last_run || how == ending::over;
  r.state = completes ? life::completed : life::ended;
  // What is destroyed later may read the counters.
  shards_.of(r).counts.count(how, r.is_running);
  // Only now: there are never more timers pending than permits taken.
  if (how != ending::replaced) return_permit();
}

/// Ends the timer of `r`, and releases the record unless a run is in progress. Precondition: `hold` locks its shard. It is
/// unlocked afterwards.
void core::finish(shard_lock& hold, record& r) noexcept {
  end(r, ending::over);
  if (r.is_running) return hold.unlock();
  release(hold, r, marker::kind::user_code);
}

/// Destroys what a timer owned that has ended and has no run in progress, and frees its record. Precondition: `hold`
/// locks its shard; or refers to that lock, only the caller is to release `r`, and it is not plain. It is unlocked afterwards.
void core::release(shard_lock& hold, record& r, marker::kind what) noexcept {
  if (r.plain()) return free_record(hold, r);
  if (hold.owns_lock()) {
    r.destroying = true;
    hold.unlock();
  }
  const marker here(what, this, &r);  // keeps this core if what is destroyed destroys the scheduler
  r.destroy_what_it_owns();
  if (timer_owner* const owner = r.owner()) owner->leave(r, id_of(r));
  hold.lock();
  r.leave_owner();
  r.destroying = false;
  free_record(hold, r);
}

/// Threads are woken only if one waits for this: cancel_and_wait() has left a note under the lock; drain() has raised its
/// flag and then locked each shard, so either it finds the timer gone, or its flag is seen here. Precondition: `hold` locks
/// the shard of `r`. It is unlocked afterwards.
void core::free_record(shard_lock& hold, record& r) noexcept {
  ++r.generation;
  r.is_running = false;
  r.kind = timer_kind::plain;
  r.state = life::free;
  const bool is_awaited = r.awaited;
  r.awaited = false;
  hold.release();
  shards::give_back(r, shards_.of(r));
  if (is_awaited || draining()) endings_.wake();
}

/// Gives back the memory that ended timers have left: to operator delete, and from there to the system, if it can be asked to.
void core::shrink_to_fit() noexcept {
  if (abandoned()) return;
  shards_.shrink_to_fit(ready_);
#if RONDO_HAS_MALLOC_TRIM
  malloc_trim(0);
#endif
}

// Timers that have an owner, and calls in two parts.

timer_id core::schedule_member(record& r, time_point due, time_point now, timer_group& group) {
  // First: a closed group says so, even if the scheduler is full.
  const std::uint32_t place = group.take_place();
  const timer_id id = id_of(r);
  waking wakes;
  bool has_permit = false;
  try {
    if (max_pending_ != unlimited) take_permit();
    has_permit = true;
    // Either close() finds the timer in the group, and finds it pending because its shard is locked until then; or the group
    // is found to be closed here.
    const std::lock_guard hold(shards_.of(r).mutex);
    group.join(r, place, [&] { publish_owned(r, due, now, wakes); });
  } catch (...) {
    if (has_permit) return_permit();
    group.give_back(place);
    throw;
  }
  if (wakes != nullptr) wakes->next_due_moved_earlier();
  return id;
}

timer_id core::replace(timer_id old_id, record& r, time_point due, time_point now, timer_owner& owner,
                       std::uint32_t tag, remainder& rest) {
  waking wakes;
  if (const timer_id in_place = replace_in_place(old_id, r, due, now, tag, wakes); in_place != timer_id{}) {
    shards_.put_back(r);
    rest.wakes = wakes != nullptr;
    rest.has_ended = true;
    return in_place;
  }
  const timer_id id = id_of(r);
  shard_lock old_hold;
  record* old = nullptr;
  {
    shard_lock made_hold(shards_.of(r).mutex, std::defer_lock);
    old = lock_both(made_hold, old_id, old_hold);
    if (old == nullptr && max_pending_ != unlimited) take_permit();
    r.belong_to(owner, tag);
    try {
      publish_owned(r, due, now, wakes);
    } catch (...) {
      if (old == nullptr) return_permit();
      throw;
    }
    if (!old_hold.owns_lock()) old_hold = std::move(made_hold);  // they are in one shard
  }
  rest.wakes = wakes != nullptr;
  // No other shard is locked now: the end may wake threads that look under locks of shards.
  if (old != nullptr) end_for_owner(old_hold, *old, ending::replaced, rest);
  return id;
}

/// As replace(), if that only changes some bytes of the old timer's record: both timers run once, have no options, and
/// own nothing. Then the new timer takes over the record, with its slot in the wheel, and only the callable leaves `r`.
/// Otherwise does nothing, and returns no timer.
timer_id core::replace_in_place(timer_id old_id, record& r, time_point due, time_point now, std::uint32_t tag,
                                waking& wakes) {
  if (!r.plain() || !task_access::is_bytes(r.work)) return {};
  shard_lock hold;
  record* const old = find(old_id, hold);
  if (old == nullptr || !old->owned() || old->where != waits_in::wheel) return {};
  if (stopping()) refuse_stopped();
  shard& s = shards_.of(*old);
  wait(s, *old, due, grid_.of_deadline(due, now), now, wakes);
  old->work = std::move(r.work);
  old->tag = tag;
  ++old->generation;
  ++s.counts.scheduled;
  s.counts.count(ending::replaced, false);
  return id_of(*old);
}

/// Locks the shard of a new timer, to which `made_hold` refers, and that of the timer `id`, in the order of their addresses,
/// so that two threads never wait for each other. Returns the record of that timer, with `old_hold` locking its shard if
/// that is another one. If the timer is not pending, returns null.
record* core::lock_both(shard_lock& made_hold, timer_id id, shard_lock& old_hold) const {
  const timer_id_parts which = timer_id_access::parts(id);
  shard* const s = which.scheduler == number_ ? shards_.of(which.slot) : nullptr;
  shard_lock held;
  if (s == nullptr || &s->mutex == made_hold.mutex()) {
    made_hold.lock();
  } else {
    held = shard_lock(s->mutex, std::defer_lock);
    const bool is_first = std::less<>()(held.mutex(), made_hold.mutex());
    (is_first ? held : made_hold).lock();
    (is_first ? made_hold : held).lock();
  }
  record* const r = s != nullptr ? s->at(which.slot) : nullptr;
  if (r == nullptr || r->generation != which.generation || !r->live()) return nullptr;
  old_hold = std::move(held);
  return r;
}

/// Makes the new timer of `r`, whose shard is locked, and which has an owner, known to all.
void core::publish_owned(record& r, time_point due, time_point now, waking& wakes) {
  if (r.plain()) r.kind = task_access::trivial_to_destroy(r.work) ? timer_kind::owned : timer_kind::one_shot;
  publish(shards_.of(r), r, due, tick_of(r, grid_.of_deadline(due, now), due), now, wakes);
}

/// As end(), for the owner of the timer, which knows that it leaves. If nothing has to be destroyed, frees the record at once,
/// and unlocks its shard.
void core::end_for_owner(shard_lock& hold, record& r, ending how, remainder& rest) noexcept {
  end(r, how);
  if (r.is_running) return;
  rest.has_ended = true;
  const bool owns_nothing = r.owned();
  r.leave_owner();
  if (owns_nothing)
    free_record(hold, r);
  else
    rest.ended = &r;
}

cancel_result core::cancel_for_owner(timer_id id, remainder& rest) noexcept {
  shard_lock hold;
  record* const r = find(id, hold);
  if (r == nullptr) return cancel_result::gone;
  if (!r->live()) return r->is_running ? cancel_result::running : cancel_result::gone;
  end_for_owner(hold, *r, ending::cancelled, rest);
  return rest.has_ended ? cancel_result::cancelled : cancel_result::running;
}

/// As cancel(), for a timer of that group.
cancel_result core::cancel_member(timer_id id, timer_group& group) {
  std::shared_ptr<void> last;  // destroyed without the lock
  {
    shard_lock hold;
    record* const r = find(id, hold);
    if (r == nullptr || r->owner() != &group) return cancel_result::gone;
    if (r->owned() && r->where == waits_in::wheel) {  // so it owns nothing that must be destroyed
      end(*r, ending::cancelled);
      last = group.remove(*r);
      r->leave_owner();
      free_record(hold, *r);
      return cancel_result::cancelled;
    }
  }
  return cancel(id);
}

cancel_result core::cancel(timer_id id, remainder& rest) noexcept {
  shard_lock hold;
  record* const r = find(id, hold);
  if (r == nullptr) return cancel_result::gone;
  const bool is_running = r->is_running;
  if (!r->live()) return is_running ? cancel_result::running : cancel_result::gone;
  end(*r, ending::cancelled);
  if (is_running) return cancel_result::running;
  if (r->plain())
    free_record(hold, *r);
  else
    rest.ended = r;
  return cancel_result::cancelled;
}

bool core::reschedule(timer_id id, time_point due, time_point now, remainder& rest) {
  waking wakes;
  const bool moved = reschedule(id, due, now, wakes);
  rest.wakes = wakes != nullptr;
  return moved;
}

/// Wakes first: what is destroyed may run for long, and the driver must not sleep past the new deadline meanwhile. Waking it may
/// run user code (on_earlier), which must not wait for the end of the timer, because this call completes it.
void core::finish(const remainder& rest) noexcept {
  if (rest.wakes) {
    const marker here(marker::kind::destruction, this, rest.ended);
    next_due_moved_earlier();
  }
  if (rest.ended == nullptr) return;
  shard_lock hold(shards_.of(*rest.ended).mutex, std::defer_lock);
  release(hold, *rest.ended, marker::kind::destruction);
}

bool core::belongs(timer_id id, const timer_group& group) const {
  shard_lock hold;
  const record* const r = find(id, hold);
  return r != nullptr && r->owner() == &group;
}

template <class Visit>
void core::for_each_member(timer_group& group, Visit&& visit) const {
  if (abandoned()) return;
  group.for_each([&](const timer_group::place& p) { visit(id_of(p.slot, p.generation)); });
}

bool core::inside(timer_id id) const {
  return inside_any([&](const record& own) { return id_of(own) == id; });
}

bool core::inside_tagged(const timer_owner& owner, std::uint32_t tag) const {
  return inside_any([&](const record& own) { return own.owner() == &owner && own.tag == tag; });
}

/// Whether the caller is inside a run of a timer, or the destruction of its callable, whose record is(record) returns true
/// for.
template <class Is>
bool core::inside_any(Is&& is) const {
  return marker::inside_any(this, [&](marker::kind what, const void* which) {
    if (what != marker::kind::request) return is(*static_cast<const record*>(which));
    // A stop callback may still be running when the run that it asked is over, and its timer is gone.
    shard_lock hold;
    const record* const asked = find(*static_cast<const timer_id*>(which), hold);
    return asked != nullptr && is(*asked);
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

/// Finds the timers by their records, wherever they wait: see find_unfired().
std::optional<std::vector<unfired>> core::stop_by(time_point end) {
  const bool from_inside = stack_marker::inside(this);
  std::vector<unfired> list;
  if (abandoned()) return list;
  std::vector<candidate> found;
  if (unfired_.load(relaxed) == unfired_list::unclaimed) {
    const std::size_t expected = pending() + 64;  // 64 for what other threads may schedule in the meantime
    list.reserve(expected);
    found.reserve(expected);
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
  stopped_.store(true, relaxed);
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
    shard_lock hold;
    const record* const r = find(found[i].id, hold);
    if (r == nullptr || !r->live() || r->name().empty()) continue;
    names.resize(found.size());
    names[i] = r->name();
  }
  return names;
}

/// Finds all timers that wait, in the order in which stop() hands them back. Ends those that have a run in progress, which is
/// their last. Precondition: stopped(). So no run begins, and no pass takes a timer out of a wheel: each timer that is found
/// waits where it was seen, until it is cancelled or handed back.
void core::find_unfired(std::vector<candidate>& found) {
  shards_.for_each_timer([&](record& r, shard_lock& hold) {
    if (!r.live()) return;
    if (r.is_running) return finish(hold, r);
    const auto next = r.first_run();
    found.push_back({id_of(r), next.tick, r.is_submitted ? waits_in::nowhere : r.where, next.order});
  });
  std::sort(found.begin(), found.end(), [](const candidate& a, const candidate& b) {
    return std::tie(a.tick, a.where, a.order) < std::tie(b.tick, b.where, b.order);
  });
}

void core::hand_back(const candidate& c, std::string&& name, std::vector<unfired>& list) {
  shard_lock hold;
  record* const found = find(c.id, hold);
  if (found == nullptr || !found->live()) return;
  record& r = *found;
  const time_point due = r.first_run().due;
  end(r, ending::returned);
  hold.unlock();
  // stop() may have asked its last run, which must not concern those by hand.
  if (const auto runs = task_access::interrupting(r.work)) runs->leave_timer();
  list.push_back({c.id, due, std::move(r.work), std::move(name)});  // moving a callable is user code
  hold.lock();
  release(hold, r, marker::kind::user_code);  // its executor may stop or destroy the scheduler
}

void core::refuse_inside(const char* call) const {
  if (stack_marker::inside(this))
    throw std::logic_error(std::string("rondo: ") + call + "() was called from inside a task");
}

bool core::drain(duration limit) {
  refuse_inside("drain");
  if (abandoned()) return true;
  draining_.store(true, relaxed);
  end_periodic_timers();
  if (!pass_time_until_drained(limit)) return false;
  set_stopped();
  return true;
}

/// Ends the periodic timers; a run in progress is their last. Those that are being scheduled find the flag up.
void core::end_periodic_timers() {
  shards_.for_each_timer([this](record& r, shard_lock& hold) {
    if (r.live() && r.periodic()) finish(hold, r);
  });
}

/// (What has ended when its shard is read was ended by a pass or a job that has begun before: so in_flight() comes after that.
/// A timer that was never due when its shard was read may have been moved since, also by that pass or job.)
bool core::drained() noexcept {
  const std::uint64_t made_due = made_due_.load(relaxed);
  const counters all = shards_.total();
  return all.pending() <= all.never_due && in_flight() == 0 && made_due_.load(relaxed) == made_due;
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
  shards_.for_each_timer([this](record& r, shard_lock& hold) {
    if (r.live()) finish(hold, r);
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
  shard_lock hold;
  const record* const r = find(id, hold);
  return r != nullptr && r->live();
}

std::optional<time_point> core::due(timer_id id) {
  shard_lock hold;
  const record* const r = find(id, hold);
  return r != nullptr && r->live() ? r->waits_for() : std::nullopt;
}

std::vector<timer_info> core::list() {
  return abandoned() ? std::vector<timer_info>() : list_of(shards_, number_);
}

std::size_t core::pending() const noexcept {
  if (abandoned()) return 0;
  return static_cast<std::size_t>(shards_.total().pending());
}

statistics core::stats() const {
  statistics s;
  if (abandoned()) return s;
  const counters c = shards_.total();
  s.pending = c.pending();
  s.scheduled = c.scheduled;
  s.fired = c.fired;
  s.completed = c.completed;
  s.cancelled = c.cancelled;
  s.returned = c.returned;
  s.failed = failed_.load(relaxed);
  s.missed = c.missed;
  s.overlapped = c.overlapped;
  s.rejected = rejected_.load(relaxed);
  s.wakeups = wakeups();
  s.lateness = meter_.lateness.snapshot();
  s.run_time = meter_.run_time.snapshot();
  return s;
}

std::optional<time_point> core::next_due() {
  for (;;) {
    const std::uint64_t before = passes_.load();
    const std::optional<time_point> due = look_for_next_due();
    const bool is_in_pass = before % 2 != 0;
    if ((!is_in_pass && passes_.load() == before) || stack_marker::inside(this)) return due;
    asks_again_.store(true);
    if (passes_.load() % 2 != 0) return due;  // the end of the pass tells
  }
}

/// Exact if no pass is in progress.
std::optional<time_point> core::look_for_next_due() {
  if (stopped()) return std::nullopt;
  std::optional<tick_number> earliest = shards_.next_due();
  const auto consider = [&](tick_number tick) {
    if (!earliest || tick < *earliest) earliest = tick;
  };
  if (const auto in_pass = ready_.next_due()) consider(*in_pass);
  if (without_memory_.load(relaxed) != 0) for_each_without_memory([&](record& r) { consider(r.due); });
  if (!earliest) return std::nullopt;
  return grid_.begin_of(*earliest);
}

void core::dump(std::ostream& out) {
  if (abandoned()) {
    out << "rondo: this is a copy of a scheduler in a child made by fork(); the driver is in the parent\n";
    return;
  }
  draw(out, picture_of(shards_, number_, grid_, now()));
}

void core::end_call(const char* name) noexcept {
  // Most slots are usually free. (In a copy made by fork(), the shards' locks may never be free.)
  const auto steps = [this] { return shards_.buckets() + shards_.slots() / 8; };
  if (!abandoned() && checks_.enough_for(steps())) {
    std::string wrong = shards_.fault();
    std::string sums;  // what is true when no other call, pass or job is in progress
    const auto count = [&] { sums = fault_of(shards_.total(), census_of(shards_)); };
    if (wrong.empty() && checks_.alone_during(count)) wrong = std::move(sums);
    if (!wrong.empty()) {
      dump(std::cerr);
      die("the scheduler is broken after " + std::string(name) + ": " + wrong);
    }
  }
  checks_.end();
}

}  // namespace rondo::detail
