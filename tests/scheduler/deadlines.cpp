// When a task runs, and in which order.
#include "scheduler/virtual_time.hpp"

namespace scheduler_deadlines {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a task runs at the first tick at or after its deadline, not a nanosecond earlier") {
  struct {
    duration tick, delay, runs_after;
  } const rows[] = {
      {1ms, 1ms, 1ms},          {1ms, 1ns, 1ms},
      {1ms, 999'999ns, 1ms},    {1ms, 1'000'001ns, 2ms},
      {1ms, 512ms, 512ms},      {1ms, 1000h, 1000h},
      {7ns, 8ns, 14ns},         {10s, 1ms, 10s},
      {10s, 10'000'001us, 20s}, {1ns, 123'456ns, 123'456ns},
      {333us, 1ms, 1332us},
  };
  for (const duration start : {duration(0ns), duration(17ns), duration(-5ns), duration(123'456'789'012ns)}) {
    for (const auto& row : rows) {
      CAPTURE(row.tick);
      CAPTURE(row.delay);
      CAPTURE(start);
      manual_timer time(options{.tick = row.tick}, time_point(start));  // ticks count from the start
      int runs = 0;
      time.schedule_after(row.delay, counting(runs));
      CHECK(time.next_due() == time_point(start + row.runs_after));
      CHECK(time.advance(row.runs_after - 1ns) == 0);
      CHECK(runs == 0);
      CHECK(time.advance(1ns) == 1);
      CHECK(runs == 1);
    }
  }
}

TEST_CASE("advancing by less than a tick adds up") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  for (int quarter = 0; quarter != 3; ++quarter) CHECK(time.advance(250us) == 0);
  CHECK(time.advance(250us) == 1);
}

TEST_CASE("a deadline later in the current tick waits for the next tick") {
  manual_timer time;
  time.advance(300us);
  int runs = 0;
  time.schedule_after(1ns, counting(runs));
  CHECK(time.next_due() == at(1ms));
  CHECK(time.advance(700us - 1ns) == 0);
  CHECK(time.advance(1ns) == 1);
}

TEST_CASE(
    "a deadline that is not later than now belongs to the current tick, or to its own if that is older") {
  manual_timer time;
  journal ran;
  time.advance(10'500us);
  time.schedule_at(at(10'500us), ran.noting("10.5"));
  time.schedule_at(at(10'200us), ran.noting("10.2"));
  time.schedule_at(at(9'500us), ran.noting("9.5"));  // rounded up: tick 10
  time.schedule_at(at(9ms), ran.noting("9"));
  time.schedule_at(at(-4ms), ran.noting("-4"));
  time.schedule_at(at(8'001us), ran.noting("8.001"));
  CHECK(time.next_due() == at(-4ms));
  CHECK(time.advance(0s) == 6);
  CHECK(ran.take() == "-4 9 8.001 10.5 10.2 9.5");
}

/// Schedules tasks out of order, and returns the expected order of their runs.
std::string schedule_in_disorder(manual_timer& time, journal& ran) {
  int serial = 0;
  for (const int tick : {5, 3, 60, 6, 6, 1, 1, 2, 700, 9, 4, 60, 8, 0, 3})
    time.schedule_after(tick * 1ms, ran.noting(std::to_string(tick) + "/" + std::to_string(serial++)));
  return "0/13 1/5 1/6 2/7 3/1 3/14 4/10 5/0 6/3 6/4 8/12 9/9 60/2 60/11 700/8";
}

TEST_CASE("earlier ticks run first, tasks of the same tick in the order of scheduling") {
  for (const std::size_t buckets : {1U, 2U, 8U, 512U}) {
    manual_timer time(options{.buckets = buckets});
    journal ran;
    const std::string in_order = schedule_in_disorder(time, ran);
    CHECK(time.advance(1s) == 15);
    CHECK(ran.take() == in_order);
  }
}

TEST_CASE("the order of tasks is the same in one jump of time") {
  for (const std::size_t buckets : {1U, 2U, 8U, 512U}) {
    manual_timer time(options{.buckets = buckets});
    journal ran;
    const std::string in_order = schedule_in_disorder(time, ran);
    time.elapse(1s);
    CHECK(time.advance(0s) == 15);
    CHECK(ran.take() == in_order);
  }
}

TEST_CASE("tasks of one tick run in the order of scheduling, whatever the order of their deadlines") {
  manual_timer time;
  journal ran;
  time.schedule_after(4'900us, ran.noting("a"));
  time.schedule_after(4'100us, ran.noting("b"));
  time.schedule_after(5ms, ran.noting("c"));
  time.advance(5ms);
  CHECK(ran.take() == "a b c");
}

TEST_CASE("a rescheduled task counts as just scheduled") {
  manual_timer time;
  journal ran;
  const auto a = time.schedule_after(5ms, ran.noting("a"));
  time.schedule_after(5ms, ran.noting("b"));
  time.schedule_after(5ms, ran.noting("c"));
  CHECK(time.reschedule_after(a, 5ms));
  time.advance(5ms);
  CHECK(ran.take() == "b c a");
}

TEST_CASE("now() is the tick while its tasks run, and the end of the advance afterwards") {
  manual_timer time;
  std::vector<duration> seen;
  for (const auto delay : {1'500us, 2ms + 0us, 40ms + 1us})
    time.schedule_after(delay, [&] { seen.push_back(since_epoch(time)); });
  CHECK(time.advance(100'300us) == 3);
  CHECK(seen == std::vector<duration>{2ms, 2ms, 41ms});
  CHECK(since_epoch(time) == 100'300us);
}

TEST_CASE("a timer fires once, even if the wheel turns again and again") {
  manual_timer time(options{.buckets = 8});
  int runs = 0;
  for (const int tick : {8, 9, 15, 16, 23, 31, 37}) time.schedule_after(tick * 1ms, counting(runs));
  const int expected[] = {0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 3, 4, 4, 4, 4, 4,
                          4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7};
  for (const int so_far : expected) {
    time.advance(1ms);
    CHECK(runs == so_far);
  }
  CHECK(time.advance(1h) == 0);
}

}  // namespace scheduler_deadlines
