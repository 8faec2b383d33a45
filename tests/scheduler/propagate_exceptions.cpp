// With an option, exceptions of tasks leave the call that drives the scheduler.
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <rondo/polled_timer.hpp>

#include "scheduler/captured_cerr.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_propagate_exceptions {

using namespace rondo;
using namespace rondo::test;

/// Options with which exceptions propagate, and on_error counts its calls in `reported`.
options throwing(int& reported) {
  return {.on_error = [&reported](std::exception_ptr, const firing&) { ++reported; },
          .propagate_exceptions = true};
}

executor at_once() {
  return [](job j) { j(); };
}

auto failing(const char* why) {
  return [why] { throw std::runtime_error(why); };
}

TEST_CASE("an exception of a task leaves advance(), and the other due timers stay due, in order") {
  int reported = 0;
  manual_timer time(throwing(reported));
  journal what;
  time.schedule_after(1ms, what.noting("a"));
  time.schedule_after(1ms, failing("no"));
  time.schedule_after(1ms, what.noting("b"));
  time.schedule_after(1ms, failing("never"));
  time.schedule_after(2ms, what.noting("c"));
  CHECK_THROWS_WITH_AS(time.advance(5ms), "no", std::runtime_error);
  CHECK(what.take() == "a");
  CHECK(since_epoch(time) == 1ms);
  CHECK(time.pending() == 3);
  CHECK(time.next_due() == at(1ms));
  time.schedule_at(at(1ms), what.noting("new"));
  CHECK_THROWS_WITH_AS(time.advance(0s), "never", std::runtime_error);
  CHECK(what.take() == "b");
  CHECK(time.advance(0s) == 1);
  CHECK(what.take() == "new");
  CHECK(time.advance_to_next() == 1);
  CHECK(what.take() == "c");
  CHECK(reported == 0);
  CHECK(time.stats().failed == 2);
  CHECK(time.stats().fired == 6);
  CHECK(time.stats().completed == 6);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("when the exception leaves, the run is over and its callable destroyed") {
  int reported = 0;
  manual_timer time(throwing(reported));
  const auto token = std::make_shared<int>(0);
  const auto id = time.schedule_after(1ms, [token] { throw std::runtime_error("no"); });
  SUBCASE("advance") { CHECK_THROWS_AS(time.advance(1ms), std::runtime_error); }
  SUBCASE("advance_to_next") { CHECK_THROWS_AS(time.advance_to_next(), std::runtime_error); }
  SUBCASE("drain") {
    CHECK_THROWS_AS(time.drain(1s), std::runtime_error);
    CHECK(time.drain(1s));
  }
  CHECK(token.use_count() == 1);
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.pending() == 0);
  CHECK(time.advance(1ms) == 0);  // not from inside any more
}

TEST_CASE("poll() throws, keeps its limit, and continues where it was") {
  int reported = 0;
  polled_timer timer(throwing(reported));
  journal what;
  timer.schedule_after(-1h, what.noting("a"));
  timer.schedule_after(-1h, failing("no"));
  timer.schedule_after(-1h, what.noting("b"));
  timer.schedule_after(-1h, what.noting("c"));
  SUBCASE("without a limit") {
    CHECK_THROWS_AS(timer.poll(), std::runtime_error);
    CHECK(timer.poll() == 2);
  }
  SUBCASE("as the last within a limit") {
    CHECK_THROWS_AS(timer.poll(2), std::runtime_error);
    CHECK(timer.poll(1) == 1);
    CHECK(timer.poll(1) == 1);
  }
  SUBCASE("drained") {
    CHECK_THROWS_AS(timer.drain(1h), std::runtime_error);
    CHECK(what.take() == "a");
    CHECK_THROWS_AS(timer.schedule_after(0s, doing_nothing()), stopped_error);
    CHECK(timer.drain(1h));
    what.add("a " + what.take());
  }
  CHECK(what.take() == "a b c");
  CHECK(reported == 0);
}

