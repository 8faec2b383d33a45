// basic_core: how a timer begins to wait, the first time and later.
#pragma once

#include <atomic>
#include <new>
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

inline std::uint32_t next_scheduler_number() noexcept {
  static std::atomic<std::uint32_t> numbers{0};
  std::uint32_t number = 0;
  while (number == 0) number = numbers.fetch_add(1, std::memory_order_relaxed) + 1;  // 0 means none
  return number;
}

/// The common part of the insert hooks, which the wheel calls while it inserts a timer. The scheduling call creates it,
/// and calls wake() to wake the driver when no lock is held any more. Once the timer is in the wheel and its stripe is
/// unlocked, the task may run and destroy the scheduler, so what wake() needs is kept before that.
template <class Sync>
class basic_core<Sync>::wake_hook {
 public:
  explicit wake_hook(basic_core& core) noexcept : core_(core) {}
  void top_moved_earlier() { kept_ = core_.shared_from_this(); }
  bool top_moved() const noexcept { return kept_ != nullptr; }
  void wake() noexcept {
    if (kept_ != nullptr) kept_->next_due_moved_earlier();
  }

 protected:
  static record_type& record_of(node& n) noexcept { return static_cast<record_type&>(n); }
  basic_core& core_;

 private:
  std::shared_ptr<basic_core> kept_;
};

/// For a timer that is in no wheel.
template <class Sync>
class basic_core<Sync>::insert_hooks : public wake_hook {
 public:
  enum class inserts { new_timers, old_timers };  // drain() admits no new ones
  insert_hooks(basic_core& core, inserts what) noexcept : wake_hook(core), what_(what) {}
  bool may_insert() const noexcept {
    return !this->core_.stopped() && (what_ == inserts::old_timers || !this->core_.draining());
  }

 private:
  const inserts what_;
};

/// For a timer whose record is locked and that is to wait for another moment. If it is plain, cancel() may end it as
/// soon as the stripe is unlocked, so everything that changes in the record changes before that.
template <class Sync>
class basic_core<Sync>::move_hooks : public wake_hook {
 public:
  /// If the record's generation is no longer `generation` when the timer is moved, the timer is gone.
  move_hooks(basic_core& core, std::uint64_t generation) noexcept
      : wake_hook(core), generation_(generation) {}
  bool may_move(node& n) const noexcept { return this->record_of(n).has_generation(generation_); }
  void before_move(node& n) noexcept {
    record_type& r = this->record_of(n);
    this->core_.leave_lists(r);
    r.state.wait_in(waits_in::wheel);
    r.invalidate_wait();
    r.deadline = deadline;
    if (!r.periodic()) r.take_all_back();
  }

  time_point deadline;

 private:
  const std::uint64_t generation_;
};

template <class Sync>
basic_core<Sync>::basic_core(const options& o, time_point start)
    : number_(next_scheduler_number()),
      grid_(checked_tick(o.tick), start),
      wheel_(o.buckets, grid_.at_or_before(start)),
      meter_(o.slow_after),
      limit_(o.max_pending),
      handlers_({o.run_on, o.on_error, o.on_slow, o.on_rejected, o.propagate_exceptions}) {}

template <class Sync>
void basic_core<Sync>::refuse_stopped() const {
  throw stopped_error(
      abandoned()
          ? "rondo: a timer was scheduled in a child made by fork(), where the scheduler has no driver"
          : "rondo: a timer was scheduled after stop() or drain()");
}

template <class Sync>
typename basic_core<Sync>::record_type* basic_core<Sync>::find(timer_id id) const noexcept {
  if (timer_id_access::scheduler(id) != number_) return nullptr;
  return pool_.find(timer_id_access::slot(id));
}

template <class Sync>
typename basic_core<Sync>::record_type& basic_core<Sync>::take_record() {
  if (stopped() || draining()) refuse_stopped();
  limit_.claim_place();
  try {
    return pool_.take();
  } catch (...) {
    limit_.free_place();
    throw;
  }
}

template <class Sync>
void basic_core<Sync>::discard(record_type& r) noexcept {
  const auto kept =
      this->shared_from_this();  // the callable that is destroyed may be the last to own the scheduler
  {
    record_lock hold(r.mutex);
    r.plain.store(false);  // whether it is plain may not have been determined yet
    finish(hold, r, ending::refused);
  }
  endings_.wake();  // drain() may have found it counted as pending
}

template <class Sync>
timer_id basic_core<Sync>::schedule(record_type& r, time_point due, time_point now) {
  insert_hooks hooks(*this, insert_hooks::inserts::new_timers);
  r.state.begin_life();
  r.deadline = due;
  r.plain.release(r.plain && task_access::trivial_to_destroy(r.work));
  const timer_id id = id_of(r);  // from publish() on, others may use the record
  if (!publish(r, grid_.of_deadline(due, now), hooks)) refuse_stopped();
  hooks.wake();
  return id;
}

