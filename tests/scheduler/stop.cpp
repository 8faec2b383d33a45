// stop(): which timers it hands back, in which order, and what no longer happens.
#include <algorithm>
#include <stdexcept>

#include "scheduler/virtual_time.hpp"

namespace scheduler_stop {

using namespace rondo;
using namespace rondo::test;

/// Runs the tasks of the list by hand, in order, and returns what they have added to the journal.
std::string run_all(std::vector<unfired>& list, journal& ran) {
  for (unfired& u : list) u.work();
  return ran.take();
}

TEST_CASE(
    "stop() returns timers in due order, those of one tick in the order of scheduling, those never due "
    "last") {
  for (const std::size_t buckets : {1U, 8U, 512U}) {
    manual_timer time(options{.buckets = buckets});
    journal ran;
    time.schedule_after(std::chrono::hours::max(), ran.noting("never"));
    time.schedule_after(30ms, ran.noting("30"));
    time.schedule_after(2'900us, ran.noting("3a"));
    time.schedule_after(1ms, ran.noting("1"));
    const auto moved = time.schedule_after(3ms, ran.noting("3c"));
    time.schedule_after(2'100us, ran.noting("3b"));
    time.schedule_every(500h, ran.noting("500h"));
    time.schedule_after(11ms, ran.noting("11"));
    time.cancel(time.schedule_after(5ms, ran.noting("cancelled")));
    time.reschedule_after(moved, 3ms);
    auto list = time.stop();
    CHECK(run_all(list, ran) == "1 3a 3b 3c 11 30 500h never");
    CHECK(time.stats().returned == 8);
    CHECK(time.stats().fired == 0);
    CHECK(adds_up(time.stats()));
  }
}

TEST_CASE("stop() hands back each timer with its id and its exact deadline") {
  manual_timer time;
  const auto a = time.schedule_after(1'300us, doing_nothing());
  const auto b = time.schedule_every(2'700us, doing_nothing());
  const auto c = time.schedule_at(at(-3ms), doing_nothing());
  const auto list = time.stop();
  REQUIRE(list.size() == 3);
  CHECK(list[0].id == c);
  CHECK(list[0].due == at(-3ms));
  CHECK(list[1].id == a);
  CHECK(list[1].due == at(1'300us));
  CHECK(list[2].id == b);
  CHECK(list[2].due == at(2'700us));
}

TEST_CASE("stop() hands back many timers of one tick in the order of scheduling") {
  manual_timer time(options{.buckets = 4});
  constexpr std::size_t many = 2000;
  std::vector<timer_id> ids;
  for (std::size_t i = 0; i != many; ++i)
    ids.push_back(time.schedule_after(i % 2 == 0 ? 100ms : 1000ms, doing_nothing()));
  const auto list = time.stop();
  REQUIRE(list.size() == many);
  bool in_order = true;
  for (std::size_t i = 0; i != many / 2; ++i)
    in_order = in_order && list[i].id == ids[2 * i] && list[many / 2 + i].id == ids[2 * i + 1];
  CHECK(in_order);
}

TEST_CASE("stop() also hands back timers that are due and have not run") {
  manual_timer time;
  time.schedule_after(1ms, doing_nothing());
  time.elapse(1h);
  CHECK(time.stop().size() == 1);
  CHECK(time.advance(1h) == 0);
}

TEST_CASE("stop() hands back jobs that have not started with their deadlines, in the order of submission") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  journal ran;
  time.schedule_after(5ms, ran.noting("5"));
  time.schedule_after(2ms, ran.noting("2a"));
  time.schedule_after(1'500us, ran.noting("2b"));
  time.schedule_after(1ms, ran.noting("started"));
  time.schedule_after(1ms, ran.noting("dropped"));
  time.advance(2ms);
  REQUIRE(jobs.size() == 4);
  jobs[0]();
  jobs[1] = job();
  CHECK(ran.take() == "started");
  auto list = time.stop();
  REQUIRE(list.size() == 3);
  CHECK(list[1].due == at(1'500us));
  CHECK(run_all(list, ran) == "2a 2b 5");
  for (job& j : jobs) j();
  CHECK(ran.take() == "");
}

TEST_CASE("stop() hands back a live periodic task once") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto id = time.schedule_every(100ms, doing_nothing());
  duration due{};
  SUBCASE("with its next deadline") {
    time.advance(100ms);
    jobs.at(0)();
    due = 200ms;
  }
  SUBCASE("with the deadline of its job that has not started") {
    time.advance(350ms);
    due = 100ms;
  }
  SUBCASE("with the time it was moved to") {
    time.advance(100ms);
    time.reschedule_at(id, at(777ms));
    due = 777ms;
  }
  const auto list = time.stop();
  REQUIRE(list.size() == 1);
  CHECK(list[0].id == id);
  CHECK(list[0].due == at(due));
  CHECK(time.stats().returned == 1);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("stop() is idempotent, and all calls stay legal after it") {
  manual_timer time;
  const auto id = time.schedule_after(1ms, doing_nothing());
  CHECK(time.stop().size() == 1);
  CHECK(time.stop().empty());
  CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), rondo::stopped_error);
  CHECK_THROWS_AS(time.schedule_at(at(1ms), doing_nothing()), rondo::stopped_error);
  CHECK_THROWS_AS(time.schedule_every(1ms, doing_nothing()), rondo::stopped_error);
  CHECK_THROWS_AS(time.schedule_after(std::chrono::hours::max(), doing_nothing()), rondo::stopped_error);
  CHECK_FALSE(time.reschedule_after(id, 1ms));
  CHECK_FALSE(time.pending(id));
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.cancel_and_wait(id) == cancel_result::gone);
  CHECK(time.pending() == 0);
  CHECK_FALSE(time.next_due().has_value());
  CHECK(time.advance(5ms) == 0);
  CHECK(since_epoch(time) == 5ms);
  CHECK(time.advance_to_next() == 0);
  CHECK(time.stats().scheduled == 1);
}

TEST_CASE("stop() works on a scheduler without timers") {
  manual_timer time;
  CHECK(time.stop().empty());
}

TEST_CASE("stop() inside a task hands back the rest of the pass, which does not run") {
  manual_timer time;
  journal ran;
  std::vector<unfired> list;
  time.schedule_after(2ms, ran.noting("2"));
  time.schedule_after(1ms, ran.noting("before"));
  time.schedule_after(1ms, [&] {
    ran.add("stop");
    list = time.stop();
    CHECK(time.pending() == 0);
    CHECK_FALSE(time.next_due().has_value());
    CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), rondo::stopped_error);
    CHECK(time.stop().empty());
  });
  time.schedule_after(1ms, ran.noting("after"));
  time.schedule_every(1ms, ran.noting("often"));
  CHECK(time.advance(1h) == 2);
  CHECK(ran.take() == "before stop");
  CHECK(run_all(list, ran) == "after often 2");
  CHECK(time.stats().returned == 3);
  CHECK(time.stats().completed == 2);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("zero delays that a task schedules before it calls stop() come back after those of the pass") {
  manual_timer time;
  journal ran;
  std::vector<unfired> list;
  time.schedule_after(1ms, [&] {
    time.schedule_after(0s, ran.noting("zero"));
    list = time.stop();
  });
  time.schedule_after(1ms, ran.noting("same"));
  time.advance(1ms);
  CHECK(run_all(list, ran) == "same zero");
}

TEST_CASE("a periodic task that stops its scheduler has had its last run") {
  manual_timer time;
  int runs = 0;
  timer_id id;
  id = time.schedule_every(1ms, [&](const firing& f) {
    ++runs;
    if (f.run < 3) return;
    CHECK(time.stop().empty());  // it is running, so it is not handed back
    CHECK_FALSE(time.pending(id));
    CHECK(time.cancel(id) == cancel_result::running);
  });
  time.advance(1h);
  CHECK(runs == 3);
  CHECK(time.stats().completed == 1);
  CHECK(time.stats().returned == 0);
  CHECK(time.stats().cancelled == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("stop() inside the executor hands back the timer whose job it was given") {
  manual_timer* timer = nullptr;
  std::vector<unfired> list;
  manual_timer time(options{.run_on = [&](job j) {
    list = timer->stop();
    j();
  }});
  timer = &time;
  journal ran;
  time.schedule_after(1ms, ran.noting("a"));
  time.schedule_after(1ms, ran.noting("b"));
  for (int i = 0; i != 1000; ++i)  // so that the number of the job is greater than that of b's wait
    time.cancel(time.schedule_after(1ms, doing_nothing()));
  time.advance(1h);
  CHECK(ran.take() == "");
  CHECK(run_all(list, ran) == "a b");
  CHECK(time.stats().rejected == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("stop() inside on_error hands back the remaining timers") {
  manual_timer* timer = nullptr;
  std::size_t returned = 0;
  manual_timer time(
      options{.on_error = [&](std::exception_ptr, const firing&) { returned = timer->stop().size(); }});
  timer = &time;
  time.schedule_every(1ms, [] { throw 1; });
  time.schedule_after(1h, doing_nothing());
  CHECK(time.advance(10h) == 1);
  CHECK(returned == 1);
  CHECK(time.stats().completed == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("timers that are never due come back in the order in which the calls took effect") {
  manual_timer time;
  journal ran;
  time.cancel(time.schedule_after(1ms, doing_nothing()));  // its slot is used again
  const auto moved = time.schedule_after(1ms, ran.noting("moved"));
  time.schedule_after(duration::max(), ran.noting("a"));
  time.schedule_every(duration::max(), ran.noting("b"));
  const auto back = time.schedule_after(duration::max(), ran.noting("moved away and back"));
  time.schedule_after(duration::max(), ran.noting("c"));
  CHECK(time.reschedule_after(back, 1ms));
  CHECK(time.reschedule_after(moved, duration::max()));
  CHECK(time.reschedule_after(back, duration::max()));
  auto list = time.stop();
  CHECK(run_all(list, ran) == "a b c moved moved away and back");
}

TEST_CASE("late runs of a pass come back in the order in which they would have taken their turn") {
  manual_timer time;
  std::vector<timer_id> ids;
  std::vector<unfired> list;
  for (int i = 0; i != 8; ++i)
    ids.push_back(time.schedule(every(10ms).on_missed(missed_runs::burst), [&, i](const firing& f) {
      // It is for the next pass, so it comes after late runs of its tick that begin to wait later.
      if (i == 0 && f.run == 2) ids.push_back(time.schedule_at(at(30ms), doing_nothing()));
      if (i == 2 && f.run == 2) list = time.stop();
    }));
  time.elapse(45ms);
  time.advance(0s);
  std::string order;
  for (const unfired& u : list)
    order += std::to_string(std::find(ids.begin(), ids.end(), u.id) - ids.begin()) + '@' +
             std::to_string(u.due.time_since_epoch() / 1ms) + ' ';
  CHECK(order == "3@20 4@20 5@20 6@20 7@20 0@30 1@30 8@30 ");  // timer 2 is running
}

TEST_CASE("timers with jobs come back in the order of their oldest jobs") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto a = time.schedule(every(10ms).on_overlap(overlapping_runs::allow), doing_nothing());
  const auto b = time.schedule(every(10ms).times(1), doing_nothing());
  time.advance(20ms);  // a, b, and a again
  const auto rest = time.stop();
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].id == a);
  CHECK(rest[1].id == b);
}

TEST_CASE(
    "a timer with a job comes back by the deadline of that run, even if others of a burst were missed") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  time.schedule(every(10ms).on_missed(missed_runs::burst, 1), doing_nothing());
  time.schedule_after(35ms, doing_nothing());
  time.elapse(55ms);
  time.advance(0s);
  const auto rest = time.stop();
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].due == at(35ms));
  CHECK(rest[1].due == at(50ms));
}

}  // namespace scheduler_stop
