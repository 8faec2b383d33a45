// basic_core: what can be asked.
#pragma once

#include "scheduler/core.hpp"
#include "scheduler/drawing.hpp"

namespace rondo::detail {

template <class Sync>
bool basic_core<Sync>::pending(timer_id id) const {
  record_type* const r = find(id);
  if (r == nullptr) return false;
  const record_lock hold(r->mutex);
  return r->generation == timer_id_access::generation(id) && r->live;
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
  const tally t = pool_.total();
  s.pending = t.pending();
  s.scheduled = t.scheduled;
  s.fired = t.fired;
  s.completed = t.completed;
  s.cancelled = t.cancelled;
  s.returned = t.returned;
  s.failed = t.failed;
  s.missed = t.missed;
  s.overlapped = t.overlapped;
  s.rejected = t.rejected;
  s.wakeups = wakeups();
  s.lateness = lateness_.snapshot();
  s.run_time = run_time_.snapshot();
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
  if (const auto without_memory = unplaced_.next_due()) consider(*without_memory);
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
  look_at(wheel_, p);
  ready_.for_each_good([&](const auto&, std::uint64_t) { ++p.ready; });
  pool_.for_each([&](record_type& r) {
    const record_lock hold(r.mutex);
    if (r.place == waiting::apart) ++p.never_due;
    if (r.place == waiting::unplaced) ++p.unplaced;
    p.handed_over += r.handed;
    p.running += r.running;
  });
  draw(out, p);
}

}  // namespace rondo::detail
