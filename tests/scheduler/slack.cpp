// Timers that may be late, so that they share wake-ups.
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rondo/keyed_timers.hpp>
#include <rondo/timer_scope.hpp>

#include "scheduler/virtual_time.hpp"

namespace scheduler_slack {

using namespace rondo;
using namespace rondo::test;

/// When a one-shot with that slack runs, with ticks of 1 ms from the epoch.
duration taken(duration due, duration slack) {
  manual_timer time;
  const auto id = time.schedule_at(at(due), doing_nothing(), {.slack = slack});
  CHECK(time.due(id) == at(due));
  return time.next_due().value_or(time_point::max()).time_since_epoch();
}

TEST_CASE("a timer takes the tick in its slack that the greatest power of two divides") {
  CHECK(taken(1001ms, 0ms) == 1001ms);
  CHECK(taken(1001ms, 1ms) == 1002ms);
  CHECK(taken(1001ms, 6ms) == 1004ms);
  CHECK(taken(1001ms, 7ms) == 1008ms);
  CHECK(taken(1001ms, 23ms) == 1024ms);
  CHECK(taken(1001ms, 10s) == 8192ms);
  CHECK(taken(1024ms, 500ms) == 1024ms);
  CHECK(taken(1024ms, 1024ms) == 2048ms);
}

TEST_CASE("a tick counts if it begins in the slack, and slack that reaches none has no effect") {
  CHECK(taken(1000ms + 1ns, 999'998ns) == 1001ms);
  CHECK(taken(1001ms + 1ns, 999'999ns) == 1002ms);
  CHECK(taken(1001ms + 1ns, 1ns) == 1002ms);
  CHECK(taken(1022ms + 1ns, 1'999'998ns) == 1023ms);
  CHECK(taken(1022ms + 1ns, 1'999'999ns) == 1024ms);
}

TEST_CASE("ticks are counted from the scheduler's start") {
  manual_timer time({.tick = 10ms}, at(-13ms));
  time.schedule_after(31ms, doing_nothing(), {.slack = 20ms});
  CHECK(time.next_due() == at(-13ms + 40ms));
  time.advance(100ms);
  time.schedule_at(at(-13ms - 75ms), doing_nothing(), {.slack = 40ms});
  CHECK(time.next_due() == at(-13ms - 40ms));
}

TEST_CASE("the deadline stays what it is, and the lateness counts from it") {
  manual_timer time;
  std::vector<firing> runs;
  const auto id = time.schedule_at(at(1001ms), recording(runs), {.slack = 10ms});
  CHECK(time.due(id) == at(1001ms));
  CHECK(time.list().at(0).due == at(1001ms));
  time.advance(2s);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == at(1001ms));
  CHECK(runs[0].lateness == 7ms);
}

TEST_CASE("a deadline that has passed may still wait for its tick") {
  manual_timer time({}, at(0ms));
  time.advance(1001ms);
  time.schedule_after(0ms, doing_nothing(), {.slack = 10ms});
  CHECK(time.next_due() == at(1008ms));
  time.schedule_at(at(500ms), doing_nothing(), {.slack = 20ms});
  CHECK(time.next_due() == at(512ms));
  CHECK(time.advance(0s) == 1);
  CHECK(time.advance(7ms) == 1);
}

TEST_CASE("a timer that is never due stays so, and slack may be the longest duration") {
  CHECK(taken(duration::max(), 1s) == duration::max());
  manual_timer time;
  time.schedule_after(duration::max(), doing_nothing(), {.slack = 1s});
  CHECK(time.next_due() == std::nullopt);
  CHECK(taken(1ms, duration::max()) == duration(std::int64_t{1} << 43) * 1'000'000);
}

TEST_CASE("timers with slack share a tick, in the order in which they were scheduled") {
  manual_timer time;
  journal j;
  time.schedule_at(at(1006ms), j.noting("a"), {.slack = 10ms});
  time.schedule_at(at(1001ms), j.noting("b"), {.slack = 10ms});
  time.schedule_at(at(1008ms), j.noting("c"));
  CHECK(time.advance_to_next() == 3);
  CHECK(time.now() == at(1008ms));
  CHECK(j.take() == "a b c");
}

TEST_CASE("the grid of a periodic timer does not move, and late runs miss nothing") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_every(100ms, recording(runs), {.slack = 20ms});
  time.advance(1s);
  REQUIRE(runs.size() == 9);  // the tenth comes at 1008 ms
  for (std::size_t i = 0; i != runs.size(); ++i) {
    CHECK(runs[i].due == at(static_cast<int>(i + 1) * 100ms));
    CHECK(runs[i].lateness <= 20ms);
    CHECK(runs[i].missed == 0);
  }
  CHECK(runs[0].lateness == 12ms);  // 112 is 7 * 16
  CHECK(time.next_due() == at(1008ms));
}

TEST_CASE("points that pass within a slack longer than the period are missed") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_every(10ms, recording(runs), {.slack = 100ms});
  time.advance_to_next();
  REQUIRE(runs.size() == 1);
  CHECK(time.now() == at(64ms));
  CHECK(runs[0].due == at(10ms));
  CHECK(runs[0].missed == 5);
}

TEST_CASE("after_completion() and rescheduled timers keep their slack") {
  manual_timer time;
  const auto id = time.schedule(after_completion(1s), doing_nothing(), {.slack = 50ms});
  CHECK(time.next_due() == at(1024ms));
  time.advance_to_next();
  CHECK(time.due(id) == at(2024ms));
  CHECK(time.next_due() == at(2048ms));
  CHECK(time.reschedule_at(id, at(3s)));
  CHECK(time.next_due() == at(3008ms));
  const auto once = time.schedule_after(1h, doing_nothing(), {.slack = 50ms});
  CHECK(time.reschedule_at(once, at(2500ms)));
  CHECK(time.next_due() == at(2528ms));
}

TEST_CASE("members of scopes and of keyed timers have slack, too") {
  manual_timer time;
  timer_scope scope(time);
  keyed_timers<int> keys(time);
  scope.schedule_at(at(1001ms), doing_nothing(), {.slack = 10ms});
  keys.set_at(1, at(1002ms), doing_nothing(), {.slack = 10ms});
  keys.set(2, every(1003ms), doing_nothing(), {.slack = 10ms});
  CHECK(time.advance_to_next() == 3);
  CHECK(time.now() == at(1008ms));
  keys.set_after(3, 1h, doing_nothing(), {.slack = 10ms});
  CHECK(keys.reschedule_after(3, 1ms));
  CHECK(time.next_due() == at(1016ms));
}

TEST_CASE("a run that is submitted with slack is handed back in the order of its tick") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  time.schedule_at(at(1001ms), doing_nothing(), {.name = "late", .slack = 10ms});
  time.schedule_at(at(1002ms), doing_nothing(), {.name = "on time"});
  time.advance(1s + 10ms);
  std::string order;
  for (const unfired& u : time.stop()) order += u.name + ", ";
  CHECK(order == "on time, late, ");
}

TEST_CASE("negative slack is refused, and nothing is scheduled") {
  manual_timer time;
  keyed_timers<int> keys(time);
  const auto message = "rondo: slack must not be negative, but is -1 ns";
  CHECK_THROWS_WITH_AS(time.schedule_after(1s, doing_nothing(), {.slack = -1ns}), message,
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(keys.set_after(1, 1s, doing_nothing(), {.slack = -1ns}), message,
                       std::invalid_argument);
  CHECK(time.pending() == 0);
  CHECK(time.stats().scheduled == 0);
  CHECK_FALSE(keys.contains(1));
}

TEST_CASE("options are made without saying their slack") {
  CHECK(timer_options{.name = "a"}.slack == 0ns);
  CHECK(timer_options(on([](job) {})).slack == 0ns);
}

}  // namespace scheduler_slack
