// Replacing a key's timer where there is no place for another, and no memory.
#include <rondo/keyed_timers.hpp>

#include <memory>
#include <new>

#include <rondo/errors.hpp>
#include <rondo/polled_timer.hpp>
#include <rondo/timer_scope.hpp>

#include "scheduler/failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace {

using namespace rondo::test;
using rondo::cancel_result;
using rondo::capacity_error;
using rondo::every;
using rondo::firing;
using rondo::job;
using rondo::keyed_timers;
using rondo::manual_timer;
using rondo::options;
using rondo::polled_timer;
using rondo::time_point;
using rondo::timer_scope;

TEST_CASE("at the limit, a key's timer is replaced and a new key refused") {
  manual_timer time(options{.max_pending = 2});
  keyed_timers<int> timers(time);
  std::vector<firing> runs;
  const auto old = std::make_shared<int>(0);
  time.schedule_after(1h, doing_nothing());
  timers.set_after(1, 1ms, [old] { FAIL("the old one ran"); });
  SUBCASE("later") { timers.set_after(1, 5ms, recording(runs)); }
  SUBCASE("earlier") {
    time.advance(0s);
    timers.set_at(1, at(0ms), recording(runs));
    CHECK(time.advance(0s) == 1);
  }
  SUBCASE("at the same time") { timers.set_at(1, at(1ms), recording(runs)); }
  SUBCASE("again and again") {
    for (int i = 0; i != 100; ++i) timers.set_after(1, 1ms, [old] { FAIL("an old one ran"); });
    timers.set_after(1, 3ms, recording(runs));
  }
  SUBCASE("by a recurring one, and that by another, and that by a one-shot") {
    timers.set(1, every(1ms), [old] { FAIL("the old one ran"); });
    timers.set(1, every(2ms), [old] { FAIL("the old one ran"); });
    timers.set_after(1, 2ms, recording(runs));
  }
  CHECK(old.use_count() == 1);
  if (runs.empty()) {
    CHECK(timers.contains(1));
    CHECK_THROWS_AS(timers.set_after(2, 1ms, doing_nothing()), capacity_error);
    CHECK_THROWS_AS(timers.set(2, every(1ms), doing_nothing()), capacity_error);
    CHECK_THROWS_AS(timers.try_set_after(2, 1ms, doing_nothing()), capacity_error);
    CHECK_FALSE(timers.try_set_after(1, 1ms, doing_nothing()));
    CHECK_FALSE(timers.contains(2));
  }
  time.advance(10ms);
  CHECK(runs.size() == 1);
  CHECK(timers.size() == 0);
  CHECK(time.pending() == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("at the limit, the new one has its own deadline, to the nanosecond") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  std::vector<firing> runs;
  timers.set_at(1, at(5ms + 3ns), doing_nothing());
  timers.set_at(1, at(7ms + 4ns), recording(runs));
  time.advance(7ms + 3ns);
  CHECK(runs.empty());
  time.advance(1ms);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == at(7ms + 4ns));
  timers.set_after(1, 1ms, doing_nothing());
  timers.set_after(1, std::chrono::hours::max(), recording(runs));
  time.advance(24h);
  CHECK(runs.size() == 1);
  CHECK(timers.contains(1));
  CHECK(timers.cancel(1) == cancel_result::cancelled);
}

