// basic_core: a pass of the driver, and the life of one run.
#pragma once

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "scheduler/core.hpp"
#include "scheduler/core_schedule.hpp"

namespace rondo::detail {

/// While it lives, a pass of the driver, a job on an executor's thread, or a call of a handler is in progress. stop()
/// waits until there is none.
template <class Sync>
class basic_core<Sync>::in_flight_guard {
 public:
  explicit in_flight_guard(basic_core& core) noexcept : core_(core), here_(marker::kind::in_flight, &core) {
    core_.in_flight_.begin();
    if constexpr (is_checked) core_.begin_call();
  }
  ~in_flight_guard() {
    if constexpr (is_checked) core_.end_call("a pass, a job or a call of on_earlier");
    core_.in_flight_.end();
  }
  in_flight_guard(const in_flight_guard&) = delete;
  in_flight_guard& operator=(const in_flight_guard&) = delete;

 private:
  basic_core& core_;
  const marker here_;
};

template <class Sync>
std::size_t basic_core<Sync>::run_pass(time_point until, std::size_t limit) {
  const in_flight_guard guard(*this);
  const auto user = handlers_.get();
  if (stopped() || user == nullptr) return 0;
  pass p{*user, now()};
  const tick_number due = grid_.at_or_before(std::min(until, p.reading));
  collect(due);
  retry_insertions(due);
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
template <class Sync>
void basic_core<Sync>::collect(tick_number until) {
  ready_.begin_pass(until);
  for (;;) {
    const std::size_t room = ready_.make_room();
    const std::size_t taken = wheel_.take_due(
        until, room, [this](node& n, tick_number tick) { ready_.push(static_cast<record_type&>(n), tick); });
    if (taken != room || room == 0) return;
  }
}

/// Inserts the timers that waited for memory into the wheel, or, if they are due at `until`, into the pass, which takes
/// no memory. A timer waits for the same moment as before, so its `arming` stays: a stop() or drain() in progress may
/// have found it.
template <class Sync>
void basic_core<Sync>::retry_insertions(tick_number until) noexcept {
  insert_hooks hooks(*this, insert_hooks::inserts::old_timers);  // the driver itself: no wake-up is needed
  while (record_type* const r = retries_.first()) {
    const record_lock hold(r->mutex);
    if (r->state.where() != waits_in::retry_list) continue;  // it was cancelled or moved in the meantime
    if (r->due <= until && ready_.make_room() != 0) {
      ready_.push(*r, r->due);
    } else {
      try {
        if (!wheel_.schedule(*r, r->due, hooks)) return;
      } catch (const std::bad_alloc&) {
        return;
      }
    }
    retries_.remove(*r);
    r->state.wait_in(waits_in::wheel);
  }
}

/// Runs the task or submits it to the executor. Returns false if the entry leads to no run.
template <class Sync>
bool basic_core<Sync>::begin(const ready_entry& entry, pass& p) {
  dispatch_result d = dispatch(entry, p);
  if (d.overlapped != 0) pool_.count([&](counters& c) { c.overlapped += d.overlapped; });
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
template <class Sync>
typename basic_core<Sync>::dispatch_result basic_core<Sync>::dispatch(const ready_entry& entry, pass& p) {
  dispatch_result d;
  record_type& r = *entry.timer;
  record_lock hold(r.mutex);
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

template <class Sync>
void basic_core<Sync>::dispatch_one_shot(record_lock& hold, record_type& r, dispatch_result& d) noexcept {
  r.state.wait_in(waits_in::nowhere);  // the wheel has let go of it
  r.invalidate_wait();
  if (d.what == verdict::run_here) return begin_run(hold, r);
  d.ticket = next_order();
  d.own = r.own;
  r.submit(d.ticket);
}

template <class Sync>
void basic_core<Sync>::dispatch_periodic(record_lock& hold, const ready_entry& entry, time_point reading,
                                         dispatch_result& d) {
  record_type& r = *entry.timer;
  const bool submits = d.what == verdict::submit;
  if (draining()) {
    d.what = verdict::ended;
    return finish(hold, r, ending::over);
  }
  if (submits) r.repeats->submitted.reserve_one();
  const time_point tick_begin = grid_.begin_of(grid_.at_or_before(reading));
  const repetition::step next =
      r.repeats->next.point_came({reading, tick_begin}, r.state.in_progress(), submits);
  await(r, next);
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
  if (!submits) return begin_run(hold, r);
  d.ticket = next_order();
  d.own = r.own;
  r.submit({d.ticket, is_later ? grid_.of_deadline(d.fact.due, reading) : entry.tick, *next.run});
}

/// Makes `r`, which is locked and in the pass, wait for what its repetition says.
template <class Sync>
void basic_core<Sync>::await(record_type& r, const repetition::step& next) noexcept {
  if (!next.wait_for) return disarm(r);
  const tick_number tick = grid_.of_point(*next.wait_for);
  if (next.is_late && ready_.collects(tick)) {  // it takes its turn in this pass
    r.invalidate_wait();
    r.deadline = *next.wait_for;
    r.due.store(tick);
    if (ready_.push_late(r, tick)) return;
  }
  move_hooks hooks(*this, r.generation);  // the driver itself: no wake-up is needed
  arm_surely(r, *next.wait_for, tick, hooks);
}

/// Counts a run of `r`, which is locked, that begins now. With its last run, the timer ceases to be pending. Unlocks
/// `r`.
template <class Sync>
void basic_core<Sync>::begin_run(record_lock& hold, record_type& r) noexcept {
  r.state.start_run();
  if (r.over()) return finish(hold, r, ending::last_run);
  hold.unlock();
  pool_.count([](counters& c) { ++c.fired; });
}

/// Runs the task and returns the time at which it ended. What the task throws is stored in `thrown` or, if that is
/// null, reported. Precondition: begin_run() was called.
template <class Sync>
time_point basic_core<Sync>::run(record_type& r, const firing& fact, time_point start,
                                 std::exception_ptr* thrown) noexcept {
  meter_.begins(fact.lateness);
  // Only now: a run that was submitted may be taken back or rejected, and then reports nothing.
  if (fact.missed != 0) pool_.count([&](counters& c) { c.missed += fact.missed; });
  if constexpr (is_checked) count_run_on_this_thread();
  const marker here(marker::kind::user_code, this, &r);
  try {
    r.work(fact);
  } catch (...) {
    pool_.count([](counters& c) { ++c.failed; });
    if (thrown != nullptr)
      *thrown = std::current_exception();
    else
      handlers_.report(error_source::task, std::current_exception(), fact);
  }
  const time_point end = now();
  const duration run_time = saturating_difference(end, start);
  if (!meter_.ends(run_time)) return end;
  handlers_.report_slow({fact, run_time, r.work.made_at()});
  return now();
}

/// Called when a run is over: the timer ends with it or waits for its next run.
template <class Sync>
void basic_core<Sync>::end_run(record_type& r, time_point ended) noexcept {
  record_lock hold(r.mutex);
  if (r.periodic()) {
    if (r.state.live() && draining()) {  // the search of drain() may have missed the timer
      finish(hold, r, ending::over);
      hold.lock();
    }
    // The last run of a timer that is no longer live stays "running" until its callable is destroyed.
    if (r.state.live() || r.state.running() != 1) {
      move_hooks hooks(*this, r.generation);
      r.state.end_run();
      if (r.state.live()) rearm(r, ended, hooks);
      hold.unlock();
      return hooks.wake();
    }
  }
  const bool completed = r.state.completed();  // otherwise whoever ended it has counted it
  dispose(hold, r, marker::kind::user_code, [completed](counters& c) { c.completed += completed ? 1 : 0; });
}

/// Called when a run of `r`, which is locked and live, is over: what waited for that now waits for the driver.
template <class Sync>
void basic_core<Sync>::rearm(record_type& r, time_point ended, move_hooks& hooks) noexcept {
  if (r.state.in_progress()) return;
  const auto due = r.repeats->next.run_ended(ended, r.state.where() != waits_in::nowhere);
  if (due) arm_surely(r, *due, grid_.of_deadline(*due, ended), hooks);
}

template <class Sync>
void basic_core<Sync>::call_out(const void* listener, const std::function<void()>& handler) noexcept {
  const in_flight_guard guard(*this);
  if (stopped()) return;
  const marker here(marker::kind::handler, this, listener);
  try {
    handler();
  } catch (...) {
    handlers_.report(error_source::on_earlier, std::current_exception(), {});
  }
}

}  // namespace rondo::detail
