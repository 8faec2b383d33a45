// schedule_every(): the grid, and what happens to missed points.
#include <cstdint>
#include <stdexcept>

#include "scheduler/virtual_time.hpp"

namespace scheduler_periodic {

using namespace rondo;
using namespace rondo::test;
using rondo::detail::timer_id_access;

/// One run, as the tests below describe it.
struct expected_run {
  duration now, due;
  std::uint64_t run, missed;
};

struct seen_run {
  duration now;
  firing fact;
};

void check(const std::vector<seen_run>& seen, const std::vector<expected_run>& expected) {
  REQUIRE(seen.size() == expected.size());
  for (std::size_t i = 0; i != seen.size(); ++i) {
    CAPTURE(i);
    CHECK(seen[i].now == expected[i].now);
    CHECK(seen[i].fact.due == at(expected[i].due));
    CHECK(seen[i].fact.lateness == expected[i].now - expected[i].due);
    CHECK(seen[i].fact.run == expected[i].run);
    CHECK(seen[i].fact.missed == expected[i].missed);
  }
}

auto watching(manual_timer& time, std::vector<seen_run>& seen) {
  return [&](const firing& f) { seen.push_back({since_epoch(time), f}); };
}

TEST_CASE("a periodic task runs at each multiple of its period, first after one period") {
  manual_timer time;
  std::vector<seen_run> seen;
  time.schedule_every(300ms, watching(time, seen));
  CHECK(time.next_due() == at(300ms));
  CHECK(time.advance(1s) == 3);
  check(seen, {{300ms, 300ms, 1, 0}, {600ms, 600ms, 2, 0}, {900ms, 900ms, 3, 0}});
  CHECK(time.next_due() == at(1200ms));
}

TEST_CASE("a period that is not a multiple of the tick does not drift in 100000 runs") {
  manual_timer time;
  const duration period = 333'400us;
  std::int64_t runs = 0, off_the_grid = 0, off_the_tick = 0, late_by_a_tick = 0;
  time.schedule_every(period, [&](const firing& f) {
    const duration due = ++runs * period;
    off_the_grid += f.due != at(due);
    off_the_tick += since_epoch(time) != std::chrono::ceil<std::chrono::milliseconds>(due);
    late_by_a_tick += f.lateness != since_epoch(time) - due || f.missed != 0;
  });
  CHECK(time.advance(100'000 * period) == 100'000);
  CHECK(runs == 100'000);
  CHECK(off_the_grid == 0);
  CHECK(off_the_tick == 0);
  CHECK(late_by_a_tick == 0);
}

TEST_CASE("after a stall a periodic task runs once, is told how many points it missed, and keeps the grid") {
  manual_timer time;
  std::vector<seen_run> seen;
  time.schedule_every(300ms, watching(time, seen));
  time.advance(300ms);
  time.elapse(650ms);
  CHECK(time.advance(0s) == 1);
  CHECK(time.next_due() == at(1200ms));
  time.advance(600ms);
  check(seen, {{300ms, 300ms, 1, 0}, {950ms, 600ms, 2, 1}, {1200ms, 1200ms, 3, 0}, {1500ms, 1500ms, 4, 0}});
  CHECK(time.stats().missed == 1);
}

TEST_CASE("a periodic task that is late by less than a period misses nothing and keeps the grid") {
  manual_timer time;
  std::vector<seen_run> seen;
  time.schedule_every(300ms, watching(time, seen));
  time.elapse(600ms - 1ns);
  time.advance(0s);
  time.advance(1ns);
  check(seen, {{600ms - 1ns, 300ms, 1, 0}, {600ms, 600ms, 2, 0}});
}

TEST_CASE("a periodic task that is late by exactly one period misses one point") {
  manual_timer time;
  std::vector<seen_run> seen;
  time.schedule_every(300ms, watching(time, seen));
  time.elapse(600ms);
  CHECK(time.advance(300ms) == 2);
  check(seen, {{600ms, 300ms, 1, 1}, {900ms, 900ms, 2, 0}});
}

TEST_CASE("after a stall of years a periodic task runs once") {
  manual_timer time(options{.tick = 1ns});
  std::vector<firing> runs;
  time.schedule_every(7ns, recording(runs));
  time.elapse(24h * 365 * 290);
  CHECK(time.advance(0s) == 1);
  REQUIRE(runs.size() == 1);
  const auto points = static_cast<std::uint64_t>(time.now().time_since_epoch() / 7ns);
  CHECK(runs[0].missed == points - 1);
  CHECK(time.stats().missed == points - 1);
  CHECK(time.advance(7ns) == 1);
}

TEST_CASE("a task that is slower than its period misses the points in between") {
  manual_timer time;
  std::vector<seen_run> seen;
  time.schedule_every(300ms, [&](const firing& f) {
    seen.push_back({since_epoch(time), f});
    if (f.run == 1) time.elapse(700ms);
  });
  time.advance(1500ms);
  check(seen, {{300ms, 300ms, 1, 0}, {1000ms, 600ms, 2, 1}, {1200ms, 1200ms, 3, 0}, {1500ms, 1500ms, 4, 0}});
}

TEST_CASE("a slow task makes other timers of its pass late by the time it takes") {
  manual_timer time;
  std::vector<seen_run> seen;
  time.schedule_after(100ms, [&] { time.elapse(250ms); });
  time.schedule_every(100ms, watching(time, seen));
  time.advance(400ms);
  check(seen, {{350ms, 100ms, 1, 2}, {400ms, 400ms, 2, 0}});
}

TEST_CASE("a task with a period shorter than the tick runs once a tick") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_every(300us, recording(runs));
  CHECK(time.advance(3ms) == 3);
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].due == at(300us));
  CHECK(runs[0].missed == 2);  // 600, 900
  CHECK(runs[1].due == at(1200us));
  CHECK(runs[1].missed == 2);  // 1500, 1800
  CHECK(runs[2].due == at(2100us));
  CHECK(runs[2].missed == 3);  // 2400, 2700, 3000
}