TEST_CASE("at the limit, a task sets its own key anew") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  journal ran;
  SUBCASE("a one-shot, twice") {
    timers.set_after(1, 1ms, [&] {
      timers.set_after(1, 1ms, ran.noting("second"));
      timers.set_after(1, 2ms, ran.noting("third"));
    });
  }
  SUBCASE("a recurring one") {
    timers.set(1, every(1ms), [&] { timers.set_after(1, 1ms, ran.noting("third")); });
  }
  time.advance(10ms);
  CHECK(ran.take() == "third");
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("at the limit, what an executor has is taken back and replaced") {
  std::vector<job> jobs;
  manual_timer time(options{.max_pending = 1, .run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  keyed_timers<int> timers(time);
  journal ran;
  timers.set_after(1, 1ms, ran.noting("old"));
  time.advance(1ms);
  timers.set_after(1, 1ms, ran.noting("new"));
  REQUIRE(jobs.size() == 1);
  jobs[0]();
  CHECK(ran.take() == "");
  time.advance(1ms);
  REQUIRE(jobs.size() == 2);
  jobs[1]();
  CHECK(ran.take() == "new");
}

TEST_CASE("what was replaced at the limit and then handed back is the new one") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  journal ran;
  timers.set_after(1, 1ms, ran.noting("old"));
  timers.set_after(1, 2ms, ran.noting("new"));
  auto list = time.stop();
  REQUIRE(list.size() == 1);
  CHECK(list[0].due == at(2ms));
  list[0].work();
  CHECK(ran.take() == "new");
}

TEST_CASE("at the limit, on_earlier finds no lock held, and may set the very key") {
  polled_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  journal ran;
  timers.set_after(1, 2h, ran.noting("first"));
  int calls = 0;
  time.on_earlier([&] {
    if (++calls != 1) return;
    CHECK(timers.contains(1));
    CHECK(timers.reschedule_after(1, 3h));
    timers.set_after(1, 0s, ran.noting("third"));
  });
  timers.set_after(1, 1h, ran.noting("second"));
  CHECK(calls >= 1);
  CHECK(time.pending() == 1);
  CHECK(timers.size() == 1);
  CHECK(time.poll() == 1);
  CHECK(ran.take() == "third");
}

// Where there is no such operator new, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

/// Does `operation` with the 1st, 2nd, … allocation failing, until none of them does. Each time it failed, the
/// key must have its old timer and no other.
template <class Operation>
int fail_everywhere(std::size_t max_pending, Operation&& operation) {
  for (int k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    manual_timer time(options{.max_pending = max_pending});
    keyed_timers<int> timers(time);
    journal ran;
    timers.set_at(1, at(5ms), [&] { ran.add("old"); });
    bool done = false;
    {
      const failing_new failing(static_cast<std::size_t>(k));
      try {
        operation(timers, ran);
        done = true;
      } catch (const std::bad_alloc&) {
      }
      if (done && !failing.struck()) return k;
    }
    CHECK(timers.size() == 1);
    CHECK(time.pending() == 1);
    CHECK(adds_up(time.stats()));
    CHECK(time.advance(1h) == 1);
    CHECK(ran.take() == (done ? "new" : "old"));
    CHECK(timers.cancel(1) == cancel_result::gone);
  }
}

TEST_CASE("setting a key anew without memory leaves the old timer, also at the limit") {
  const auto set = [](keyed_timers<int>& timers, journal& ran) {
    timers.set_after(1, 700ms, [&ran] { ran.add("new"); });
  };
  CHECK(fail_everywhere(rondo::unlimited, set) > 2);
  CHECK(fail_everywhere(1, set) > 2);
}

TEST_CASE("setting a key to a recurrence without memory leaves the old timer") {
  CHECK(fail_everywhere(rondo::unlimited, [](keyed_timers<int>& timers, journal& ran) {
          timers.set(1, every(700ms).times(1), [&ran] { ran.add("new"); });
        }) > 2);
}

TEST_CASE("scheduling through a scope without memory schedules nothing, and closing it needs none") {
  for (std::size_t k = 0;; ++k) {
    REQUIRE(k < 1000);
    manual_timer time;
    const auto token = std::make_shared<int>(0);
    bool struck = false;
    {
      timer_scope scope(time);
      for (int i = 0; i != 20; ++i) scope.schedule_after(1ms * i, [token] {});
      {
        const failing_new failing(k);
        try {
          scope.schedule_after(1h, [token] {});
        } catch (const std::bad_alloc&) {
        }
        struck = failing.struck();
      }
      CHECK(scope.pending() == time.pending());
      CHECK(token.use_count() == 1 + static_cast<long>(time.pending()));
      const failing_new failing;
      scope.close();
    }
    CHECK(token.use_count() == 1);
    CHECK(time.pending() == 0);
    CHECK(adds_up(time.stats()));
    if (!struck) {
      CHECK(k > 2);
      return;
    }
  }
}

TEST_SUITE_END();

}  // namespace
