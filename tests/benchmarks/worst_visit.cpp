#include "worst_visit.hpp"

#include <rondo/detail/later_rounds.hpp>
#include <rondo/wheel.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "wheel_workloads.hpp"

namespace {

using microseconds = std::vector<double>;

template <class Act>
void time(Act&& act, microseconds& times) {
  const auto start = measure::now();
  act();
  const std::chrono::duration<double, std::micro> taken = measure::now() - start;
  times.push_back(taken.count());
}

/// Calls of advance() that fire one timer each, all of one bucket, each in another round.
microseconds calls(std::uint32_t timers) {
  std::vector<rondo::wheel_node> nodes(timers);
  rondo::wheel<rondo::wheel_node> wheel(turn);
  const std::vector<std::uint32_t> order = shuffled(timers);
  for (std::uint32_t i = 0; i != timers; ++i) wheel.schedule(nodes[order[i]], (i + 1) * turn);
  microseconds times;
  for (std::uint32_t i = 0; i != timers; ++i)
    time([&] { wheel.advance((i + 1) * turn, [](rondo::wheel_node&) {}, 1); }, times);
  return times;
}

/// What a bucket does at a time for the same timers: so long others wait for its lock.
microseconds visits(std::uint32_t timers) {
  constexpr int round_shift = std::countr_zero(static_cast<unsigned>(turn));
  std::vector<rondo::detail::node> nodes(timers);
  rondo::detail::later_rounds rounds;
  const std::vector<std::uint32_t> order = shuffled(timers);
  for (std::uint32_t i = 0; i != timers; ++i) {
    rondo::detail::node& n = nodes[order[i]];
    n.due = static_cast<rondo::tick_number>((i + 1) * turn);
    rounds.make_room(n.due, round_shift);
    rounds.add(n, round_shift);
  }
  microseconds times;
  while (!rounds.empty()) {
    rondo::detail::node_array next;
    time([&] { rounds.take_next(next, round_shift); }, times);
  }
  return times;
}

/// The same work each time, so of each part the least time counts: the machine does something else now and then.
template <class Run>
microseconds least_of_five(Run&& run) {
  microseconds least = run();
  for (int again = 1; again != 5; ++again) {
    const microseconds times = run();
    std::transform(least.begin(), least.end(), times.begin(), least.begin(),
                   [](double a, double b) { return std::min(a, b); });
  }
  std::sort(least.begin(), least.end());
  return least;
}

void show(measure::report& report, const std::string& workload, const std::string& unit,
          const microseconds& times) {
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  report.add({.workload = workload,
              .unit = unit,
              .rows = {{"median", at(0.5)}, {"99 %", at(0.99)}, {"99.99 %", at(0.9999)}, {"longest", at(1)}},
              .compared = false});
}

}  // namespace

void show_worst_visits(measure::report& report) {
  const std::uint32_t timers = report.small() ? 1'000 : 1'000'000;
  const std::string workload = measure::readable(timers) + " timers of one bucket: ";
  if (report.wanted(workload + "single calls"))
    show(report, workload + "single calls", "µs a call of advance() that fires one timer",
         least_of_five([&] { return calls(timers); }));
  if (report.wanted(workload + "single visits"))
    show(report, workload + "single visits", "µs inside the bucket's lock, without firing",
         least_of_five([&] { return visits(timers); }));
}
