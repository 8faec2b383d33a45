// basic_core: queries, and what checked builds verify after each call.
#pragma once

#include <algorithm>
#include <iostream>
#include <limits>
#include <string>
#include <tuple>

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

/// The deadline that `r`, which is locked, waits for. None if it waits for no moment, or is plain and was cancelled in
/// the meantime.
template <class Sync>
std::optional<time_point> basic_core<Sync>::deadline_of(record_type& r, std::uint64_t generation) {
  switch (r.state.where()) {
    case waits_in::nowhere:
      return std::nullopt;
    case waits_in::never_due:
      return time_point::max();
    case waits_in::retry_list:
      return r.deadline;
    case waits_in::wheel:
      break;
  }
  // A plain timer leaves the wheel without the record's lock, and then another timer may have the record.
  std::optional<time_point> found;
  wheel_.take_out(r, [&](bool) {
    if (r.has_generation(generation)) found = r.deadline;
    return false;
  });
  return found;
}

template <class Sync>
std::optional<time_point> basic_core<Sync>::due(timer_id id) {
  record_type* const r = find(id);
  if (r == nullptr) return std::nullopt;
  const std::uint64_t generation = timer_id_access::generation(id);
  const record_lock hold(r->mutex);
  if (!r->has_generation(generation) || !r->state.live()) return std::nullopt;
  return deadline_of(*r, generation);
}

/// Whether a pass holds the timer of `r`, which is locked. Precondition: `in_pass` is in the order of records.
template <class Sync>
bool basic_core<Sync>::has_entry(const std::vector<ready_entry>& in_pass, const record_type& r) {
  const auto found =
      std::lower_bound(in_pass.begin(), in_pass.end(), &r,
                       [](const ready_entry& e, const record_type* timer) { return e.timer < timer; });
  return found != in_pass.end() && found->timer == &r && found->is_current();
}

/// Adds the timer of `r` if it is pending or running. Returns false if it may be in the pass but is not in `in_pass`.
///
/// A record whose timer is under construction must be left alone, because the scheduling thread writes what is marked
/// [new]. That timer is neither in the wheel nor in the pass, and no run of it is in progress; its state says that it
/// waits in the wheel, as the state of a free record does.
template <class Sync>
bool basic_core<Sync>::list_timer(record_type& r, const std::vector<ready_entry>& in_pass,
                                  std::vector<timer_info>& timers) {
  const record_lock hold(r.mutex);
  if (r.destroying) return true;
  const waits_in where = r.state.where();
  std::uint64_t generation = r.generation.peek();
  bool is_plain = r.plain.acquire();
  std::optional<time_point> due;
  if (where == waits_in::wheel) {
    // A plain timer leaves the wheel without the record's lock, and then another timer may have the record.
    wheel_.take_out(r, [&](bool is_here) {
      if (!is_here) return false;
      generation = r.generation.peek();
      is_plain = r.plain;
      due = r.deadline;
      return false;
    });
  }
  if (!due) {
    if (!r.state.live() && r.state.running() == 0) return true;
    if (where == waits_in::wheel && !r.state.in_progress() && !has_entry(in_pass, r)) return false;
    if (where == waits_in::never_due) due = time_point::max();
    if (where == waits_in::wheel || where == waits_in::retry_list) due = r.deadline;
  }
  timer_info info{.id = timer_id_access::make(number_, r.slot, generation),
                  .due = due,
                  .runs = r.state.running(),
                  .running = r.state.running()};
  if (!is_plain) {
    info.name = r.name();
    info.periodic = r.periodic();
    if (info.periodic) info.runs = r.repeats->next.runs() - r.state.submitted();
  }
  timers.push_back(std::move(info));
  return true;
}

/// Visits each record once, so that a timer that moves in the meantime is neither left out nor listed twice. Visits
/// again those that may have been in the pass, because timers enter the pass without a lock that is held here.
template <class Sync>
std::vector<timer_info> basic_core<Sync>::list() {
  std::vector<timer_info> timers;
  if (abandoned()) return timers;
  std::vector<record_type*> again;
  std::vector<ready_entry> in_pass;
  pool_.for_each([&](record_type& r) {
    if (!list_timer(r, in_pass, timers)) again.push_back(&r);
  });
  for (int looks = 0; looks != 3 && !again.empty(); ++looks) {  // timers under construction stay
    in_pass.clear();
    ready_.for_each_current([&](const ready_entry& entry, std::uint64_t) { in_pass.push_back(entry); });
    std::sort(in_pass.begin(), in_pass.end(),
              [](const ready_entry& a, const ready_entry& b) { return a.timer < b.timer; });
    std::erase_if(again, [&](record_type* r) { return list_timer(*r, in_pass, timers); });
  }
  std::sort(timers.begin(), timers.end(), [](const timer_info& a, const timer_info& b) {
    return std::tuple(!a.due, a.due, a.id) < std::tuple(!b.due, b.due, b.id);
  });
  return timers;
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
void basic_core<Sync>::dump(std::ostream& out) {
  if (abandoned()) {
    out << "rondo: this is a copy of a scheduler in a child made by fork(); the driver is in the parent\n";
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
  p.named = list();
  std::erase_if(p.named, [](const timer_info& t) { return t.name.empty(); });
  draw(out, p);
}

template <class Sync>
void basic_core<Sync>::end_call(const char* name) noexcept {
  const std::size_t steps = wheel_.buckets() + pool_.slots() / 8;  // most slots are usually free
  if (!abandoned() && checks_.enough_for(steps)) {
    std::string wrong = fault();
    if (wrong.empty()) wrong = fault_when_quiescent();
    if (!wrong.empty()) {
      dump(std::cerr);
      die("the scheduler is broken after " + std::string(name) + ": " + wrong);
    }
  }
  checks_.end();
}

/// Verifies what is true at any time, whether or not other calls are in progress.
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

/// Verifies what is true when no other call, pass or job is in progress. Returns an empty string if one is, or if one
/// begins in between.
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