TEST_CASE("tasks with different periods each run as often as their period fits") {
  manual_timer time(options{.tick = 1ms, .buckets = 16});
  time.advance(50ms);
  const int primes[] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29, 31, 37, 41,
                        43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97};
  std::vector<int> runs(std::size(primes));
  for (std::size_t i = 0; i != runs.size(); ++i) time.schedule_every(primes[i] * 1ms, counting(runs[i]));
  time.advance(5272ms);
  for (std::size_t i = 0; i != runs.size(); ++i) CHECK(runs[i] == 5272 / primes[i]);
}

TEST_CASE("a period that is not positive is refused, with its value in the message") {
  manual_timer time;
  CHECK_THROWS_WITH_AS(time.schedule_every(0s, doing_nothing()), doctest::Contains("0s"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(time.schedule_every(-5s, doing_nothing()), doctest::Contains("-5s"),
                       std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_every(duration::min(), doing_nothing()), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_every(std::chrono::hours::min(), doing_nothing()), std::invalid_argument);
  CHECK(time.stats().scheduled == 0);
}

TEST_CASE("a timer that runs once is not periodic because the one before it in memory was") {
  manual_timer time;
  const timer_id before = time.schedule_every(1ms, [] {});
  REQUIRE(time.cancel(before) == cancel_result::cancelled);
  int runs = 0;
  const timer_id id = time.schedule_after(1ms, [&] { ++runs; }, {.run_on = {}, .name = "once"});
  REQUIRE(timer_id_access::parts(id).slot == timer_id_access::parts(before).slot);
  CHECK_FALSE(time.list().front().periodic);
  time.advance(10ms);
  CHECK(runs == 1);
  CHECK_FALSE(time.pending(id));
}

TEST_CASE("a periodic task stays pending during its runs, until it is cancelled") {
  manual_timer time;
  rondo::timer_id id;
  int runs = 0;
  id = time.schedule_every(1ms, [&] {
    ++runs;
    CHECK(time.pending(id));
    CHECK(time.pending() == 1);
  });
  time.advance(3ms);
  CHECK(runs == 3);
  CHECK(time.cancel(id) == cancel_result::cancelled);
  CHECK_FALSE(time.pending(id));
  time.advance(1s);
  CHECK(runs == 3);
}

}  // namespace scheduler_periodic
