// basic_core: a pass of the driver, and the life of one run.
#pragma once

#include <algorithm>

#include "scheduler/core.hpp"

namespace rondo::detail {

template <class Sync>
basic_core<Sync>::activity::activity(basic_core& c) noexcept : core_(c), frame_(frame::kind::activity, &c) {
  core_.activities_.begin();
  if constexpr (is_checked) core_.begin_call();
}

template <class Sync>
basic_core<Sync>::activity::~activity() {
  if constexpr (is_checked) core_.end_call("a pass, a job or a call of on_earlier");
  core_.activities_.end();
}

template <class Sync>
std::size_t basic_core<Sync>::run_pass(time_point until, std::size_t limit) {
  const activity in_progress(*this);
  const auto user = handlers_.get();
  if (stopped() || user == nullptr) return 0;
  pass p{*user, now()};
  const tick_number due = grid_.at_or_before(std::min(until, p.reading));
  collect(due);
  place_unplaced(due);
  std::size_t begun = 0;
  while (begun != limit && !stopped()) {
    const auto entry = ready_.front();
    if (!entry) break;
    if (begin(*entry, p)) ++begun;
    // Only now, and not if it did not begin because of stop(): until it has begun it is to be found there.
    if (!stopped()) ready_.pop();
  }
  return begun;
}

/// Takes what is due out of the wheel, all of it before any of it runs: what tasks make due is for the next
/// pass.
template <class Sync>
void basic_core<Sync>::collect(tick_number until) {
  collected_ = until;  // (what a pass before has left over, as it reached its limit, comes first)
  for (;;) {
    const std::size_t room = ready_.make_room();
    const std::size_t taken = wheel_.take_due(
        until, room, [this](node& n, tick_number tick) { ready_.push(static_cast<record_type&>(n), tick); });
    if (taken != room || room == 0) return;
  }
}

/// Runs the task, or hands it to the executor; false if the entry is not good any more or no run comes of it.
template <class Sync>
bool basic_core<Sync>::begin(const typename ready_list<Sync>::entry& entry, pass& p) {
  beginning b = take_up(entry, p);
  if (b.overlapped != 0 || b.fact.missed != 0) {
    pool_.count([&](tally& t) {
      t.overlapped += b.overlapped;
      t.missed += b.fact.missed;
    });
  }
  if (b.drained) complete(*entry.timer);
  if (b.timer == nullptr) {
    if (b.last) count_leaving();
    return false;
  }
  if (b.ticket != 0) {
    hand_over(b, p.user);
    p.reading = now();
  } else {
    p.reading = run(*b.timer, b.generation, b.fact, b.last, p.reading);
    end_run(*b.timer, p.reading);
  }
  return true;
}

/// Turns a waiting timer into a run, and has a periodic one wait for the next. Strong guarantee.
template <class Sync>
typename basic_core<Sync>::beginning basic_core<Sync>::take_up(const typename ready_list<Sync>::entry& entry,
                                                               pass& p) {
  beginning b;
  record_type& r = *entry.timer;
  const record_lock hold(r.mutex);
  if (r.arming.load(std::memory_order_relaxed) != entry.arming || stopped()) return b;
  b.fact.due = r.deadline;
  // What another thread made due just now, after the time was read, may have come into the pass.
  if (b.fact.due > p.reading) p.reading = now();
  const bool to_executor = r.run_on != nullptr || p.user.run_on;
  b.fact.run = 1;
  if (!r.periodic()) {
    disarm(r);
  } else if (draining()) {
    end_now(r);
    b.last = r.completes = r.running != 0;  // who ends that run sees to the rest
    b.drained = !b.last;
    return b;
  } else {
    if (to_executor) r.repeats->make_room_for_ticket();
    recurrence::occurrence what;
    if (!take_up_point(r, to_executor, p.reading, what, b)) return b;
    if (to_executor) {
      const bool is_later =
          what.due != b.fact.due;  // than the point that came, as others of a burst were missed
      const tick_number tick = is_later ? grid_.of_deadline(what.due, p.reading) : entry.tick;
      const std::uint64_t order = orders_.fetch_add(1, std::memory_order_relaxed);
      r.repeats->handed.push_back({r.tickets + 1, tick, order, what});
    }
    b.fact.due = what.due;
    b.fact.run = what.run;
  }
  b.timer = &r;
  b.generation = r.generation;
  b.fact.id = id_of(r);
  b.fact.lateness = saturating_difference(p.reading, b.fact.due);
  if (to_executor) {
    b.run_on = r.run_on;
    b.ticket = r.in_hand_over = r.only_ticket = ++r.tickets;
    ++r.handed;
    if (!r.periodic()) r.order = orders_.fetch_add(1, std::memory_order_relaxed);
  } else {
    ++r.running;
    b.last = end_if_over(r);
  }
  return b;
}

/// Runs the task; returns when that ended. Precondition: counted in r.running. `last`: with this run the
/// timer has ceased to be pending.
template <class Sync>
time_point basic_core<Sync>::run(record_type& r, std::uint64_t generation, const firing& fact, bool last,
                                 time_point start) noexcept {
  pool_.count([&](tally& t) {
    ++t.fired;
    if (last) ++t.left;
  });
  if (last) limit_.free_place();
  lateness_.record(fact.lateness);
  const frame here(frame::kind::user_code, this, &r, generation);
  try {
    r.work(fact);
  } catch (...) {
    pool_.count([](tally& t) { ++t.failed; });
    handlers_.report(thrower::task, std::current_exception(), fact);
  }
  const time_point end = now();
  const duration run_time = saturating_difference(end, start);
  run_time_.record(run_time);
  if (run_time <= slow_after_) return end;
  handlers_.report_slow({fact, run_time, r.work.made_at()});
  return now();
}

template <class Sync>
void basic_core<Sync>::end_run(record_type& r, time_point ended) noexcept {
  bool completed = true;
  if (r.periodic()) {  // which does not change while it runs
    gate way_in(*this, gate::of::old_timers);
    bool goes_on = true;
    bool last = false;
    {
      const record_lock hold(r.mutex);
      last = end_if_draining(r);
      // The last run of one that is not live any more stays "running" until its callable is destroyed.
      goes_on = r.live || r.running != 1;
      if (goes_on) --r.running;
      if (r.live) go_on(r, ended, way_in);
      completed = r.completes;  // otherwise it was counted by whoever ended it
    }
    way_in.wake();
    if (last) count_leaving();
    if (goes_on) return;
  }
  finish(r, [&](tally& t) { t.completed += completed ? 1 : 0; });
}

template <class Sync>
void basic_core<Sync>::call_out(const void* whom, const std::function<void()>& handler) noexcept {
  const activity in_progress(*this);
  if (stopped()) return;
  const frame here(frame::kind::user_code, this, whom);
  try {
    handler();
  } catch (...) {
    handlers_.report(thrower::on_earlier, std::current_exception(), {});
  }
}

}  // namespace rondo::detail
