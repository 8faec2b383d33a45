// Counts how often the driver wakes up for 1,000 periodic jobs of 1 s to 60 s, for several values of their slack. On
// virtual time, so the counts are exact. Fails unless more slack saves wake-ups and no run is later than its slack.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>

#include <rondo/manual_timer.hpp>

namespace {

using namespace std::chrono_literals;

constexpr auto watched = 10min;

struct counts {
  double wakeups = 0, runs = 0;  // per second
  rondo::duration latest{};      // of all runs
};

counts count(rondo::duration slack) {
  rondo::manual_timer time;
  std::mt19937_64 random(1);  // the same jobs for each slack
  std::uniform_int_distribution<std::int64_t> some_period(std::int64_t{1'000'000'000},
                                                          std::int64_t{60'000'000'000});
  counts c;
  for (int i = 0; i != 1000; ++i) {
    const rondo::duration period(some_period(random));
    const rondo::duration phase(std::uniform_int_distribution<std::int64_t>(0, period.count() - 1)(random));
    const auto work = [&c](const rondo::firing& f) {
      ++c.runs;
      c.latest = std::max(c.latest, f.lateness);
    };
    time.schedule(rondo::every(period).first_after(phase), work, {.slack = slack});
  }
  time.advance(1min);
  c = {};
  for (const auto end = time.now() + watched; *time.next_due() < end; time.advance_to_next()) ++c.wakeups;
  const double seconds = std::chrono::duration<double>(watched).count();
  c.wakeups /= seconds;
  c.runs /= seconds;
  return c;
}

double ms(rondo::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

}  // namespace

int main() {
  std::puts("| slack | wake-ups a second | runs a second | latest run |\n|---:|---:|---:|---:|");
  double before = 1e9;
  bool right = true;
  for (const rondo::duration slack :
       {rondo::duration(0ms), rondo::duration(10ms), rondo::duration(100ms), rondo::duration(1s)}) {
    const counts c = count(slack);
    std::printf("| %.0f ms | %.1f | %.1f | %.1f ms |\n", ms(slack), c.wakeups, c.runs, ms(c.latest));
    right = right && c.wakeups < before && c.latest <= std::max<rondo::duration>(slack, 1ms);
    before = c.wakeups;
  }
  return right ? 0 : 1;
}
