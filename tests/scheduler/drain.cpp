// drain(), the gentle way to end a scheduler, on virtual time.
#include <thread>

#include "scheduler/virtual_time.hpp"

namespace scheduler_drain {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("drain() lets one-shots fire and ends periodic timers") {
  manual_timer time;
  journal what;
  const auto token = std::make_shared<int>(0);
  time.schedule_after(1s, what.noting("one"));
  time.schedule_every(300ms, [&what, token] { what.add("often"); });
  time.schedule_after(2s, what.noting("two"));
  time.advance(300ms);
  CHECK(time.drain(10s));
  CHECK(what.take() == "often one two");
  CHECK(since_epoch(time) == 2s);  // no longer than needed
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 0);
  CHECK(time.stats().completed == 3);
  CHECK(time.stats().returned == 0);
  CHECK(adds_up(time.stats()));
  CHECK(time.stop().empty());
}

TEST_CASE("after drain() nothing can be scheduled") {
  manual_timer time;
  CHECK(time.drain(0s));
  CHECK_THROWS_AS(time.schedule_after(1s, doing_nothing()), rondo::stopped_error);
  CHECK_THROWS_AS(time.schedule_every(1s, doing_nothing()), rondo::stopped_error);
  CHECK_THROWS_AS(time.schedule_after(duration::max(), doing_nothing()), rondo::stopped_error);
  CHECK(time.stats().scheduled == 0);
}

TEST_CASE("during drain() nothing can be scheduled, not even by the tasks that still fire") {
  manual_timer time;
  int refused = 0;
  time.schedule_after(1s, [&] {
    try {
      time.schedule_after(1s, doing_nothing());
    } catch (const rondo::stopped_error&) {
      ++refused;
    }
  });
  CHECK(time.drain(1s));
  CHECK(refused == 1);
}

TEST_CASE("at its limit drain() returns false, and can be called again") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(1s, counting(runs));
  time.schedule_after(5s, counting(runs));
  CHECK(!time.drain(2s));
  CHECK(since_epoch(time) == 2s);
  CHECK(runs == 1);
  CHECK_THROWS_AS(time.schedule_after(1s, doing_nothing()), rondo::stopped_error);
  CHECK(time.pending() == 1);
  CHECK(time.drain(3s));
  CHECK(runs == 2);
}

TEST_CASE("after drain() has reached its limit, stop() hands back the rest") {
  manual_timer time;
  time.schedule_after(5s, doing_nothing());
  time.schedule_every(1s, doing_nothing());
  CHECK(!time.drain(2s));
  const auto rest = time.stop();
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].due == at(5s));
  CHECK(time.drain(0s));  // nothing is pending any more
  CHECK(adds_up(time.stats()));
}

TEST_CASE("timers that are never due do not delay drain(), and stop() hands them back") {
  manual_timer time;
  const auto id = time.schedule_after(duration::max(), doing_nothing());
  time.schedule(every(1s).first_after(duration::max()), doing_nothing());
  CHECK(time.drain(1s));
  CHECK(time.pending() == 1);
  CHECK(time.pending(id));
  CHECK(!time.reschedule_after(id, 1s));
  CHECK(time.stop().size() == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a timer that is moved from never to never does not make drain() forget another one") {
  manual_timer time;
  const timer_id never = time.schedule_after(duration::max(), doing_nothing());
  time.reschedule_after(never, duration::max());
  time.schedule_after(1h, doing_nothing());
  CHECK_FALSE(time.drain(0s));
}

TEST_CASE("timers may still be cancelled and one-shots moved during drain()") {
  manual_timer time;
  int runs = 0;
  const auto far = time.schedule_after(1h, counting(runs));
  const auto further = time.schedule_after(2h, counting(runs));
  CHECK(!time.drain(1s));
  CHECK(time.reschedule_after(far, 1s));
  CHECK(time.cancel(further) == rondo::cancel_result::cancelled);
  CHECK(time.drain(1s));
  CHECK(runs == 1);
}

TEST_CASE("drain() from inside is refused") {
  manual_timer time;
  int refused = 0;
  time.schedule_after(1s, [&] {
    try {
      time.drain(1s);
    } catch (const std::logic_error&) {
      ++refused;
    }
  });
  time.advance(1s);
  CHECK(refused == 1);
  time.schedule_after(1s, doing_nothing());  // nothing has changed
}

TEST_CASE("a negative limit of drain() has already passed, and the longest one never does") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(std::chrono::hours(24 * 365 * 100), counting(runs));
  CHECK(!time.drain(-1s));
  CHECK(since_epoch(time) == 0s);
  CHECK(time.drain(std::chrono::hours::max()));
  CHECK(runs == 1);
}

TEST_CASE("jobs that nobody runs delay drain() until its limit") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  time.schedule_every(1ms, counting(runs));
  time.advance(1ms);
  REQUIRE(jobs.size() == 2);
  CHECK(!time.drain(20ms));
  CHECK(time.pending() == 1);  // the one-shot; the periodic timer has ended
  for (job& j : jobs) j();
  CHECK(runs == 1);
  CHECK(time.drain(0s));
  CHECK(time.stats().rejected == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a periodic timer that is running when drain() begins ends with that run") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto token = std::make_shared<int>(0);
  bool drained = true;
  rondo::timer_id id;
  id = time.schedule(every(1ms).on_overlap(overlapping_runs::queue_one), [&, token] {
    std::thread([&] { drained = time.drain(1ms); }).join();
    CHECK(!time.pending(id));
    CHECK(time.cancel(id) == rondo::cancel_result::running);
  });
  time.advance(3ms);
  jobs.at(0)();
  CHECK(!drained);  // it was still running
  CHECK(token.use_count() == 1);
  CHECK(time.drain(0s));
  CHECK(time.stats().completed == 1);
  CHECK(time.stats().cancelled == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a periodic timer that is cancelled in a run during which drain() begins ends only once") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  bool drained = true;
  rondo::timer_id id;
  id = time.schedule_every(1ms, [&] {
    CHECK(time.cancel(id) == rondo::cancel_result::running);
    std::thread([&] { drained = time.drain(0s); }).join();
  });
  time.schedule_after(1h, doing_nothing());
  time.advance(1ms);
  jobs.at(0)();
  CHECK(!drained);
  CHECK(time.pending() == 1);
  CHECK(time.stats().cancelled == 1);
  CHECK(time.stats().completed == 0);
  CHECK(adds_up(time.stats()));
  CHECK(time.stop().size() == 1);
  CHECK(adds_up(time.stats()));
}

}  // namespace scheduler_drain
