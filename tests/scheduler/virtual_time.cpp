// manual_timer: advance(), advance_to_next(), elapse().
#include "scheduler/virtual_time.hpp"

#include <stdexcept>

namespace scheduler_virtual_time {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("virtual time starts at the given time, and advance(d) ends at now + d") {
  manual_timer time({}, at(42s));
  CHECK(time.now() == at(42s));
  CHECK(time.advance(0s) == 0);
  CHECK(time.now() == at(42s));
  CHECK(time.advance(1ns) == 0);
  CHECK(time.now() == at(42s + 1ns));
  manual_timer plain;
  CHECK(plain.now() == time_point{});
}

TEST_CASE("advance() returns how many tasks it ran, including those that tasks added") {
  manual_timer time;
  time.schedule_after(1ms, [&] {
    time.schedule_after(1ms, doing_nothing());  // due at 2
    time.schedule_after(0s, doing_nothing());
    time.schedule_after(9ms, doing_nothing());  // due at 10
  });
  time.schedule_every(2ms, doing_nothing());
  CHECK(time.advance(9ms) == 7);
  CHECK(since_epoch(time) == 9ms);
  CHECK(time.advance(1ms) == 2);
}

TEST_CASE("advance() returns how many runs it submitted") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  for (int i = 0; i != 5; ++i) time.schedule_after(1ms, doing_nothing());
  CHECK(time.advance(1ms) == 5);
  CHECK(time.advance(1ms) == 0);
}

TEST_CASE("advance_to_next() moves to the next due tick and runs everything that is due then") {
  manual_timer time;
  journal ran;
  time.schedule_after(1'200us, [&] {
    ran.add("a");
    time.schedule_after(0s, ran.noting("c"));
    time.schedule_after(1ns, ran.noting("d"));
  });
  time.schedule_after(1'900us, ran.noting("b"));
  CHECK(time.advance_to_next() == 3);
  CHECK(since_epoch(time) == 2ms);
  CHECK(ran.take() == "a b c");
  CHECK(time.advance_to_next() == 1);
  CHECK(since_epoch(time) == 3ms);
  CHECK(time.advance_to_next() == 0);
  CHECK(since_epoch(time) == 3ms);
}

TEST_CASE("advance_to_next() does not go back in time for overdue timers") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  time.schedule_after(2ms, counting(runs));
  time.elapse(10ms + 1ns);
  CHECK(time.advance_to_next() == 2);
  CHECK(since_epoch(time) == 10ms + 1ns);
}

TEST_CASE("elapse() runs nothing; timers that became due run late in the next advance(), even advance(0)") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_after(3ms, recording(runs));
  time.schedule_after(1ms, recording(runs));
  time.elapse(10ms);
  CHECK(since_epoch(time) == 10ms);
  CHECK(runs.empty());
  CHECK(time.next_due() == at(1ms));
  CHECK(time.advance(0s) == 2);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].lateness == 9ms);
  CHECK(runs[1].lateness == 7ms);
  time.elapse(0s);
  CHECK(since_epoch(time) == 10ms);
}

TEST_CASE("elapse() inside a task makes it a slow task") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_after(1ms, [&] {
    time.elapse(100ms);
    CHECK(since_epoch(time) == 101ms);
  });
  time.schedule_after(2ms, recording(runs));
  CHECK(time.advance(50ms) == 2);
  CHECK(since_epoch(time) == 101ms);  // time does not go back to where advance() would have ended
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].lateness == 99ms);
}

TEST_CASE("a timer that a slow task makes due beyond the end of advance() waits for the next call") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, [&] { time.elapse(100ms); });
  time.schedule_after(60ms, counting(runs));
  CHECK(time.advance(50ms) == 1);
  CHECK(runs == 0);
  CHECK(time.advance(0s) == 1);
}

TEST_CASE("negative steps of virtual time are refused") {
  manual_timer time({}, at(5ms));
  CHECK_THROWS_WITH_AS(time.advance(-1ns), doctest::Contains("-1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(time.elapse(-7ms), doctest::Contains("-7000000"), std::invalid_argument);
  CHECK_THROWS_AS(time.advance(duration::min()), std::invalid_argument);
  CHECK_THROWS_AS(time.elapse(std::chrono::hours::min()), std::invalid_argument);
  CHECK(time.now() == at(5ms));
}

TEST_CASE("virtual time stays at the end of the clock") {
  manual_timer time({}, time_point::max() - 5ms);
  time.advance(1h);
  CHECK(time.now() == time_point::max());
  time.elapse(1h);
  CHECK(time.now() == time_point::max());
}

TEST_CASE("driving from inside is refused, and does no harm") {
  manual_timer time;
  int refused = 0, runs = 0;
  const auto drive = [&] {
    CHECK_THROWS_AS(time.advance(1ms), std::logic_error);
    CHECK_THROWS_AS(time.advance(0s), std::logic_error);
    CHECK_THROWS_AS(time.advance_to_next(), std::logic_error);
    ++refused;
  };
  time.schedule_after(1ms, drive);
  time.schedule_after(1ms, counting(runs));
  time.schedule_after(1ms, [held = std::shared_ptr<void>(nullptr, [&](void*) { drive(); })] {});
  CHECK(time.advance(1ms) == 3);
  CHECK(refused == 2);
  CHECK(runs == 1);
  CHECK(since_epoch(time) == 1ms);
}

TEST_CASE("driving from inside the executor is refused") {
  manual_timer* timer = nullptr;
  int refused = 0;
  manual_timer time(options{.run_on = [&](job j) {
    CHECK_THROWS_AS(timer->advance(1ms), std::logic_error);
    ++refused;
    j();
  }});
  timer = &time;
  time.schedule_after(1ms, doing_nothing());
  CHECK(time.advance(1ms) == 1);
  CHECK(refused == 1);
}

TEST_CASE("the same program always gives the same runs, to the nanosecond") {
  const auto program = [] {
    manual_timer time(options{.tick = 7ns, .buckets = 16});
    std::string seen;
    unsigned state = 12345;
    for (int i = 0; i != 2000; ++i) {
      state = state * 1664525U + 1013904223U;
      time.schedule_after(std::chrono::nanoseconds(state % 100'000), [&seen, &time, i] {
        seen += std::to_string(i) + '@' + std::to_string(since_epoch(time).count()) + ' ';
      });
    }
    time.advance(1s);
    return seen;
  };
  CHECK(program() == program());
}

}  // namespace scheduler_virtual_time
