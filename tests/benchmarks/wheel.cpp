// Compares rondo::wheel with its rivals, on the same work in one process: see README.md.
#include <malloc.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report.hpp"
#include "rivals/rivals.hpp"
#include "wheel_workloads.hpp"
#include "worst_visit.hpp"

namespace {

/// The rivals that were found at build time, Rondo first.
std::vector<rival> rivals() {
  std::vector<rival> result{rondo_wheel};
#ifdef WITH_LIBEV
  result.push_back(libev);
#endif
#ifdef WITH_LIBEVENT
  result.push_back(libevent);
#endif
#ifdef WITH_LIBUV
  result.push_back(libuv);
#endif
#ifdef WITH_ASIO
  result.push_back(asio);
#endif
  result.insert(result.end(), {multimap, lazy_priority_queue, fibonacci_heap});
  return result;
}

/// The rivals that finish a run of twelve million pairs in reasonable time: the others take several times as long.
std::vector<rival> fast_rivals() {
  std::vector<rival> result{rondo_wheel};
#ifdef WITH_LIBEV
  result.push_back(libev);
#endif
  result.push_back(lazy_priority_queue);
  return result;
}

struct planned {
  std::uint32_t timers;
  std::string what;
  std::string unit;
  wheel_workload workload;
};

/// The workloads in which no delay is longer than one turn, so that the floor can take part.
std::vector<planned> with_floor(bool small) {
  const auto n = [small](std::uint32_t full) { return small ? 1'000 : full; };
  const std::uint32_t pairs = small ? 2'000 : 1'000'000;
  std::vector<planned> result;
  for (const std::uint32_t timers : {n(10'000), n(100'000), n(1'000'000)})
    result.push_back({timers, "set", "ns a timer", set_workload{timers}});
  for (const std::uint32_t timers : {n(100'000), n(1'000'000)})
    result.push_back({timers, "set, where as many have fired before", "ns a timer",
                      set_workload{.timers = timers, .used = true}});
  for (const std::uint32_t timers : {n(100'000), n(1'000'000)})
    result.push_back({timers, "cancel and re-arm one", "ns a pair", churn_workload{timers, pairs}});
  result.push_back({n(100'000), "cancel and re-arm one, 1,000 times a tick", "ns a pair",
                    churn_workload{n(100'000), pairs, 1'000}});
  for (const std::uint32_t timers : {n(100'000), n(1'000'000)})
    result.push_back({timers, "fire, tick by tick", "ns a timer", fire_workload{timers}});
  for (const std::uint32_t timers : {n(100'000), n(1'000'000)})
    result.push_back(
        {timers, "fire, in one jump", "ns a timer", fire_workload{.timers = timers, .step = turn}});
  result.push_back({n(10'000), "fire and re-arm, periodic", "ns a firing",
                    periodic_workload{n(10'000), small ? 200 : 100'000}});
  result.push_back({n(100'000), "one deadline, set and fired", "ns a timer", burst_workload{n(100'000)}});
  return result;
}

/// Timeouts as servers have them, all of one length or of a few. Each timer is re-armed once in 500 or 5,000 ticks.
planned timeouts(std::uint32_t timers, std::span<const std::int64_t> delays, const char* lengths,
                 bool small) {
  timeouts_workload workload{.timers = timers, .delays = delays};
  if (timers == 1'000'000) workload.pairs_per_tick = 200;
  if (small) {
    workload.timers = 1'000;
    workload.ticks = 100;
  }
  return {workload.timers, std::string("cancel and re-arm one, timeouts of ") + lengths, "ns a pair",
          workload};
}

planned timeouts_of_30_s(std::uint32_t timers, bool small) {
  static constexpr std::array<std::int64_t, 1> delays{30'000};
  return timeouts(timers, delays, "30 s", small);
}

planned mixed_timeouts(std::uint32_t timers, bool small) {
  static constexpr std::array<std::int64_t, 6> delays{100, 1'000, 5'000, 30'000, 60'000, 300'000};
  return timeouts(timers, delays, "0.1 s to 5 min", small);
}

/// The workloads with longer delays; and memory, because the floor reserves more than it needs.
std::vector<planned> without_floor(bool small) {
  const auto n = [small](std::uint32_t full) { return small ? 1'000 : full; };
  const std::uint32_t million = n(1'000'000);
  return {
      {million, "memory of a pending timer", "bytes", bytes_workload{million}},
      {million, "set within 24 hours", "ns a timer", set_workload{million, day}},
      {million, "cancel within 24 hours, in random order", "ns a timer", cancel_workload{million, day}},
      {n(100'000), "fire 1,000,000 ticks", "ns a timer",
       fire_workload{.timers = n(100'000), .span = 1'000'000, .step = turn}},
      {million, "fire the first 865 s of 24 hours", "ns a timer",
       fire_workload{.timers = million, .span = day, .step = turn, .ticks = 865'000}},
      {n(20'000), "fire one bucket, each timer in another round", "ns a timer",
       one_bucket_workload{n(20'000)}},
  };
}

void compare(measure::report& report, const std::vector<planned>& plan,
             const std::vector<rival>& contestants) {
  for (const planned& p : plan) {
    std::vector<measure::contender> contenders;
    for (const rival& r : contestants) contenders.push_back({r.name, [&] { return r.run(p.workload); }});
    report.compare(measure::readable(p.timers) + " timers: " + p.what, p.unit, contenders);
  }
}

/// Without this, all times would include those of fresh pages.
void keep_freed_memory() {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  measure::report report(measure::read_options(argc, argv));
  std::vector<rival> rivals_and_floor = rivals();
  rivals_and_floor.push_back(plain_arrays);
  const bool small = report.small();
  compare(report, with_floor(small), rivals_and_floor);
  compare(report, {timeouts_of_30_s(10'000, small), timeouts_of_30_s(100'000, small)}, rivals());
  compare(report, {timeouts_of_30_s(1'000'000, small)}, small ? rivals() : fast_rivals());
  compare(report, {mixed_timeouts(100'000, small)}, rivals());
  compare(report, {mixed_timeouts(1'000'000, small)}, small ? rivals() : fast_rivals());
  compare(report, without_floor(small), rivals());
  if (report.takes_part(rondo_wheel.name)) show_worst_visits(report);
  return report.finish();
}
