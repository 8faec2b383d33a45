// basic_core: runs that go through an executor. How that works says handoff.hpp.
#pragma once

#include <exception>
#include <utility>

#include "scheduler/core.hpp"
#include "scheduler/core_dispatch.hpp"
#include "scheduler/core_schedule.hpp"

namespace rondo::detail {

template <class Sync>
void basic_core<Sync>::submit(record_type& r, dispatch_result& d, const user_handlers& user) noexcept {
  std::exception_ptr thrown;
  const marker here(marker::kind::user_code, this);
  meter_.share();
  const auto own = std::move(d.run_on);  // may be the last to hold it, if the timer is cancelled meanwhile
  executor_call_.begin(d.ticket);
  try {
    const executor& run_on = own != nullptr ? *own : user.run_on;
    run_on(job(this->shared_from_this(), job_ticket{&r, d.ticket, d.fact.due, d.fact.run, d.fact.missed}));
  } catch (...) {
    thrown = std::current_exception();
  }
  const bool dropped = executor_call_.end();
  if (thrown) {
    pool_.count([](counters& c) { ++c.failed; });
    drop_submission(r, d.ticket, failure::threw);
    handlers_.report(error_source::executor, thrown, d.fact);
  } else if (dropped) {
    drop_submission(r, d.ticket, failure::rejected);
  }
}

template <class Sync>
void basic_core<Sync>::start(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const in_flight_guard guard(*this);
  record_type& r = *static_cast<record_type*>(ticket.record);
  firing fact;
  {
    record_lock hold(r.mutex);
    if (stopped() || !r.redeem(ticket.number)) return;
    fact.id = id_of(r);
    begin_run(hold, r);
  }
  const time_point start = now();
  fact.due = ticket.due;
  fact.lateness = saturating_difference(start, ticket.due);
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  end_run(r, run(r, fact, start));
}

template <class Sync>
void basic_core<Sync>::drop(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const in_flight_guard guard(*this);
  if (executor_call_.note_drop(ticket.number)) return;
  drop_submission(*static_cast<record_type*>(ticket.record), ticket.number, failure::rejected);
}

/// A run that was submitted will not happen. Nothing if it has started or was taken back.
template <class Sync>
void basic_core<Sync>::drop_submission(record_type& r, run_ticket number, failure why) noexcept {
  const time_point reading = now();
  record_lock hold(r.mutex);
  if (stopped() || !r.redeem(number)) return;
  if (why == failure::rejected) pool_.count([](counters& c) { ++c.rejected; });
  if (r.over() || (r.periodic() && draining())) return finish(hold, r, ending::over);
  move_hooks hooks(*this, r.generation);
  rearm(r, reading, hooks);
  hold.unlock();
  hooks.wake();
}

}  // namespace rondo::detail
