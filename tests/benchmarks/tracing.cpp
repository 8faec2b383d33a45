// What a trace costs: schedulers of which a loop polls, with and without one.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rondo/polled_timer.hpp>
#include <rondo/trace.hpp>

#include "measure.hpp"
#include "report.hpp"

namespace {

using namespace std::chrono_literals;

using trace_or_none = std::shared_ptr<rondo::trace>;

/// Schedules and fires tasks in turn, so many at a time. Only firing is timed.
double fire(rondo::polled_timer& timer, std::size_t at_a_time, std::size_t times, const std::string& name,
            std::uint64_t& fired) {
  measure::clock::duration spent{};
  for (std::size_t turn = 0; turn != times; ++turn) {
    for (std::size_t i = 0; i != at_a_time; ++i) {
      if (name.empty())
        timer.schedule_after(0s, [&fired] { ++fired; });
      else
        timer.schedule_after(0s, [&fired] { ++fired; }, {.name = name});
    }
    const auto begin = measure::now();
    timer.poll();
    spent += measure::now() - begin;
  }
  return static_cast<double>(spent.count()) / static_cast<double>(at_a_time * times);
}

measure::sample on_one_thread(const trace_or_none& into, std::size_t at_a_time, std::size_t times,
                              const std::string& name) {
  rondo::polled_timer timer({.traced_by = into});
  std::uint64_t fired = 0;
  fire(timer, at_a_time, 1, name, fired);  // warms up
  const double ns = fire(timer, at_a_time, times, name, fired);
  return {ns, fired};
}

/// Each thread has a scheduler; they share the trace.
measure::sample on_two_threads(const trace_or_none& into, std::size_t at_a_time, std::size_t times) {
  std::vector<measure::sample> samples(2);
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (measure::sample& each : samples)
    threads.emplace_back([&, at_a_time, times] {
      ++ready;
      while (ready.load() != 2) std::this_thread::yield();
      each = on_one_thread(into, at_a_time, times, "");
    });
  for (std::thread& t : threads) t.join();
  return {(samples[0].value + samples[1].value) / 2, samples[0].checksum + samples[1].checksum};
}

}  // namespace

int main(int argc, char** argv) {
  measure::report report(measure::read_options(argc, argv));
  const std::size_t all = report.small() ? 1'000 : 1'000'000;
  const auto compare = [&](const std::string& workload, auto run) {
    report.compare(workload, "ns a firing",
                   {{"no trace", [=] { return run(trace_or_none()); }},
                    {"a trace", [=] { return run(std::make_shared<rondo::trace>()); }}});
  };
  for (const std::size_t at_a_time : {1U, 10U, 1'000U})
    compare(measure::readable(at_a_time) + " in a pass",
            [=](const trace_or_none& into) { return on_one_thread(into, at_a_time, all / at_a_time, ""); });
  compare("1,000 in a pass, with names",
          [=](const trace_or_none& into) { return on_one_thread(into, 1'000, all / 1'000, "a name"); });
  compare("1,000 in a pass, two threads and schedulers, one trace",
          [=](const trace_or_none& into) { return on_two_threads(into, 1'000, all / 1'000); });
  return report.finish();
}