template <class Sync>
timer_id basic_core<Sync>::schedule(record_type& r, const recurrence& when, time_point now) {
  return schedule(r, make_periodic(r, when, now), now);
}

template <class Sync>
time_point basic_core<Sync>::make_periodic(record_type& r, const recurrence& when, time_point now) {
  const recurrence::occurrence first = when.first(now, fresh_seed());
  r.repeats = std::make_unique<periodic_part>(periodic_part{{when, first}, {}});
  r.plain.release(false);
  if (r.has_own_executor() || handlers_.has_executor()) r.repeats->submitted.reserve_one();
  return first.due;
}

/// Makes a new timer known to all. Returns false if the scheduler is stopped or draining.
template <class Sync>
bool basic_core<Sync>::publish(record_type& r, tick_number tick, insert_hooks& hooks) {
  // Either stop() finds the record, or its flag is seen here: stop() visits each stripe of the wheel and each record
  // after it has raised the flag.
  if (tick != never_tick) return wheel_.schedule(r, tick, hooks);
  const record_lock hold(r.mutex);
  return publish_locked(r, tick, hooks);
}

/// As publish(), but for a timer that is locked.
template <class Sync>
bool basic_core<Sync>::publish_locked(record_type& r, tick_number tick, insert_hooks& hooks) {
  if (tick != never_tick) return wheel_.schedule(r, tick, hooks);
  if (!hooks.may_insert()) return false;
  r.due.store(tick);
  set_never_due(r);
  return true;
}

/// Makes `r`, which is locked, wait for `deadline`, and no longer for what it waits for now. If it is plain and was
/// cancelled in the meantime, does nothing and returns false. Strong guarantee.
template <class Sync>
bool basic_core<Sync>::arm(record_type& r, time_point deadline, tick_number tick, move_hooks& hooks) {
  hooks.deadline = deadline;
  // If stop() is in progress, it has not reached this record yet, because we hold the lock. So it finds the timer
  // later.
  if (tick != never_tick) return wheel_.reschedule(r, tick, hooks);
  if (!stop_waiting(r, [&] { return hooks.may_move(r); })) return false;
  disarm(r);
  r.due.store(tick);
  r.deadline = deadline;
  if (!r.periodic()) r.take_all_back();
  set_never_due(r);
  return true;
}

/// As arm(), but for a periodic timer, and it cannot fail: if there is no memory, the record waits in a list, and each
/// pass tries again.
template <class Sync>
void basic_core<Sync>::arm_surely(record_type& r, time_point deadline, tick_number tick,
                                  move_hooks& hooks) noexcept {
  try {
    arm(r, deadline, tick, hooks);
  } catch (const std::bad_alloc&) {
    disarm(r);
    r.due.store(tick);
    r.deadline = deadline;
    r.state.wait_in(waits_in::retry_list);
    retries_.push(r);
  }
}

/// Ends the wait of `r`, which is locked.
template <class Sync>
void basic_core<Sync>::disarm(record_type& r) noexcept {
  if (r.state.where() == waits_in::nowhere) return;
  if (r.state.where() == waits_in::wheel) wheel_.cancel(r);
  leave_lists(r);
  r.state.wait_in(waits_in::nowhere);
  r.invalidate_wait();
}

template <class Sync>
void basic_core<Sync>::leave_lists(record_type& r) noexcept {
  if (r.state.where() == waits_in::retry_list) retries_.remove(r);
  if (r.state.where() == waits_in::never_due) never_due_.fetch_sub(1, std::memory_order_seq_cst);
}

template <class Sync>
void basic_core<Sync>::set_never_due(record_type& r) noexcept {
  r.state.wait_in(waits_in::never_due);
  r.order = next_order();
  never_due_.fetch_add(1, std::memory_order_seq_cst);
}

template <class Sync>
bool basic_core<Sync>::reschedule(timer_id id, time_point due, time_point now) {
  move_hooks hooks(*this, timer_id_access::generation(id));
  const bool moved = reschedule(id, due, now, hooks);
  hooks.wake();
  return moved;
}

template <class Sync>
bool basic_core<Sync>::reschedule(timer_id id, time_point due, time_point now, move_hooks& hooks) {
  record_type* const r = find(id);
  if (r == nullptr) return false;
  {
    const record_lock hold(r->mutex);
    const bool is_plain = r->plain.acquire();
    if (!hooks.may_move(*r) || !r->state.live() || stopped()) return false;
    const bool is_periodic = !is_plain && r->periodic();
    if (is_periodic && draining()) return false;  // it is about to be ended
    if (!arm(*r, due, grid_.of_deadline(due, now), hooks)) return false;
    if (is_periodic) {
      const submitted_runs::run* const oldest = r->oldest_submitted();
      r->repeats->next.moved_to(due, r->state.submitted(), oldest != nullptr ? &oldest->what : nullptr);
      r->take_all_back();
    }
  }
  if (due == time_point::max()) endings_.wake();  // drain() no longer waits for it
  return true;
}

}  // namespace rondo::detail
