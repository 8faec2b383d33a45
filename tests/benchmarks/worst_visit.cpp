#include "worst_visit.hpp"

#include <rondo/wheel.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "wheel_workloads.hpp"

namespace {

/// Fires timers of one bucket, each in another round, one a call, and lowers `visits` to the microseconds of
/// the calls. The work is the same each time.
void visit(std::vector<double>& visits) {
  const auto timers = static_cast<std::uint32_t>(visits.size());
  std::vector<rondo::wheel_node> nodes(timers);
  rondo::wheel<rondo::wheel_node> wheel(turn);
  const std::vector<std::uint32_t> order = shuffled(timers);
  for (std::uint32_t i = 0; i != timers; ++i) wheel.schedule(nodes[order[i]], (i + 1) * turn);
  for (std::uint32_t i = 0; i != timers; ++i) {
    const auto start = measure::now();
    wheel.advance((i + 1) * turn, [](rondo::wheel_node&) {}, 1);
    const std::chrono::duration<double, std::micro> time = measure::now() - start;
    visits[i] = std::min(visits[i], time.count());
  }
}

}  // namespace

void show_worst_visits(measure::report& report) {
  const std::uint32_t timers = report.small() ? 1'000 : 1'000'000;
  const std::string workload = measure::readable(timers) + " timers of one bucket: the single visits";
  if (!report.wanted(workload)) return;

  // The least of several times, as the machine does something else now and then.
  std::vector<double> visits(timers, std::numeric_limits<double>::infinity());
  for (int run = 0; run != 5; ++run) visit(visits);
  std::sort(visits.begin(), visits.end());
  const auto at = [&](double share) { return visits[static_cast<std::size_t>(share * (timers - 1))]; };
  report.add({.workload = workload,
              .unit = "µs a call of advance() that fires one timer",
              .rows = {{"median", at(0.5)}, {"99 %", at(0.99)}, {"99.99 %", at(0.9999)}, {"longest", at(1)}},
              .compared = false});
}
