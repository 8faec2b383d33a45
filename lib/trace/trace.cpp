#include <rondo/trace.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <new>
#include <stdexcept>

#include "trace/lateness.hpp"
#include "trace/recorder.hpp"
#include "trace/ring.hpp"
#include "trace/snapshot.hpp"
#include "trace/trace_events.hpp"

namespace rondo {
namespace detail {

RONDO_THREAD_LOCAL constinit std::uint32_t traced_thread::own_number = 0;

std::uint32_t traced_thread::next() noexcept {
  static std::atomic<std::uint32_t> numbers{0};
  constexpr std::uint32_t last = (std::uint32_t{1} << 24) - 1;  // a label has 24 bits for it
  return numbers.fetch_add(1, std::memory_order_relaxed) % last + 1;
}

namespace {

std::size_t slots_for(std::size_t events) {
  if (events == 0) throw std::invalid_argument("rondo: a trace needs room for events, not for 0");
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 256;
  if (events > most) throw std::bad_alloc();
  return std::bit_ceil(std::max<std::size_t>(events, 2));
}

}  // namespace
}  // namespace detail

trace::trace(std::size_t events) : ring_(std::make_unique<detail::trace_ring>(detail::slots_for(events))) {}

trace::~trace() = default;

void trace::write(std::ostream& out) const {
  const detail::snapshot all(*ring_);
  detail::trace_events(all).write(out);
}

std::vector<trace::late_run> trace::late(any_duration over) const {
  const duration limit = over;
  const detail::snapshot all(*ring_);
  detail::lateness why(all);
  std::vector<late_run> found;
  for (const auto& e : all.events) {
    if (!e.is_run() || e.lateness() <= limit) continue;
    const detail::lateness::parts p = why.of(e);
    const detail::snapshot::timer& of = all.timers[e.timer];
    late_run& run = found.emplace_back(late_run{.id = of.id, .name = of.name, .run = e.run, .due = e.due});
    run.lateness = p.whole;
    run.woken_late = p.woken_late;
    run.behind_tasks = p.behind_tasks;
    run.in_executor = p.in_executor;
    run.in_pass = p.in_pass;
    if (p.longest == detail::tally::nobody) continue;
    run.longest = all.timers[p.longest].id;
    run.longest_name = all.timers[p.longest].name;
  }
  std::stable_sort(found.begin(), found.end(), [](const late_run& a, const late_run& b) {
    return saturating_add(a.due, a.lateness) < saturating_add(b.due, b.lateness);
  });
  return found;
}

std::uint64_t trace::lost() const noexcept { return ring_->lost(); }

}  // namespace rondo
