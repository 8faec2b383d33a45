// basic_core: scheduling, and what it and rescheduling share.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>

#include "scheduler/core.hpp"
#include "values/fresh_seed.hpp"

namespace rondo::detail {

inline duration checked_tick(duration tick) {
  if (tick <= duration::zero())
    throw std::invalid_argument("rondo: the tick must be positive, not " + std::to_string(tick.count()) +
                                " ns");
  return tick;
}

inline duration checked_slow_after(duration slow_after) {
  if (slow_after < duration::zero())
    throw std::invalid_argument("rondo: slow_after must not be negative, as " +
                                std::to_string(slow_after.count()) + " ns is");
  return slow_after;
}

inline std::uint32_t next_scheduler_number() noexcept {
  static std::atomic<std::uint32_t> numbers{0};
  std::uint32_t number = 0;
  while (number == 0) number = numbers.fetch_add(1, std::memory_order_relaxed) + 1;  // 0 is nobody's
  return number;
}

template <class Sync>
basic_core<Sync>::basic_core(const options& o, time_point start)
    : number_(next_scheduler_number()),
      grid_(checked_tick(o.tick), start),
      slow_after_(checked_slow_after(o.slow_after)),
      wheel_(o.buckets, grid_.at_or_before(start)),
      limit_(o.max_pending),
      handlers_({o.run_on, o.on_error, o.on_slow}) {}

template <class Sync>
void basic_core<Sync>::refuse_stopped() const {
  throw stopped_error(abandoned()
                          ? "rondo: a timer was scheduled in a child made by fork(), without the driver"
                          : "rondo: a timer was scheduled after stop() or drain()");
}

template <class Sync>
typename basic_core<Sync>::record_type* basic_core<Sync>::find(timer_id id) const noexcept {
  if (timer_id_access::scheduler(id) != number_) return nullptr;
  return pool_.find(timer_id_access::slot(id));
}

template <class Sync>
timer_id basic_core<Sync>::schedule(time_point due, time_point now, task&& work,
                                    std::shared_ptr<const executor> run_on,
                                    std::unique_ptr<repetition> repeats) {
  if (!work) throw std::invalid_argument("rondo: the task is empty");
  gate way_in(*this, gate::of::new_timers);
  if (!way_in.may_insert()) refuse_stopped();
  limit_.claim_place();
  record_type* r = nullptr;
  timer_id id;
  try {
    r = &pool_.take();
    r->work = std::move(work);
    r->run_on = std::move(run_on);
    r->repeats = std::move(repeats);
    r->deadline = due;
    r->live = true;
    id = id_of(*r);  // from publish() on, the record is everybody's
    if (!publish(*r, grid_.of_deadline(due, now), way_in)) refuse_stopped();
  } catch (...) {
    if (r != nullptr)
      forget_unpublished(*r);
    else
      limit_.free_place();
    throw;
  }
  way_in.wake();
  return id;
}

template <class Sync>
timer_id basic_core<Sync>::schedule(const recurrence& when, time_point now, task&& work,
                                    std::shared_ptr<const executor> run_on) {
  auto repeats = std::make_unique<repetition>(when, when.first(now, fresh_seed()));
  const time_point due = repeats->upcoming.due;
  return schedule(due, now, std::move(work), std::move(run_on), std::move(repeats));
}

/// Makes a new timer known to all; false if the scheduler is stopped.
template <class Sync>
bool basic_core<Sync>::publish(record_type& r, tick_number tick, gate& way_in) {
  // A stop() either finds the record or is seen here: it looks into each stripe of the wheel and each record after the
  // flag is up.
  if (tick != never_tick) return wheel_.schedule(r, tick, way_in);
  const record_lock hold(r.mutex);
  if (!way_in.may_insert()) return false;
  r.due = tick;
  set_apart(r);
  return true;
}

template <class Sync>
void basic_core<Sync>::forget_unpublished(record_type& r) noexcept {
  const frame here(frame::kind::destruction, this, &r, r.generation);
  r.live = false;
  pool_.count([](tally& t) { --t.scheduled; });
  limit_.free_place();
  destroy_callable(r);
  pool_.give_back(r, [](tally&) {});
  endings_.wake();  // a drain() may have counted it
}

template <class Sync>
void basic_core<Sync>::set_apart(record_type& r) noexcept {
  r.place = waiting::apart;
  r.order = orders_.fetch_add(1, std::memory_order_relaxed);
  apart_.fetch_add(1, std::memory_order_seq_cst);
}

/// Makes `r`, locked, wait for `deadline`, and no longer for what it waits for now. Strong guarantee.
template <class Sync>
void basic_core<Sync>::arm(record_type& r, time_point deadline, tick_number tick, gate& way_in) {
  if (tick != never_tick && wheel_.reschedule(r, tick, way_in)) {
    leave_place(r);
    r.place = waiting::in_wheel;
  } else {  // never due; or stop() is in progress, and has not looked at this record yet, as we hold the lock
    disarm(r);
    r.due = tick;
    set_apart(r);
  }
  r.deadline = deadline;
}

/// The same, and it cannot fail: without memory the record waits in a list, and each pass tries again.
template <class Sync>
void basic_core<Sync>::arm_surely(record_type& r, time_point deadline, tick_number tick,
                                  gate& way_in) noexcept {
  try {
    arm(r, deadline, tick, way_in);
  } catch (const std::bad_alloc&) {
    disarm(r);
    r.due = tick;
    r.deadline = deadline;
    r.place = waiting::unplaced;
    unplaced_.push(r);
  }
}

/// Ends the waiting of `r`, locked.
template <class Sync>
void basic_core<Sync>::disarm(record_type& r) noexcept {
  if (r.place == waiting::in_wheel) wheel_.cancel(r);
  leave_place(r);
  r.place = waiting::nowhere;
  move_arming_on(r);
}

template <class Sync>
void basic_core<Sync>::leave_place(record_type& r) noexcept {
  if (r.place == waiting::unplaced) unplaced_.remove(r);
  if (r.place == waiting::apart) apart_.fetch_sub(1, std::memory_order_seq_cst);
}

template <class Sync>
void basic_core<Sync>::move_arming_on(record_type& r) noexcept {
  r.arming.store(r.arming.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// Puts what waited for memory into the wheel or, as that takes none, what is due at `until` into the pass. A timer
/// waits for the same moment as before, so its `arming` stays: a stop() or drain() in progress may have found it.
template <class Sync>
void basic_core<Sync>::place_unplaced(tick_number until) noexcept {
  while (record_type* const r = unplaced_.first()) {
    const record_lock hold(r->mutex);
    if (r->place != waiting::unplaced) continue;  // it was cancelled or moved meanwhile
    if (r->due <= until && ready_.make_room() != 0)
      ready_.push(*r, r->due);
    else if (!put_into_wheel(*r))
      return;
    unplaced_.remove(*r);
    r->place = waiting::in_wheel;
  }
}

/// False: there is still no memory, or the scheduler is stopped.
template <class Sync>
bool basic_core<Sync>::put_into_wheel(record_type& r) noexcept {
  gate way_in(*this, gate::of::old_timers);  // this is the driver: it need not be woken
  try {
    return wheel_.schedule(r, r.due, way_in);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

template <class Sync>
bool basic_core<Sync>::reschedule(timer_id id, time_point due, time_point now) {
  record_type* const r = find(id);
  if (r == nullptr) return false;
  gate way_in(*this, gate::of::old_timers);
  {
    const record_lock hold(r->mutex);
    if (r->generation != timer_id_access::generation(id) || !r->live || stopped()) return false;
    if (r->periodic() && draining()) return false;  // it is about to be ended
    arm(*r, due, grid_.of_deadline(due, now), way_in);
    r->handed = 0;
    if (r->periodic()) r->repeats->move_next(due);
  }
  way_in.wake();
  if (due == time_point::max()) endings_.wake();  // a drain() does not wait for it any more
  return true;
}

}  // namespace rondo::detail
