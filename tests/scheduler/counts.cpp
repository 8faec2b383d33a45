// pending(), next_due() and stats() are exact, even inside tasks.
#include "scheduler/virtual_time.hpp"

namespace scheduler_counts {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a one-shot is no longer pending once it has started") {
  manual_timer time;
  timer_id id;
  bool looked = false;
  id = time.schedule_after(1ms, [&] {
    looked = true;
    CHECK_FALSE(time.pending(id));
    CHECK(time.pending() == 0);
    CHECK(time.stats().pending == 0);
    CHECK(time.stats().fired == 1);
    CHECK(time.stats().completed == 0);  // it has not ended yet
    CHECK_FALSE(time.next_due().has_value());
  });
  CHECK(time.pending(id));
  CHECK(time.pending() == 1);
  time.advance(1ms);
  CHECK(looked);
  CHECK(time.stats().completed == 1);
}

TEST_CASE("inside a task, the remaining timers of its pass are still pending and due") {
  manual_timer time;
  const auto check_left = [&](std::size_t left) {
    return [&time, left] {
      CHECK(time.pending() == left);
      CHECK(time.next_due() == (left > 1 ? at(1ms) : at(5ms)));
    };
  };
  time.schedule_after(1ms, check_left(3));
  time.schedule_after(1ms, check_left(2));
  time.schedule_after(1ms, check_left(1));
  time.schedule_after(5ms, doing_nothing());
  time.advance(1ms);
  CHECK(time.pending() == 1);
}

TEST_CASE("after a jump, next_due() is the oldest tick with work") {
  manual_timer time;
  time.schedule_after(3ms, [&] { CHECK(time.next_due() == at(7ms)); });
  time.schedule_after(7ms, [&] { CHECK(time.next_due() == at(9ms)); });
  time.schedule_after(9ms, [&] { CHECK_FALSE(time.next_due().has_value()); });
  time.elapse(1s);
  CHECK(time.next_due() == at(3ms));
  CHECK(time.advance(0s) == 3);
}

TEST_CASE("next_due() leaves out timers of the same tick that were cancelled or moved") {
  manual_timer time;
  timer_id a, b;
  time.schedule_after(1ms, [&] {
    time.cancel(a);
    CHECK(time.next_due() == at(1ms));
    time.reschedule_after(b, 10ms);
    CHECK(time.next_due() == at(11ms));
  });
  a = time.schedule_after(1ms, doing_nothing());
  b = time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  CHECK(time.next_due() == at(11ms));
}

TEST_CASE("next_due() stays exact while timers in one bucket or many are cancelled") {
  for (const std::size_t buckets : {1U, 4U, 64U}) {
    manual_timer time(options{.buckets = buckets});
    std::vector<timer_id> ids;
    for (int tick = 1; tick <= 100; ++tick) ids.push_back(time.schedule_after(tick * 1ms, doing_nothing()));
    for (int tick = 1; tick <= 100; ++tick) {
      CHECK(time.next_due() == at(tick * 1ms));
      time.cancel(ids[static_cast<std::size_t>(tick) - 1]);
    }
    CHECK_FALSE(time.next_due().has_value());
  }
}

TEST_CASE("a timer whose job an executor has is pending, but not due") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto once = time.schedule_after(1ms, doing_nothing());
  const auto often = time.schedule_every(1ms, doing_nothing());
  time.advance(1ms);
  CHECK(time.pending(once));
  CHECK(time.pending(often));
  CHECK(time.pending() == 2);
  CHECK(time.stats().fired == 0);
  CHECK(time.next_due() == at(2ms));  // the next run of the periodic timer
  for (job& j : jobs) j();
  CHECK_FALSE(time.pending(once));
  CHECK(time.pending(often));
  CHECK(time.stats().fired == 2);
  CHECK(time.stats().completed == 1);
}

TEST_CASE("lateness and run times are added up, to the nanosecond, inline and on an executor") {
  std::vector<job> jobs;
  for (const bool inline_runs : {true, false}) {
    CAPTURE(inline_runs);
    options o{.on_error = [](std::exception_ptr, const rondo::firing&) {}};
    if (!inline_runs) o.run_on = [&](job j) { jobs.push_back(std::move(j)); };
    manual_timer time(o);
    time.schedule_after(1ms, [&] { time.elapse(1'000'001ns); });
    time.schedule_after(2ms, [&] {
      time.elapse(70ns);
      throw 1;
    });
    time.elapse(5'000'003ns);
    time.advance(0s);
    for (job& j : jobs) j();
    const statistics s = time.stats();
    CHECK(s.run_time.sum() == 1'000'071ns);
    CHECK(s.lateness.sum() == 4'000'003ns + 4'000'004ns);
    CHECK(s.lateness.count() == 2);
  }
}

TEST_CASE("the difference of two readings of stats() is what was recorded in between") {
  manual_timer time;
  time.schedule_after(1ms, doing_nothing());
  time.elapse(11ms);
  time.advance(0s);
  const statistics earlier = time.stats();
  time.schedule_after(1ms, doing_nothing());
  time.elapse(3ms);
  time.advance(0s);
  statistics now = time.stats();
  now.lateness -= earlier.lateness;
  now.run_time -= earlier.run_time;
  CHECK(now.lateness.count() == 1);
  CHECK(now.lateness.sum() == 2ms);
  CHECK(now.lateness.max() <= 2050us);
  CHECK(now.run_time.count() == 1);
  CHECK_THROWS_AS(now.lateness -= time.stats().lateness, std::invalid_argument);
}

TEST_CASE("every way in which a timer can end is counted, once") {
  std::vector<job> jobs;
  bool refuse = false;
  manual_timer time(options{.run_on =
                                [&](job j) {
                                  if (refuse) throw 1;
                                  jobs.push_back(std::move(j));
                                },
                            .on_error = [](std::exception_ptr, const rondo::firing&) {}});
  time.schedule_after(1ms, doing_nothing());  // runs
  time.schedule_after(1ms, [] { throw 2; });  // fails
  time.schedule_after(1ms, doing_nothing());  // is dropped
  time.advance(1ms);
  jobs[0]();
  jobs[1]();
  jobs.clear();
  refuse = true;
  time.schedule_after(1ms, doing_nothing());  // is refused
  time.advance(1ms);
  time.cancel(time.schedule_after(1ms, doing_nothing()));
  time.cancel(time.schedule_every(1ms, doing_nothing()));
  time.schedule_after(1h, doing_nothing());
  time.schedule_every(1h, doing_nothing());
  statistics s = time.stats();
  CHECK(s.scheduled == 8);
  CHECK(s.pending == 2);
  CHECK(s.fired == 2);
  CHECK(s.completed == 4);
  CHECK(s.cancelled == 2);
  CHECK(s.failed == 2);
  CHECK(s.rejected == 1);
  CHECK(s.returned == 0);
  CHECK(adds_up(s));
  CHECK(time.stop().size() == 2);
  s = time.stats();
  CHECK(s.returned == 2);
  CHECK(s.pending == 0);
  CHECK(adds_up(s));
  CHECK(s.wakeups == 0);  // there is no thread to wake
}

}  // namespace scheduler_counts
