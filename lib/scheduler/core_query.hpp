// basic_core: what can be asked, and what checked builds verify after each call.
#pragma once

#include <iostream>
#include <string>

#include "scheduler/census.hpp"
#include "scheduler/core.hpp"
#include "scheduler/drawing.hpp"

namespace rondo::detail {

template <class Sync>
bool basic_core<Sync>::pending(timer_id id) const {
  record_type* const r = find(id);
  if (r == nullptr) return false;
  const record_lock hold(r->mutex);
  return r->has_generation(timer_id_access::generation(id)) && r->state.live();
}

template <class Sync>
std::size_t basic_core<Sync>::pending() const noexcept {
  if (abandoned()) return 0;
  return static_cast<std::size_t>(pool_.total().pending());
}

template <class Sync>
statistics basic_core<Sync>::stats() const {
  statistics s;
  if (abandoned()) return s;
  const counters c = pool_.total();
  s.pending = c.pending();
  s.scheduled = c.scheduled;
  s.fired = c.fired;
  s.completed = c.completed;
  s.cancelled = c.cancelled;
  s.returned = c.returned;
  s.failed = c.failed;
  s.missed = c.missed;
  s.overlapped = c.overlapped;
  s.rejected = c.rejected;
  s.wakeups = wakeups();
  s.lateness = meter_.lateness();
  s.run_time = meter_.run_time();
  return s;
}

template <class Sync>
std::optional<time_point> basic_core<Sync>::next_due() {
  if (stopped()) return std::nullopt;
  std::optional<tick_number> earliest = wheel_.next_due();
  const auto consider = [&](tick_number tick) {
    if (!earliest || tick < *earliest) earliest = tick;
  };
  if (const auto in_pass = ready_.next_due()) consider(*in_pass);
  if (const auto without_memory = retries_.next_due()) consider(*without_memory);
  if (!earliest) return std::nullopt;
  return grid_.begin_of(*earliest);
}

template <class Sync>
void basic_core<Sync>::dump(std::ostream& out) const {
  if (abandoned()) {
    out << "rondo: the copy, in a child made by fork(), of a scheduler whose driver is in the parent\n";
    return;
  }
  picture p{.grid = grid_, .now = now(), .size = wheel_.buckets()};
  describe(wheel_, p);
  ready_.for_each_current([&](const auto&, std::uint64_t) { ++p.ready; });
  pool_.for_each([&](record_type& r) {
    const record_lock hold(r.mutex);
    if (r.state.where() == waits_in::never_due) ++p.never_due;
    if (r.state.where() == waits_in::retry_list) ++p.without_memory;
    p.submitted += r.state.submitted();
    p.running += r.state.running();
  });
  draw(out, p);
}

template <class Sync>
void basic_core<Sync>::end_call(const char* name) noexcept {
  const std::size_t steps = wheel_.buckets() + pool_.slots() / 8;  // the greater part of these is mostly free
  if (!abandoned() && checks_.enough_for(steps)) {
    std::string wrong = fault();
    if (wrong.empty()) wrong = fault_when_quiescent();
    if (!wrong.empty()) {
      dump(std::cerr);
      die("broken after " + std::string(name) + ": " + wrong);
    }
  }
  checks_.end();
}

/// What holds at any time, other calls in progress or not.
template <class Sync>
std::string basic_core<Sync>::fault() {
  std::string wrong = wheel_.fault();
  pool_.for_each([&](record_type& r) {
    if (!wrong.empty()) return;
    const record_lock hold(r.mutex);
    wrong = r.fault();
    if (!wrong.empty()) wrong = "the timer in slot " + std::to_string(r.slot) + ": " + wrong;
  });
  return wrong;
}

/// What holds when no other call, pass or job is in progress. Nothing to say if one is, or comes in between.
template <class Sync>
std::string basic_core<Sync>::fault_when_quiescent() {
  std::string wrong;
  const bool was_quiescent = checks_.alone_during([&] {
    census found;
    wheel_.for_each([&](const node&) { ++found.in_wheel; });
    ready_.for_each_current([&](const auto&, std::uint64_t) { ++found.in_pass; });
    pool_.for_each([&](record_type& r) {
      const record_lock hold(r.mutex);
      if (r.state.where() == waits_in::never_due) ++found.never_due;
      if (r.state.where() == waits_in::retry_list) ++found.without_memory;
      if (r.state.where() == waits_in::nowhere) ++found.with_executor;  // no run is in progress
    });
    found.slots = pool_.slots();
    found.free = pool_.free();
    wrong = fault_of(pool_.total(), found);
  });
  return was_quiescent ? wrong : "";
}

}  // namespace rondo::detail
