// Compares rondo::timer with other ways to fire timers on a thread: libevent and Boost.Asio, if they were found, and
// queues written by hand without a library. See README.md.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "report.hpp"
#include "rivals/timer_lazy_heap.hpp"
#include "rivals/timer_multimap.hpp"
#include "rivals/timer_rondo.hpp"
#include "timer_handover.hpp"
#include "timer_idle.hpp"
#include "timer_tails.hpp"
#include "timer_workloads.hpp"

#if defined(WITH_LIBEVENT)
#include "rivals/timer_libevent.hpp"
#endif
#if defined(WITH_ASIO)
#include "rivals/timer_asio.hpp"
#endif

namespace {

/// `run.template operator()<Timers>()` is one repetition of the workload.
template <class Run>
std::vector<measure::contender> contenders(Run run) {
  return {
    {"rondo::timer", [=] { return run.template operator()<rondo_timers>(); }},
#if defined(WITH_LIBEVENT)
        {"libevent", [=] { return run.template operator()<libevent_timers>(); }},
#endif
#if defined(WITH_ASIO)
        {"Boost.Asio", [=] { return run.template operator()<asio_timers>(); }},
#endif
        {"multimap, mutex, condvar", [=] { return run.template operator()<multimap_timers>(); }},
        {"priority_queue, likewise", [=] { return run.template operator()<lazy_heap_timers>(); }},
  };
}

/// For lateness and wake-ups, contenders are compared by behaviour, not by speed. Rondo takes part with two ticks.
struct timers {
  std::string name;
  std::vector<double> (*lateness)(std::size_t n, milliseconds span);
  idle_timers (*idle)(std::string name, milliseconds delay);
};

template <template <class> class Timers>
timers timers_of(const char* name) {
  return {name, &lateness<Timers>, &idle<Timers>};
}

std::vector<timers> those_that_take_part(const measure::report& report) {
  std::vector<timers> all {
    timers_of<rondo_timers>("rondo::timer, tick 1 ms"),
        timers_of<fine_rondo_timers>("rondo::timer, tick 10 µs"),
#if defined(WITH_LIBEVENT)
        timers_of<libevent_timers>("libevent"),
#endif
#if defined(WITH_ASIO)
        timers_of<asio_timers>("Boost.Asio"),
#endif
        timers_of<multimap_timers>("multimap, mutex, condvar"),
        timers_of<lazy_heap_timers>("priority_queue, likewise"),
  };
  std::erase_if(all, [&](const timers& t) { return !report.takes_part(t.name); });
  return all;
}

/// Measures three bursts for each contender, in turn.
void compare_lateness(measure::report& report, std::size_t n, int span_ms) {
  const std::string workload = "lateness of " + measure::readable(n) + " one-shots";
  const std::vector<timers> all = those_that_take_part(report);
  if (all.empty() || !report.wanted(workload)) return;
  std::vector<std::vector<double>> late(all.size());
  for (int burst = 0; burst != 3; ++burst) {
    for (std::size_t i = 0; i != all.size(); ++i) {
      const std::vector<double> more = all[i].lateness(n, milliseconds(span_ms));
      late[i].insert(late[i].end(), more.begin(), more.end());
    }
  }
  measure::table median{workload + ": median", "µs", {}, false};
  measure::table almost_all{workload + ": 99 %", "µs", {}, false};
  measure::table early{workload + ": fired early", "of all", {}, false};
  for (std::size_t i = 0; i != all.size(); ++i) {
    std::sort(late[i].begin(), late[i].end());
    median.rows.push_back({all[i].name, late[i][late[i].size() / 2]});
    almost_all.rows.push_back({all[i].name, late[i][late[i].size() * 99 / 100]});
    const auto count = std::count_if(late[i].begin(), late[i].end(), [](double us) { return us < 0; });
    early.rows.push_back({all[i].name, static_cast<double>(count)});
  }
  for (const measure::table& t : {median, almost_all, early}) report.add(t);
}

/// Measures all contenders at the same time.
void compare_idle(measure::report& report, milliseconds time) {
  const std::string workload = "idle for " + std::to_string(time.count()) + " ms, one timer pending";
  const std::vector<timers> all = those_that_take_part(report);
  if (all.empty() || !report.wanted(workload)) return;
  std::vector<idle_timers> idle;
  for (const timers& t : all) idle.push_back(t.idle(t.name, time + milliseconds(500)));
  std::this_thread::sleep_for(milliseconds(200));  // until all sleep
  std::vector<std::uint64_t> before;
  for (const idle_timers& t : idle) before.push_back(t.sleeps());
  std::this_thread::sleep_for(time);
  measure::table wakeups{workload, "wake-ups of the driver", {}, false};
  for (std::size_t i = 0; i != idle.size(); ++i)
    wakeups.rows.push_back({idle[i].name(), static_cast<double>(idle[i].sleeps() - before[i])});
  report.add(wakeups);
}

/// Adds the rows of one contender to the tables of compare_single_calls().
template <template <class> class Timers>
void time_single_calls(const measure::report& report, const std::string& name,
                       std::vector<measure::table>& tables) {
  if (!report.takes_part(name)) return;
  const std::size_t calls = report.small() ? 1'000 : 1'000'000;
  busy_timers<Timers> timers(report.small() ? 1'000 : 1'000'000, report.small() ? 100 : 100'000);
  const auto begin = measure::now();
  const std::uint64_t fired_before = timers.fired();
  const auto ns = timers.time_calls(calls);
  const double seconds = std::chrono::duration<double>(measure::now() - begin).count();
  auto table = tables.begin();
  for (const std::vector<double>& each : ns)
    for (const double part : {0.5, 0.99, 0.999, 1.0})
      table++->rows.push_back(
          {name, each[std::min(calls - 1, static_cast<std::size_t>(part * static_cast<double>(calls)))]});
  table->rows.push_back({name, static_cast<double>(timers.fired() - fired_before) / seconds});
}

/// Single calls, not their mean.
void compare_single_calls(measure::report& report) {
  const std::string workload =
      report.small() ? "single calls" : "single calls, 1,000,000 pending, 100,000 fire a second";
  if (!report.wanted(workload)) return;
  std::vector<measure::table> tables;
  for (const char* call : {"set", "cancel", "reschedule"})
    for (const char* part : {"median", "99 %", "99.9 %", "longest"})
      tables.push_back({workload + ": " + call + ", " + part, "ns", {}});
  tables.push_back({workload + ": fired", "a second", {}, false});
  time_single_calls<rondo_timers>(report, "rondo::timer", tables);
#if defined(WITH_LIBEVENT)
  time_single_calls<libevent_timers>(report, "libevent", tables);
#endif
#if defined(WITH_ASIO)
  time_single_calls<asio_timers>(report, "Boost.Asio", tables);
#endif
  for (measure::table& t : tables)
    if (!t.rows.empty()) report.add(std::move(t));
}

/// Each producer has `pending` timers, whose delays `delay` chooses. More than two producers together make as many
/// pairs as two do.
template <class Delay>
void compare_producers(measure::report& report, std::size_t producers, std::size_t pending,
                       const std::string& more, Delay delay) {
  const std::uint64_t pairs = (report.small() ? 2'000 : 2'000'000) / std::max<std::size_t>(producers, 2);
  report.compare(std::to_string(producers) + (producers == 1 ? " producer: " : " producers: ") +
                     "cancel and re-arm one of " + measure::readable(pending) + more,
                 "ns an operation, all producers together", contenders([=]<template <class> class Timers>() {
                   return produce<Timers>(producers, pending, pairs, delay);
                 }));
}

/// One thread sets, and others cancel: timeouts of 30 s, 20,000 in all.
void compare_handover(measure::report& report, std::size_t cancelling) {
  const std::string workload = "set here, cancelled there, 1 + " + std::to_string(cancelling);
  const std::size_t ring = (report.small() ? 200U : 20'000U) / cancelling;
  const std::size_t cancels = (report.small() ? 1'000U : 1'000'000U) / cancelling;
  report.compare(workload, "ns an operation, all threads together",
                 contenders([=]<template <class> class Timers>() {
                   return handover<Timers>(cancelling, ring, cancels).run(milliseconds(30'000), false);
                 }));
  report.compare(workload + ": a cancel, 99.9 %", "ns, with two readings of the clock",
                 contenders([=]<template <class> class Timers>() {
                   handover<Timers> timers(cancelling, ring, cancels);
                   const measure::sample whole = timers.run(milliseconds(30'000), true);
                   return measure::sample{timers.part(0.999), whole.checksum};
                 }));
}

}  // namespace

int main(int argc, char** argv) {
  measure::report report(measure::read_options(argc, argv));
  const bool small = report.small();
  const auto near = [](measure::random& random) { return milliseconds(random.up_to(512)); };
  const auto far = [](measure::random&) { return milliseconds(30'000); };
  const std::size_t each = small ? 100 : 10'000, each_far = small ? 100 : 50'000;
  const auto in_all = [](std::size_t pending) { return ", " + measure::readable(pending) + " in all"; };
  for (const std::size_t producers : {1U, 2U}) compare_producers(report, producers, each, "", near);
  for (const std::size_t producers : {4U, 16U})
    compare_producers(report, producers, 2 * each / producers, in_all(2 * each), near);
  for (const std::size_t producers : {1U, 2U})
    compare_producers(report, producers, each_far, ", timeouts of 30 s", far);
  for (const std::size_t producers : {4U, 16U})
    compare_producers(report, producers, 2 * each_far / producers,
                      in_all(2 * each_far) + ", timeouts of 30 s", far);
  for (const std::size_t cancelling : {1U, 3U, 15U}) compare_handover(report, cancelling);
  const std::size_t due = small ? 1'000 : 1'000'000;
  for (const int span_ms : {1, small ? 2 : 512}) {
    report.compare(measure::readable(due) + " timers, due within " + std::to_string(span_ms) +
                       " ms, all late: the driver fires them",
                   "ns a timer", contenders([=]<template <class> class Timers>() {
                     return release_backlog<Timers>(due, milliseconds(span_ms));
                   }));
  }
  compare_lateness(report, small ? 100 : 1'000, small ? 20 : 200);
  compare_single_calls(report);
  compare_idle(report, milliseconds(small ? 100 : 2'000));
  return report.finish();
}
