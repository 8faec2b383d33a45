// basic_core: timers that are members of a group, and calls in two parts.
#pragma once

#include "scheduler/core.hpp"
#include "scheduler/core_finish.hpp"
#include "scheduler/core_schedule.hpp"
#include "scheduler/timer_group.hpp"

namespace rondo::detail {

/// As take_record(), but without a place under the limit.
template <class Sync>
typename basic_core<Sync>::record_type& basic_core<Sync>::take_member_record() {
  if (stopped() || draining()) refuse_stopped();
  record_type& r = pool_.take();
  r.plain.release(false);
  return r;
}

template <class Sync>
void basic_core<Sync>::discard_member(record_type& r) noexcept {
  {
    record_lock hold(r.mutex);
    if (r.state.live()) end(r, ending::refused);
    dispose(hold, r, marker::kind::destruction, [](counters& c) { c.count(ending::refused, false); });
  }
  endings_.wake();  // drain() may have found it counted as pending
}

template <class Sync>
timer_id basic_core<Sync>::schedule_member(record_type& r, time_point due, time_point now, group_type& group,
                                           void* tag, timer_id in_place_of, remainder& rest) {
  insert_hooks hooks(*this, insert_hooks::inserts::new_timers);
  record_lock made_hold(r.mutex, std::defer_lock);
  record_lock old_hold;
  record_type* const old = lock_both(r, made_hold, in_place_of, old_hold);
  if (old == nullptr) limit_.claim_place();
  const timer_id id = id_of(r);
  try {
    publish_member(r, due, grid_.of_deadline(due, now), group, tag, hooks);
  } catch (...) {
    if (old == nullptr) limit_.free_place();
    throw;
  }
  made_hold.unlock();
  rest.wakes = hooks.top_moved();
  if (old != nullptr) end_at_once(*old, ending::replaced, rest);
  return id;
}

/// Locks the record of a new timer and the record of the timer `id`, in the order of their addresses, so that two
/// threads never wait for each other. Returns the latter record. If that timer is not pending, returns null and does
/// not keep its lock.
template <class Sync>
typename basic_core<Sync>::record_type* basic_core<Sync>::lock_both(record_type& made, record_lock& made_hold,
                                                                    timer_id id,
                                                                    record_lock& old_hold) const {
  record_type* const r = find(id);
  if (r == nullptr || r == &made || std::less<>()(&made, r)) made_hold.lock();
  // r == &made if the id is stale and its record has just been taken again.
  if (r == nullptr || r == &made) return nullptr;
  __builtin_prefetch(&r->member, 1);
  record_lock held(r->mutex);
  if (!made_hold) made_hold.lock();
  if (!r->has_generation(timer_id_access::generation(id)) || !r->state.live()) return nullptr;
  old_hold = std::move(held);
  return r;
}

/// Makes the new timer of `r`, which is locked, a member, and then makes it known to all. Either close() finds the
/// timer in the group, and finds it pending because the record is locked until the timer is published; or the group is
/// found to be closed here.
template <class Sync>
void basic_core<Sync>::publish_member(record_type& r, time_point due, tick_number tick, group_type& group,
                                      void* tag, insert_hooks& hooks) {
  group.join(r, tag);
  r.state.begin_life();
  r.deadline = due;
  try {
    if (!publish_locked(r, tick, hooks)) refuse_stopped();
  } catch (...) {
    end(r, ending::refused);  // a visit of the group that waits for the lock then finds nothing to end
    group.withdraw(r);
    throw;
  }
}

/// The first half of finish(): the timer of `r`, which is locked, ceases to be pending. finish(remainder&) does the
/// rest.
template <class Sync>
void basic_core<Sync>::end_at_once(record_type& r, ending how, remainder& rest) noexcept {
  end(r, how);
  const bool is_running = r.state.running() != 0;
  pool_.count([&](counters& c) {
    c.count(how, is_running);
    if (how != ending::replaced) limit_.free_place();
  });
  if (!is_running) rest.ended = &r;
}

template <class Sync>
cancel_result basic_core<Sync>::cancel(timer_id id, remainder& rest) noexcept {
  record_type* const r = find(id);
  if (r == nullptr) return cancel_result::gone;
  __builtin_prefetch(&r->member, 1);
  const record_lock hold(r->mutex);
  if (!r->has_generation(timer_id_access::generation(id))) return cancel_result::gone;
  const bool is_running = r->state.running() != 0;
  if (!r->state.live()) return is_running ? cancel_result::running : cancel_result::gone;
  end_at_once(*r, ending::cancelled, rest);
  return is_running ? cancel_result::running : cancel_result::cancelled;
}

template <class Sync>
bool basic_core<Sync>::reschedule(timer_id id, time_point due, time_point now, remainder& rest) {
  move_hooks hooks(*this, timer_id_access::generation(id));
  const bool moved = reschedule(id, due, now, hooks);
  rest.wakes = hooks.top_moved();
  return moved;
}

/// Destroys first: waking the driver may run user code that waits for the end of the timer, which this call must
/// complete.
template <class Sync>
void basic_core<Sync>::finish(const remainder& rest) noexcept {
  if (rest.ended != nullptr) {
    record_lock hold(rest.ended->mutex, std::defer_lock);
    destroy(hold, *rest.ended, marker::kind::destruction);
  }
  if (rest.wakes) next_due_moved_earlier();
}

template <class Sync>
bool basic_core<Sync>::belongs(timer_id id, const group_type& group) const {
  record_type* const r = find(id);
  if (r == nullptr) return false;
  const record_lock hold(r->mutex);
  return r->has_generation(timer_id_access::generation(id)) && r->member.group == &group;
}

template <class Sync>
template <class Visit>
void basic_core<Sync>::for_each_member(group_type& group, Visit&& visit) const {
  if (abandoned()) return;
  typename group_type::cursor members(group);
  while (const auto place = members.next())
    visit(timer_id_access::make(number_, place->slot, place->generation));
}

template <class Sync>
std::optional<timer_id> basic_core<Sync>::next_tagged(typename group_type::cursor& members,
                                                      const void* tag) const {
  timer_id id;
  const bool is_one = members.next([&](const auto& place, const record_type& r) {
    if (r.member.tag == tag) id = timer_id_access::make(number_, place.slot, place.generation);
  });
  return is_one ? std::optional(id) : std::nullopt;
}

template <class Sync>
bool basic_core<Sync>::inside_tagged(const group_type& group, const void* tag) const {
  return marker::inside_any(this, [&](const void* record) {
    const auto& member = static_cast<const record_type*>(record)->member;
    return member.group == &group && member.tag == tag;
  });
}

template <class Sync>
std::size_t basic_core<Sync>::pending(group_type& group) const {
  std::size_t count = 0;
  for_each_member(group, [&](timer_id id) {
    if (pending(id)) ++count;
  });
  return count;
}

template <class Sync>
void basic_core<Sync>::cancel_all(group_type& group) {
  for_each_member(group, [this](timer_id id) { cancel(id); });
}

template <class Sync>
void basic_core<Sync>::close(group_type& group) {
  if (abandoned()) return;
  group.close();
  cancel_all(group);  // before it waits for any of them, so that nothing starts in the meantime
  for_each_member(group, [this](timer_id id) { cancel_and_wait(id); });
}

}  // namespace rondo::detail
