// basic_core: how a timer ends.
#pragma once

#include "scheduler/core.hpp"
#include "scheduler/timer_group.hpp"

namespace rondo::detail {

template <class Sync>
cancel_result basic_core<Sync>::cancel(timer_id id) {
  record_type* const r = find(id);
  if (r == nullptr) return cancel_result::gone;
  const std::uint64_t generation = timer_id_access::generation(id);
  if (r->plain.peek() && cancel_waiting(*r, generation)) return cancel_result::cancelled;
  record_lock hold(r->mutex);
  if (!r->has_generation(generation)) return cancel_result::gone;
  const bool is_running = r->state.running() != 0;
  if (!r->state.live()) return is_running ? cancel_result::running : cancel_result::gone;
  if (!stop_waiting(*r, [&] { return r->has_generation(generation); })) return cancel_result::gone;
  finish(hold, *r, ending::cancelled);
  return is_running ? cancel_result::running : cancel_result::cancelled;
}

/// Cancels a plain timer that waits in the wheel, without locking the record. Returns false if the record serves no
/// such timer, or another one.
template <class Sync>
bool basic_core<Sync>::cancel_waiting(record_type& r, std::uint64_t generation) noexcept {
  const bool taken = wheel_.take_out(r, [&](bool is_here) {
    if (!is_here || !r.has_generation(generation) || !r.plain) return false;
    r.next_generation();
    r.invalidate_wait();
    r.state.free_waiting();
    pool_.count([this](counters& c) {
      c.count(ending::cancelled, false);
      limit_.free_place();
    });
    return true;
  });
  if (!taken) return false;
  pool_.give_back(r);
  if (draining()) endings_.wake();
  return true;
}

/// Ends the wait of `r`, which is locked, in the wheel or the pass, if it waits there. Returns false if a cancel() that
/// does not lock `r` was faster. still() returns whether `r` still serves the same timer.
template <class Sync>
template <class Still>
bool basic_core<Sync>::stop_waiting(record_type& r, Still&& still) noexcept {
  if (r.state.where() != waits_in::wheel) return true;
  if (!wheel_.take_out(r, [&](bool) { return still(); })) return false;
  r.state.wait_in(waits_in::nowhere);
  r.invalidate_wait();
  return true;
}

template <class Sync>
cancel_result basic_core<Sync>::cancel_and_wait(timer_id id) {
  const cancel_result result = cancel(id);
  record_type* const r = find(id);
  if (r == nullptr || stack_marker::inside(this, r)) return result;
  const auto is_free = [&] {
    const record_lock hold(r->mutex);
    if (!r->has_generation(timer_id_access::generation(id))) return true;
    r->awaited = true;
    return false;
  };
  wait_watched("cancel_and_wait()", time_point::max(),
               [&](time_point end) { return endings_.wait_until(end, is_free); });
  return result;
}

/// wait(end) waits no longer than until `end`, in real time, and returns whether what it waits for has happened. A
/// checked build reports a wait without an end that takes long.
template <class Sync>
template <class Wait>
bool basic_core<Sync>::wait_watched(const char* call, time_point end, Wait&& wait) {
  if constexpr (is_checked) {
    if (end == time_point::max()) {
      if (wait(real_time_after(suspicious_wait))) return true;
      warn_of_wait(call);
    }
  }
  return wait(end);
}

/// Ends the timer of `r`, which is locked: no further run starts.
template <class Sync>
void basic_core<Sync>::end(record_type& r, ending how) noexcept {
  disarm(r);
  r.take_all_back();
  if (how == ending::last_run || how == ending::over)
    r.state.complete();
  else
    r.state.end();
}

/// Makes a timer cease to be pending: ends it, unless end() has, counts it, and frees its place under the limit. If no
/// run is in progress, this also destroys what the timer owns, frees the record, and wakes waiting threads; otherwise
/// the end of that run does so. Precondition: `hold` locks `r`. It is unlocked afterwards.
template <class Sync>
void basic_core<Sync>::finish(record_lock& hold, record_type& r, ending how) noexcept {
  if (r.state.live()) end(r, how);
  const bool is_running = r.state.running() != 0;
  const auto count = [this, how, is_running](counters& c) {
    c.count(how, is_running);
    limit_.free_place();  // only now: there are never more timers pending than places
  };
  if (is_running) {  // counted under the lock: the end of the run comes later, and wakes waiting threads
    pool_.count(count);
    return hold.unlock();
  }
  // What a pass, a job or the end of the scheduler destroys is inside it; what a cancel() destroys is not.
  const bool is_inside = how == ending::over || how == ending::returned;
  dispose(hold, r, is_inside ? marker::kind::user_code : marker::kind::destruction, count);
}

/// Destroys what an ended timer owns, when no run of it is in progress, and frees its record. count(counters&) is
/// called first, because what is destroyed may read the counters. Precondition: `hold` locks `r`. It is unlocked
/// afterwards.
template <class Sync>
template <class Count>
void basic_core<Sync>::dispose(record_lock& hold, record_type& r, stack_marker::kind what,
                               Count&& count) noexcept {
  if (r.plain) return free_record(hold, r, count);
  r.destroying = true;
  hold.unlock();
  pool_.count(count);
  destroy(hold, r, what);
}

/// As dispose(), but for a timer that is already counted. Precondition: `hold` refers to its lock, which is free.
template <class Sync>
void basic_core<Sync>::destroy(record_lock& hold, record_type& r, stack_marker::kind what) noexcept {
  const marker here(what, this, &r);
  const bool is_member = r.member.group != nullptr;
  r.destroy_what_it_owns();
  if (is_member) r.member.group->leave(r, id_of(r));
  hold.lock();
  if (is_member) r.member = {};
  r.destroying = false;
  free_record(hold, r, [](counters&) {});
}

/// Counts the timer under the record's lock, so a thread that finds it gone, as cancel_and_wait() does, finds it
/// counted. Threads are woken only if one waits for this: cancel_and_wait() has left a note under the lock; drain() has
/// raised its flag and then locked each record, so either it finds the timer counted, or its flag is seen here.
/// Precondition: `hold` locks `r`. It is unlocked afterwards.
template <class Sync>
template <class Count>
void basic_core<Sync>::free_record(record_lock& hold, record_type& r, Count&& count) noexcept {
  r.next_generation();
  r.invalidate_wait();
  r.state.free();
  const bool is_awaited = std::exchange(r.awaited, false);
  pool_.count(count);
  hold.unlock();
  pool_.give_back(r);
  if (is_awaited || draining()) endings_.wake();
}

/// Gives back the memory that ended timers have left.
template <class Sync>
void basic_core<Sync>::shrink_to_fit() noexcept {
  if (abandoned()) return;
  wheel_.shrink_to_fit();
  pool_.shrink_to_fit();
}

}  // namespace rondo::detail
