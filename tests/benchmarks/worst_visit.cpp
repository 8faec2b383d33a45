#include "worst_visit.hpp"

#include <rondo/wheel.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "wheel_workloads.hpp"

namespace {

using microseconds = std::vector<double>;

/// How long each call took, by function.
struct calls {
  microseconds advance, next_due, set, cancel;
};

template <class Act>
void time(Act&& act, microseconds& times) {
  const auto start = measure::now();
  act();
  const std::chrono::duration<double, std::micro> taken = measure::now() - start;
  times.push_back(taken.count());
}

/// The due tick of timer i of n, for a wheel at tick 0.
using shape = std::function<std::int64_t(std::uint32_t i, std::uint32_t n)>;

struct timers {
  timers(std::uint32_t n, const shape& due) : nodes(n) {
    for (const std::uint32_t i : shuffled(n)) wheel.schedule(nodes[i], due(i, n));
  }
  std::vector<rondo::wheel_node> nodes;
  rondo::wheel<rondo::wheel_node> wheel{turn};
};

/// Fires timers one by one and cancels others, and sets each again behind the last.
calls work(std::uint32_t n, const shape& due) {
  timers t(n, due);
  measure::random random(5);
  calls times;
  std::int64_t behind = due(n - 1, n);
  const std::uint32_t rounds = std::min<std::uint32_t>(n / 4, 50'000);
  for (std::uint32_t i = 0; i != rounds && !t.wheel.empty(); ++i) {
    rondo::tick_number next = 0;
    rondo::wheel_node* fired = nullptr;
    time([&] { next = *t.wheel.next_due(); }, times.next_due);
    time(
        [&] {
          t.wheel.advance(
              next, [&](rondo::wheel_node& node) { fired = &node; }, 1);
        },
        times.advance);
    time([&] { t.wheel.schedule(*fired, ++behind); }, times.set);
    rondo::wheel_node& other = t.nodes[random.below(n)];
    time([&] { t.wheel.cancel(other); }, times.cancel);
    time([&] { t.wheel.schedule(other, ++behind); }, times.set);
  }
  return times;
}

/// Cancels all timers but the last, in random order, and fires the last.
calls cancel_all_but_one(std::uint32_t n, const shape& due) {
  timers t(n, due);
  calls times;
  for (const std::uint32_t i : shuffled(n))
    if (i != n - 1) time([&] { t.wheel.cancel(t.nodes[i]); }, times.cancel);
  rondo::tick_number next = 0;
  time([&] { next = *t.wheel.next_due(); }, times.next_due);
  time([&] { t.wheel.advance(next, [](rondo::wheel_node&) {}); }, times.advance);
  return times;
}

/// Each run does the same work, so the shortest time of each call counts: sometimes the machine does something else.
template <class Run>
calls least_of_five(Run&& run) {
  calls least = run();
  for (int again = 1; again != 5; ++again) {
    const calls more = run();
    for (auto kind : {&calls::advance, &calls::next_due, &calls::set, &calls::cancel})
      std::transform((least.*kind).begin(), (least.*kind).end(), (more.*kind).begin(), (least.*kind).begin(),
                     [](double a, double b) { return std::min(a, b); });
  }
  return least;
}

void show(measure::report& report, const std::string& workload, const calls& times) {
  measure::table table{.workload = workload, .unit = "µs, the longest call", .rows = {}, .compared = false};
  const auto add = [&](const char* name, const microseconds& of) {
    if (!of.empty()) table.rows.push_back({name, *std::max_element(of.begin(), of.end())});
  };
  add("advance() firing one timer", times.advance);
  add("next_due()", times.next_due);
  add("schedule()", times.set);
  add("cancel()", times.cancel);
  report.add(table);
}

}  // namespace

void show_worst_visits(measure::report& report) {
  const std::uint32_t timers = report.small() ? 1'000 : 1'000'000;
  constexpr std::int64_t list = 64 * 8 * 8 * 8 * 8;  // ticks of a far list of a wheel of 512 buckets
  struct named_shape {
    const char* name;
    shape due;
  };
  const std::vector<named_shape> shapes{
      {"in one far list", [](std::uint32_t i, std::uint32_t n) { return list + list * i / n; }},
      {"of one tick", [](std::uint32_t, std::uint32_t) { return list; }},
      {"in one bucket, each in another round", [](std::uint32_t i, std::uint32_t) { return (i + 1) * turn; }},
      {"in one bucket, of one tick", [](std::uint32_t, std::uint32_t) { return turn / 2; }}};
  for (const named_shape& s : shapes) {
    const std::string workload = "single calls, " + measure::readable(timers) + " timers " + s.name;
    if (report.wanted(workload)) show(report, workload, least_of_five([&] { return work(timers, s.due); }));
    const std::string cancelled = workload + ", all cancelled but one";
    if (report.wanted(cancelled))
      show(report, cancelled, least_of_five([&] { return cancel_all_but_one(timers, s.due); }));
  }
}
