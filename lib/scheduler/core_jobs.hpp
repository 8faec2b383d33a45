// basic_core: runs that go through an executor.
#pragma once

#include "scheduler/core.hpp"

namespace rondo::detail {

template <class Sync>
void basic_core<Sync>::hand_over(beginning& b, const user_handlers& user) noexcept {
  record_type& r = *b.timer;
  std::exception_ptr thrown;
  const frame here(frame::kind::user_code, this);
  const auto own = std::move(b.run_on);  // may be the last to hold it, if the timer is cancelled meanwhile
  try {
    const executor& run_on = own ? *own : user.run_on;
    run_on(job(this->shared_from_this(),
               job_ticket{&r, b.generation, b.ticket, b.fact.due, b.fact.run, b.fact.missed}));
  } catch (...) {
    thrown = std::current_exception();
  }
  bool dropped = false;
  {
    const record_lock hold(r.mutex);
    if (r.generation == b.generation && r.in_hand_over == b.ticket) {
      r.in_hand_over = 0;
      dropped = std::exchange(r.dropped, false);
    }
  }
  if (thrown) {
    pool_.count([](tally& t) { ++t.failed; });
    give_up_ticket(r, b.generation, b.ticket, mishap::failed);
    handlers_.report(thrower::executor, thrown, b.fact);
  } else if (dropped) {
    give_up_ticket(r, b.generation, b.ticket, mishap::rejected);
  }
}

template <class Sync>
void basic_core<Sync>::start(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const activity in_progress(*this);
  record_type& r = *static_cast<record_type*>(ticket.record);
  firing fact;
  bool last = false;
  {
    const record_lock hold(r.mutex);
    if (stopped() || r.generation != ticket.generation || !r.live || !r.spend_ticket(ticket.number)) return;
    ++r.running;
    last = end_if_over(r);
    fact.id = id_of(r);
  }
  const time_point start = now();
  fact.due = ticket.due;
  fact.lateness = saturating_difference(start, ticket.due);
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  end_run(r, run(r, ticket.generation, fact, last, start));
}

template <class Sync>
void basic_core<Sync>::drop(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const activity in_progress(*this);
  record_type& r = *static_cast<record_type*>(ticket.record);
  {
    const record_lock hold(r.mutex);
    if (r.generation != ticket.generation) return;
    if (r.in_hand_over == ticket.number) {  // whether the executor refuses it by throwing is not known yet
      r.dropped = true;
      return;
    }
  }
  give_up_ticket(r, ticket.generation, ticket.number, mishap::rejected);
}

/// A run that was handed over and will not happen. Nothing if it has started or been taken back.
template <class Sync>
void basic_core<Sync>::give_up_ticket(record_type& r, std::uint64_t generation, std::uint64_t number,
                                      mishap what) noexcept {
  const time_point reading = now();
  gate way_in(*this, gate::of::old_timers);
  bool last = false;
  bool ended = false;
  {
    const record_lock hold(r.mutex);
    if (stopped() || r.generation != generation || !r.live || !r.spend_ticket(number)) return;
    last = end_if_over(r) || (r.periodic() && end_if_draining(r));
    ended = last && r.running == 0;
    if (r.live && r.periodic()) go_on(r, reading, way_in);
  }
  way_in.wake();
  if (last) limit_.free_place();
  const auto count = [&](tally& t) {
    if (what == mishap::rejected) ++t.rejected;
    if (last) ++t.left;
    if (ended) ++t.completed;
  };
  if (ended)
    finish(r, count);
  else
    pool_.count(count);
}

}  // namespace rondo::detail