TEST_CASE("a periodic task whose exception propagates continues on its grid") {
  int reported = 0;
  manual_timer time(throwing(reported));
  std::vector<firing> runs;
  recurrence when = every(100ms);
  SUBCASE("skipping what it missed") {}
  SUBCASE("in bursts") { when = when.on_missed(missed_runs::burst); }
  const auto id = time.schedule(when, [&](const firing& f) {
    runs.push_back(f);
    throw std::runtime_error("no");
  });
  for (int i = 1; i != 4; ++i) {
    CHECK_THROWS_AS(time.advance(1h), std::runtime_error);
    CHECK(since_epoch(time) == i * 100ms);
    CHECK(time.pending(id));
    CHECK(time.next_due() == at((i + 1) * 100ms));
  }
  CHECK(runs.size() == 3);
  CHECK(runs[2].run == 3);
  CHECK(runs[2].lateness == 0s);
  CHECK(reported == 0);
}

TEST_CASE("if late runs of a burst throw, each call runs the next one") {
  int reported = 0;
  manual_timer time(throwing(reported));
  journal what;
  time.schedule(every(100ms).on_missed(missed_runs::burst).times(3), [&] {
    what.add("often");
    throw std::runtime_error("no");
  });
  time.schedule_after(250ms, what.noting("at-250"));
  time.elapse(1s);
  for (int i = 0; i != 3; ++i) CHECK_THROWS_AS(time.advance(0s), std::runtime_error);
  CHECK(time.advance(0s) == 0);
  CHECK(what.take() == "often often at-250 often");
  CHECK(time.pending() == 0);
}

TEST_CASE("exceptions of tasks on an executor, even an inline one, go to on_error") {
  int reported = 0;
  options o = throwing(reported);
  std::optional<timer_options> own;
  SUBCASE("the scheduler's") { o.run_on = at_once(); }
  SUBCASE("its own") { own.emplace(timer_options{.run_on = at_once()}); }
  manual_timer time(std::move(o));
  if (own)
    time.schedule_after(1ms, failing("no"), *own);
  else
    time.schedule_after(1ms, failing("no"));
  CHECK(time.advance(1ms) == 1);
  CHECK(reported == 1);
  CHECK(time.stats().failed == 1);
}

TEST_CASE("exceptions of an executor and of handlers go to on_error") {
  int reported = 0;
  options o = throwing(reported);
  SUBCASE("the executor") {
    o.run_on = [](job) { throw std::runtime_error("full"); };
  }
  SUBCASE("on_slow") {
    o.slow_after = 1ms;
    o.on_slow = [](const slow_run&) { throw std::runtime_error("slow"); };
  }
  manual_timer time(std::move(o));
  time.schedule_after(1ms, [&] { time.elapse(1s); });
  CHECK(time.advance(1ms) == 1);
  CHECK(reported == 1);
}

TEST_CASE("the exception of a task that has stopped its scheduler leaves the call") {
  int reported = 0;
  manual_timer time(throwing(reported));
  time.schedule_after(1ms, [&] {
    CHECK(time.stop().size() == 1);
    throw std::runtime_error("no");
  });
  time.schedule_after(1ms, doing_nothing());
  CHECK_THROWS_AS(time.advance(1ms), std::runtime_error);
  CHECK(time.advance(1ms) == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("the exception of a task that has destroyed its scheduler leaves the call") {
  const captured_cerr cerr;
  int reported = 0;
  auto timer = std::make_unique<polled_timer>(throwing(reported));
  polled_timer& polled = *timer;
  polled.schedule_after(-1s, [&] {
    timer.reset();
    throw std::runtime_error("no");
  });
  CHECK_THROWS_AS(polled.poll(), std::runtime_error);
  CHECK(reported == 0);
  CHECK(cerr.lines() == 0);
}

TEST_CASE("without the option no exception leaves the call") {
  int reported = 0;
  options o = throwing(reported);
  o.propagate_exceptions = false;
  manual_timer time(std::move(o));
  time.schedule_after(1ms, failing("no"));
  CHECK(time.advance(1ms) == 1);
  CHECK(reported == 1);
}

}  // namespace scheduler_propagate_exceptions
