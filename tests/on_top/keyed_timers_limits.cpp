// Replacing a key's timer at max_pending.
#include <rondo/keyed_timers.hpp>

#include <memory>

#include <rondo/errors.hpp>
#include <rondo/polled_timer.hpp>

#include "scheduler/virtual_time.hpp"

namespace on_top_keyed_timers_limits {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("at the limit, a key's timer is replaced, and a new key is refused") {
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
  SUBCASE("by a recurring timer, that one by another, and that one by a one-shot") {
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

TEST_CASE("at the limit, the new timer has its own deadline, to the nanosecond") {
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

TEST_CASE("at the limit, a task may re-arm its own key") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  journal ran;
  SUBCASE("a one-shot, twice") {
    timers.set_after(1, 1ms, [&] {
      timers.set_after(1, 1ms, ran.noting("second"));
      timers.set_after(1, 2ms, ran.noting("third"));
    });
  }
  SUBCASE("a recurring task") {
    timers.set(1, every(1ms), [&] { timers.set_after(1, 1ms, ran.noting("third")); });
  }
  time.advance(10ms);
  CHECK(ran.take() == "third");
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("at the limit, a timer whose job an executor has is taken back and replaced") {
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

TEST_CASE("after a replacement at the limit, stop() hands back the new timer") {
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

TEST_CASE("at the limit, no lock is held while on_earlier runs, and it may set the same key") {
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

TEST_CASE(
    "at the limit, a key that is moved while the driver is being woken for its new timer moves that timer") {
  polled_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  timers.set_after(1, 2h, doing_nothing());
  int calls = 0;
  const time_point due = time.now() + 3h;
  time.on_earlier([&] {
    if (++calls == 1) CHECK(timers.reschedule_after(1, 3h));
  });
  timers.set_after(1, 1h, doing_nothing());
  CHECK(calls == 1);
  CHECK(time.next_due() >= due);
  CHECK(time.next_due() < due + 1min);
}

TEST_CASE("at the limit, each replacement counts the new timer as scheduled and the old one as cancelled") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  int runs = 0;
  timers.set_after(1, 1ms, counting(runs));
  timers.set_after(1, 2ms, counting(runs));
  timers.set(1, every(3ms), counting(runs));
  timers.set(1, every(4ms), counting(runs));
  timers.set_after(1, 5ms, counting(runs));
  CHECK(time.stats().scheduled == 5);
  CHECK(time.stats().cancelled == 4);
  CHECK(time.pending() == 1);
  time.advance(10ms);
  CHECK(runs == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("at the limit, a recurring timer that is replaced while its task runs does not run again") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  journal ran;
  const auto old = std::make_shared<int>(0);
  timers.set(1, every(1ms), [&, old] {
    ran.add("old");
    timers.set_after(1, 5ms, ran.noting("second"));
    CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), capacity_error);
    timers.set(1, every(2ms).times(2), ran.noting("new"));
    CHECK(old.use_count() == 2);
    CHECK(timers.cancel(1) == cancel_result::cancelled);
    CHECK(timers.cancel(1) == cancel_result::running);
    timers.set(1, every(2ms).times(2), ran.noting("new"));
  });
  time.advance(10ms);
  CHECK(ran.take() == "old new new");
  CHECK(old.use_count() == 1);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("inside its one-shot task a key has no timer, so setting it takes a place like any other") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  int refused = 0;
  timers.set_after(1, 1ms, [&] {
    time.schedule_after(1h, doing_nothing());
    try {
      timers.set_after(1, 1ms, [] { FAIL("it ran"); });
    } catch (const capacity_error&) {
      ++refused;
    }
    CHECK_FALSE(timers.contains(1));
    CHECK(timers.cancel(1) == cancel_result::running);
  });
  time.advance(1s);
  CHECK(refused == 1);
  CHECK(timers.cancel(1) == cancel_result::gone);
  CHECK(time.pending() == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("at the limit, the destructor of a replaced callable may set, move and cancel the same key") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  journal ran;
  const auto doing = [](std::function<void()> act) {
    return std::shared_ptr<void>(nullptr, [act = std::move(act)](void*) { act(); });
  };
  SUBCASE("set") {
    timers.set_after(1, 1ms, [held = doing([&] { timers.set_after(1, 3ms, ran.noting("third")); })] {});
    timers.set_after(1, 2ms, ran.noting("second"));
    time.advance(10ms);
    CHECK(ran.take() == "third");
  }
  SUBCASE("move") {
    timers.set_after(1, 1ms, [held = doing([&] { CHECK(timers.reschedule_after(1, 4ms)); })] {});
    timers.set_after(1, 2ms, ran.noting("second"));
    CHECK(time.advance(3ms) == 0);
    time.advance(1ms);
    CHECK(ran.take() == "second");
  }
  SUBCASE("cancel") {
    timers.set_after(1, 1ms, [held = doing([&] { CHECK(timers.cancel(1) == cancel_result::cancelled); })] {});
    timers.set_after(1, 2ms, [] { FAIL("it ran"); });
    CHECK(time.advance(3ms) == 0);
  }
  CHECK(timers.cancel(1) == cancel_result::gone);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

}  // namespace on_top_keyed_timers_limits
