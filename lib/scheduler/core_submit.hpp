// basic_core: runs that go through an executor. handoff.hpp explains how this works.
#pragma once

#include <exception>
#include <type_traits>
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
  const auto own = std::move(d.own);  // may be the last reference, if the timer is cancelled in the meantime
  executor_call_.begin(d.ticket);
  [[maybe_unused]] const std::conditional_t<is_checked, watched_executor_call, int> watch{};
  try {
    const executor& run_on = own != nullptr && own->run_on ? own->run_on : user.run_on;
    run_on(job(this->shared_from_this(),
               job_ticket{&r, d.ticket, d.fact.due, d.fact.lateness, d.fact.run, d.fact.missed}));
  } catch (...) {
    thrown = std::current_exception();
  }
  const bool dropped = executor_call_.end();
  if constexpr (is_checked) watch.check(d.fact);
  if (thrown) {
    pool_.count([](counters& c) { ++c.failed; });
    drop_submission(r, d.ticket, d.fact, failure::threw);
    handlers_.report(error_source::executor, thrown, d.fact);
  } else if (dropped) {
    drop_submission(r, d.ticket, d.fact, failure::rejected);
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
    fact.name = r.name();
    begin_run(hold, r);
  }
  const time_point start = now();
  fact.due = ticket.due;
  fact.lateness = saturating_difference(start, ticket.due);
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  end_run(r, run(r, fact, start, nullptr));
}

template <class Sync>
void basic_core<Sync>::drop(const job_ticket& ticket) noexcept {
  if (abandoned()) return;
  const in_flight_guard guard(*this);
  if (executor_call_.note_drop(ticket.number)) return;
  const marker here(marker::kind::user_code, this);
  firing fact;
  fact.due = ticket.due;
  fact.lateness = ticket.lateness;
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  drop_submission(*static_cast<record_type*>(ticket.record), ticket.number, fact, failure::rejected);
}

/// Called when a submitted run will not happen. Does nothing if the run has started or was taken back. If the run was
/// rejected, calls on_rejected after the timer has ended or waits for its next run. Precondition: a stack marker marks
/// user code.
template <class Sync>
void basic_core<Sync>::drop_submission(record_type& r, run_ticket number, firing fact, failure why) noexcept {
  const time_point reading = now();
  std::shared_ptr<const timer_options> own;  // keeps the name for the handler
  record_lock hold(r.mutex);
  if (stopped() || !r.redeem(number)) return;
  fact.id = id_of(r);
  if (!r.plain) own = r.own;
  fact.name = r.name();
  if (why == failure::rejected) pool_.count([](counters& c) { ++c.rejected; });
  if (r.over() || (r.periodic() && draining())) {
    finish(hold, r, ending::over);
  } else {
    move_hooks hooks(*this, r.generation);
    rearm(r, reading, hooks);
    hold.unlock();
    hooks.wake();
  }
  if (why == failure::rejected && !stopped()) handlers_.report_rejected(fact);
}

}  // namespace rondo::detail
