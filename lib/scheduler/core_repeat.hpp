// basic_core: how a periodic timer goes from one run to the next.
#pragma once

#include "scheduler/core.hpp"

namespace rondo::detail {

/// The point that `r`, locked, has waited for has come: says which run begins now, if any does, and has `r`
/// wait for the next point.
template <class Sync>
bool basic_core<Sync>::take_up_point(record_type& r, bool to_executor, time_point reading,
                                     recurrence::occurrence& what, beginning& b) {
  repetition& again = *r.repeats;
  if (again.kept_is_due) {
    begin_kept(r, reading, what);
    return true;
  }
  again.upcoming.run = again.runs + 1;
  const time_point tick = grid_.begin_of(grid_.at_or_before(reading));
  const recurrence::look look = again.plan.look_at(again.upcoming, reading, tick);
  if (r.in_progress() && again.plan.on_overlap() != overlapping_runs::allow) {
    overlap(r, look, reading, b);
    return false;
  }
  what = look.run;
  b.fact.missed = look.missed;
  ++again.runs;
  again.catching_up = again.plan.on_missed() == missed_runs::burst && (look.points > 1 || again.held_back);
  again.held_back = false;
  again.last_begun = look.last;
  if (look.next) again.upcoming = *look.next;
  if (look.last || again.plan.counts_from_end())
    disarm(r);
  else
    await_upcoming(r, to_executor, reading);
  return true;
}

/// What queue_one has kept back may begin.
template <class Sync>
void basic_core<Sync>::begin_kept(record_type& r, time_point reading, recurrence::occurrence& what) noexcept {
  repetition& again = *r.repeats;
  what = *again.kept;
  what.run = ++again.runs;
  again.kept.reset();
  again.kept_is_due = false;
  if (again.plan.times() && what.run >= *again.plan.times()) again.last_begun = true;
  if (again.last_begun || again.plan.counts_from_end())
    disarm(r);
  else
    await_upcoming(r, true, reading);
}

/// Nothing runs for a point that has come while the run before is in progress.
template <class Sync>
void basic_core<Sync>::overlap(record_type& r, const recurrence::look& look, time_point reading,
                               beginning& b) noexcept {
  repetition& again = *r.repeats;
  const bool bursts = again.plan.on_missed() == missed_runs::burst;
  if (bursts && (again.catching_up || look.points > 1)) {  // late runs are not dropped
    again.held_back = true;
    disarm(r);
    return;
  }
  b.overlapped = look.points;
  if (again.plan.on_overlap() == overlapping_runs::queue_one && !again.kept) {
    again.kept = again.upcoming;
    --b.overlapped;
    // If that is to be the last run, the points after it are none of this timer's.
    again.last_begun = again.plan.times() && again.runs + 1 >= *again.plan.times();
    if (again.last_begun) b.overlapped = 0;
  }
  if (again.last_begun) return disarm(r);
  if (look.next) {
    again.upcoming = *look.next;
    await_upcoming(r, true, reading);
  } else if (again.plan.counts_from_end()) {  // it was moved into the run in progress: that has yet to end
    disarm(r);
  } else {
    again.last_begun = true;
    disarm(r);
    b.last = end_if_over(r);
  }
}

/// Has `r`, locked, wait for its upcoming run.
template <class Sync>
void basic_core<Sync>::await_upcoming(record_type& r, bool to_executor, time_point reading) noexcept {
  repetition& again = *r.repeats;
  const time_point due = again.upcoming.due;
  const tick_number tick = grid_.of_point(due);
  const bool is_late = again.plan.on_missed() == missed_runs::burst && tick <= grid_.at_or_before(reading);
  const bool at_once = !to_executor || again.plan.on_overlap() == overlapping_runs::allow;
  if (is_late && !at_once) {  // one after another, as each ends
    again.held_back = true;
    disarm(r);
    return;
  }
  if (is_late && tick <= collected_) {  // it takes its turn in this very pass
    move_arming_on(r);
    r.deadline = due;
    r.due = tick;
    if (ready_.push_late(r, tick)) return;
  }
  gate way_in(*this, gate::of::old_timers);  // this is the driver: it need not be woken
  arm_surely(r, due, tick, way_in);
}

/// A run of `r`, locked and live, is over: what waited for that waits for the driver now.
template <class Sync>
void basic_core<Sync>::go_on(record_type& r, time_point ended, gate& way_in) noexcept {
  repetition& again = *r.repeats;
  if (r.in_progress()) return;
  if (again.kept) {
    again.kept_is_due = true;
  } else if (again.plan.counts_from_end()) {
    if (r.place != waiting::nowhere) return;  // it was rescheduled meanwhile
    again.upcoming.run = again.runs;          // a point that was dropped is none
    again.upcoming = *again.plan.next(again.upcoming, ended);
  } else if (!again.held_back) {
    return;
  }
  const time_point due = again.kept ? again.kept->due : again.upcoming.due;
  arm_surely(r, due, grid_.of_deadline(due, ended), way_in);
}

}  // namespace rondo::detail
