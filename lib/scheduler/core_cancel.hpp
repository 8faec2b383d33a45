// basic_core: ending timers, and waiting for what is in progress.
#pragma once

#include "scheduler/core.hpp"

namespace rondo::detail {

template <class Sync>
cancel_result basic_core<Sync>::cancel(timer_id id) {
  record_type* const r = find(id);
  if (r == nullptr) return cancel_result::gone;
  const auto count = [](tally& t) {
    ++t.cancelled;
    ++t.left;
  };
  bool is_running = false;
  bool is_freed = false;
  {
    const record_lock hold(r->mutex);
    if (r->generation != timer_id_access::generation(id)) return cancel_result::gone;
    is_running = r->running != 0;
    if (!r->live) return is_running ? cancel_result::running : cancel_result::gone;
    end_now(*r);
    limit_.free_place();
    is_freed = !is_running && r->owns_nothing();
    if (is_freed) free_record(*r, count);
  }
  if (is_freed) {
    endings_.wake();
    return cancel_result::cancelled;
  }
  pool_.count(count);
  if (is_running) return cancel_result::running;  // that run destroys and frees as it ends
  const frame here(frame::kind::destruction, this, r, timer_id_access::generation(id));
  destroy_callable(*r);
  release(*r, [](tally&) {});
  return cancel_result::cancelled;
}

template <class Sync>
cancel_result basic_core<Sync>::cancel_and_wait(timer_id id) {
  const cancel_result result = cancel(id);
  record_type* const r = find(id);
  if (r == nullptr || frame::inside(this, r, timer_id_access::generation(id))) return result;
  endings_.wait_until([&] {
    const record_lock hold(r->mutex);
    return r->generation != timer_id_access::generation(id);
  });
  return result;
}

/// What of the user's a timer owns. Precondition: `r` is not live, and no other run of it in progress.
template <class Sync>
void basic_core<Sync>::destroy_callable(record_type& r) noexcept {
  r.work.reset();
  r.run_on.reset();
  r.repeats.reset();
}

/// The same, in a frame. Precondition: the core lives on, should that destroy the scheduler; a pass, a job and the
/// calls that end a scheduler make sure of it.
template <class Sync>
[[gnu::noinline]] void basic_core<Sync>::destroy_inside(record_type& r) noexcept {
  const frame here(frame::kind::user_code, this, &r, r.generation);
  destroy_callable(r);
}

/// Ends a timer that is not live any more, with no run of it in progress: counts what it has become, destroys what
/// of the user's it owns, as that may look at the counters, and frees the record. Precondition: as above. (`inline`:
/// an out-of-line call costs 19 instructions per run of a one-shot.)
template <class Sync>
template <class Count>
inline void basic_core<Sync>::finish(record_type& r, Count&& count) noexcept {
  if (r.owns_nothing()) return release(r, count);  // counts inside a lock that it takes anyway
  pool_.count(count);
  destroy_inside(r);
  release(r, [](tally&) {});
}

/// True: `r`, locked, has ceased to be live by itself; the caller is to count_leaving(), and who ends its
/// last run in progress counts it as completed.
template <class Sync>
bool basic_core<Sync>::end_if_over(record_type& r) noexcept {
  if (!r.live || !r.over()) return false;
  r.live = false;
  r.completes = true;
  return true;
}

/// Ends a periodic timer, locked, a run of which has just ended or was dropped, if drain() is in progress: its search
/// may have missed the timer. True: it has ended; the rest is as with end_if_over().
template <class Sync>
bool basic_core<Sync>::end_if_draining(record_type& r) noexcept {
  if (!r.live || !draining()) return false;
  end_now(r);
  r.completes = true;
  return true;
}

template <class Sync>
void basic_core<Sync>::count_leaving() noexcept {
  pool_.count([](tally& t) { ++t.left; });
  limit_.free_place();
}

/// Frees a record whose callable is destroyed and that waits nowhere; count(tally&) says in which way it
/// ended.
template <class Sync>
template <class Count>
void basic_core<Sync>::release(record_type& r, Count&& count) noexcept {
  {
    const record_lock hold(r.mutex);
    free_record(r, count);
  }
  endings_.wake();
}

/// The same for one that is locked, and owns nothing (any more); the caller is to wake endings_ afterwards.
/// Who sees that the timer is gone, as cancel_and_wait() does, finds it counted.
template <class Sync>
template <class Count>
void basic_core<Sync>::free_record(record_type& r, Count&& count) noexcept {
  r.work.reset();
  ++r.generation;
  move_arming_on(r);
  r.live = false;
  r.completes = false;
  r.dropped = false;
  r.place = waiting::in_wheel;
  r.running = 0;
  r.handed = 0;
  r.in_hand_over = 0;
  pool_.give_back(r, count);
}

}  // namespace rondo::detail
