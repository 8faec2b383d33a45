// Rescheduling one-shots.
#include "scheduler/virtual_time.hpp"

namespace scheduler_reschedule {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a pending timer that is moved fires only at the new time") {
  manual_timer time;
  std::vector<firing> runs;
  const auto id = time.schedule_after(100ms, recording(runs));
  time.advance(10ms);
  duration due{};
  SUBCASE("earlier") { due = 15ms; }
  SUBCASE("later") { due = 300ms; }
  SUBCASE("into the middle of a tick") { due = 49'300us; }
  SUBCASE("to the same time") { due = 100ms; }
  SUBCASE("far away") { due = 1000h; }
  CHECK(time.reschedule_at(id, at(due)));
  CHECK(time.pending() == 1);
  CHECK(time.next_due() == at(std::chrono::ceil<std::chrono::milliseconds>(due)));
  time.advance(2000h);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].id == id);
  CHECK(runs[0].due == at(due));
  CHECK(runs[0].run == 1);
  CHECK(time.stats().scheduled == 1);
}

TEST_CASE("the delay of reschedule_after() counts from the call") {
  manual_timer time;
  const auto id = time.schedule_after(100ms, doing_nothing());
  time.advance(30ms);
  CHECK(time.reschedule_after(id, 100ms));
  CHECK(time.advance(100ms - 1ns) == 0);
  CHECK(time.advance(1ns) == 1);
}

TEST_CASE("a timer that is not pending cannot be moved") {
  manual_timer time;
  timer_id ran, cancelled, inside;
  ran = time.schedule_after(1ms, doing_nothing());
  inside = time.schedule_after(1ms, [&] {
    CHECK_FALSE(time.reschedule_after(inside, 1ms));
    CHECK_FALSE(time.reschedule_at(inside, at(1s)));
  });
  cancelled = time.schedule_after(1ms, doing_nothing());
  time.cancel(cancelled);
  time.advance(1ms);
  for (const timer_id id : {ran, cancelled, inside, timer_id{}}) {
    CHECK_FALSE(time.reschedule_after(id, 1ms));
    CHECK_FALSE(time.reschedule_at(id, at(1s)));
  }
  CHECK(time.advance(1h) == 0);
}

TEST_CASE("a timer can be moved to never and back") {
  manual_timer time;
  int runs = 0;
  const auto id = time.schedule_after(1ms, counting(runs));
  CHECK(time.reschedule_after(id, duration::max()));
  CHECK_FALSE(time.next_due().has_value());
  time.advance(1h);
  CHECK(time.pending(id));
  CHECK(time.reschedule_after(id, duration::max()));
  CHECK(time.reschedule_after(id, 2ms));
  CHECK(time.next_due() == time.now() + 2ms);
  CHECK(time.advance(2ms) == 1);
  CHECK(runs == 1);
}

TEST_CASE("a timer that is moved again and again just ahead of the driver does not fire") {
  manual_timer time(options{.buckets = 256});
  int runs = 0;
  const auto id = time.schedule_after(258ms, counting(runs));
  for (int i = 0; i != 1000; ++i) {
    time.advance(257ms);
    CHECK(time.reschedule_after(id, 258ms));
  }
  CHECK(runs == 0);
  time.advance(258ms);
  CHECK(runs == 1);
}

TEST_CASE("a task can be moved out of the pass in progress") {
  manual_timer time;
  journal ran;
  timer_id moved;
  time.schedule_after(1ms, [&] {
    ran.add("first");
    CHECK(time.reschedule_after(moved, 5ms));
  });
  moved = time.schedule_after(1ms, ran.noting("moved"));
  time.schedule_after(3ms, ran.noting("third"));
  CHECK(time.advance(5ms) == 2);
  CHECK(time.advance(1ms) == 1);
  CHECK(ran.take() == "first third moved");
}

TEST_CASE("a timer that is due and has not run can be moved") {
  manual_timer time;
  int runs = 0;
  const auto id = time.schedule_after(1ms, counting(runs));
  time.elapse(10ms);
  CHECK(time.reschedule_after(id, 1ms));
  CHECK(time.advance(0s) == 0);
  CHECK(time.advance(1ms) == 1);
}

TEST_CASE("moving a timer takes back a job that has not started") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  std::vector<firing> runs;
  const auto id = time.schedule_after(1ms, recording(runs));
  time.advance(1ms);
  REQUIRE(jobs.size() == 1);
  CHECK(time.reschedule_after(id, 5ms));
  CHECK(time.pending(id));
  CHECK(time.next_due() == at(6ms));

  SUBCASE("the old job does nothing when called") { jobs[0](); }
  SUBCASE("the old job is not rejected when dropped") { jobs[0] = job(); }
  CHECK(runs.empty());
  CHECK(time.pending(id));
  time.advance(5ms);
  REQUIRE(jobs.size() == 2);
  jobs[1]();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == at(6ms));
  CHECK(runs[0].run == 1);
  jobs.clear();
  CHECK(time.stats().rejected == 0);
  CHECK(time.stats().fired == 1);
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("the executor may move or cancel the timer whose job it has just got") {
  manual_timer* timer = nullptr;
  timer_id id;
  int handed = 0;
  bool cancels = false;
  manual_timer time(options{.run_on = [&](job j) {
    if (++handed == 1 && cancels) CHECK(timer->cancel(id) == cancel_result::cancelled);
    if (handed == 1 && !cancels) CHECK(timer->reschedule_after(id, 5ms));
    j();
  }});
  timer = &time;
  int runs = 0;
  id = time.schedule_after(1ms, counting(runs));
  SUBCASE("move") {
    time.advance(5ms);
    CHECK(runs == 0);
    time.advance(1ms);
    CHECK(runs == 1);
  }
  SUBCASE("cancel") {
    cancels = true;
    time.advance(1h);
    CHECK(runs == 0);
  }
  CHECK(time.stats().rejected == 0);
  CHECK(adds_up(time.stats()));
}

}  // namespace scheduler_reschedule
