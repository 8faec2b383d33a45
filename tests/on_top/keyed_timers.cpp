// Timers by key, on virtual time.
#include <rondo/keyed_timers.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <rondo/polled_timer.hpp>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace on_top_keyed_timers {

using namespace rondo;
using namespace rondo::test;

using by_name = keyed_timers<std::string>;

TEST_CASE("each key has its own timer") {
  manual_timer time;
  by_name timers(time);
  journal ran;
  timers.set_after("a", 2ms, ran.noting("a"));
  timers.set_at("b", at(1ms), ran.noting("b"));
  timers.set("c", every(3ms).times(2), ran.noting("c"));
  CHECK(timers.size() == 3);
  CHECK(timers.contains("a"));
  CHECK_FALSE(timers.contains("d"));
  time.advance(10ms);
  CHECK(ran.take() == "b a c c");
  CHECK(timers.size() == 0);
  CHECK_FALSE(timers.contains("a"));
}

TEST_CASE("the longest delay means never, even before the clock's epoch") {
  manual_timer time(options{}, at(-1h));
  by_name timers(time);
  timers.set_after("a", duration::max(), doing_nothing());
  timers.set_after("b", 1ms, doing_nothing());
  CHECK(timers.reschedule_after("b", duration::max()));
  CHECK(timers.try_set_after("c", std::chrono::hours::max(), doing_nothing()));
  CHECK(timers.size() == 3);
  CHECK_FALSE(time.next_due().has_value());
}

TEST_CASE("a timer that is replaced by bytes is another timer: the old id is gone") {
  manual_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  int runs = 0;
  timers.set_after(7, 1ms, [&runs] { runs += 1; });
  const timer_id old = time.list().at(0).id;
  const auto before = allocations();
  for (int i = 0; i != 100; ++i) timers.set_after(7, 5ms, [&runs] { runs += 10; });
  CHECK(allocations() <= before + 1);  // the list of replaced timers in progress
  const auto all = time.list();
  REQUIRE(all.size() == 1);
  CHECK(all[0].id != old);
  CHECK(all[0].due == at(5ms));
  CHECK(time.cancel(old) == cancel_result::gone);
  CHECK_FALSE(time.pending(old));
  CHECK(time.stats().scheduled == 101);
  CHECK(time.stats().cancelled == 100);
  time.advance(5ms);
  CHECK(runs == 10);
  CHECK(timers.size() == 0);
}

TEST_CASE("clear() cancels the timers of all keys, however many there are") {
  manual_timer time;
  keyed_timers<int> timers(time);
  for (int i = 0; i != 1000; ++i) timers.set_after(i, 1ms, [] { FAIL("it was cancelled"); });
  timers.clear();
  CHECK(timers.size() == 0);
  CHECK(time.pending() == 0);
  time.advance(1ms);
}

TEST_CASE("re-arming a key schedules a new timer, cancels the old one and destroys its callable") {
  manual_timer time;
  by_name timers(time);
  std::vector<firing> runs;
  const auto old = std::make_shared<int>(0);
  timers.set_after("a", 1ms, [old] { FAIL("the old one ran"); });
  SUBCASE("later") { timers.set_after("a", 5ms, recording(runs)); }
  SUBCASE("at the same time") {
    timers.set_at("a", at(1ms), recording(runs));
    time.advance(1ms);
    CHECK(runs.size() == 1);
  }
  SUBCASE("never, and then again") {
    timers.set_after("a", std::chrono::hours::max(), recording(runs));
    time.advance(1h);
    CHECK(runs.empty());
    timers.set_after("a", 5ms, recording(runs));
  }
  SUBCASE("by a recurring timer") { timers.set("a", every(5ms).times(1), recording(runs)); }
  CHECK(old.use_count() == 1);
  CHECK(time.pending() + runs.size() == 1);
  time.advance(10ms);
  CHECK(runs.size() == 1);
  const auto s = time.stats();
  CHECK(s.scheduled == s.cancelled + 1);
  CHECK(s.completed == 1);
  CHECK(adds_up(s));
}

TEST_CASE("re-arming a key also replaces a recurring timer") {
  manual_timer time;
  by_name timers(time);
  journal ran;
  timers.set("a", every(2ms), ran.noting("old"));
  time.advance(5ms);
  SUBCASE("by a one-shot") {
    timers.set_after("a", 2ms, ran.noting("new"));
    time.advance(10ms);
    CHECK(ran.take() == "old old new");
    CHECK(timers.size() == 0);
  }
  SUBCASE("by a recurring timer, whose grid starts again") {
    timers.set("a", every(2ms), ran.noting("new"));
    time.advance(4ms);
    CHECK(ran.take() == "old old new new");
    CHECK(timers.contains("a"));
  }
}

TEST_CASE("debouncing: of many calls, only the last one's task runs, once") {
  manual_timer time;
  by_name timers(time);
  std::vector<int> ran;
  for (int i = 0; i != 1000; ++i) {
    timers.set_after("a", 10ms, [&, i] { ran.push_back(i); });
    time.advance(9ms);
  }
  CHECK(ran.empty());
  time.advance(1ms);
  CHECK(ran == std::vector{999});
}

TEST_CASE("try_set_after() does not change a key that has a timer") {
  manual_timer time;
  by_name timers(time);
  journal ran;
  CHECK(timers.try_set_after("a", 2ms, ran.noting("first")));
  CHECK_FALSE(timers.try_set_after("a", 1ms, ran.noting("second")));
  time.advance(5ms);
  CHECK(ran.take() == "first");
  CHECK(timers.try_set_after("a", 2ms, ran.noting("third")));
  timers.cancel("a");
  CHECK(timers.try_set_after("a", 2ms, ran.noting("fourth")));
  time.advance(5ms);
  CHECK(ran.take() == "fourth");
  CHECK(time.stats().scheduled == 3);
}

TEST_CASE(
    "try_set_after() returns false for a key that has a timer, even if the scheduler takes no new timers") {
  manual_timer time;
  keyed_timers<int> keys(time);
  keys.set_after(1, 1h, [] {});
  REQUIRE(!time.drain(0s));
  CHECK(!keys.try_set_after(1, 1s, [] {}));
  CHECK(!keys.try_set_after(1, 1s, task([] {})));
  CHECK_THROWS_AS(keys.try_set_after(1, 1s, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(keys.try_set_after(2, 1s, [] {}), stopped_error);
}

TEST_CASE("reschedule_after() moves the key's timer") {
  manual_timer time;
  by_name timers(time);
  std::vector<firing> runs;
  CHECK_FALSE(timers.reschedule_after("a", 1ms));
  timers.set_after("a", 1ms, recording(runs));
  CHECK(timers.reschedule_after("a", 3ms));
  CHECK(time.advance(2ms) == 0);
  CHECK(timers.reschedule_after("a", std::chrono::duration<double>(0.002)));
  CHECK(time.advance(2ms) == 1);
  CHECK(runs[0].due == at(4ms));
  CHECK_FALSE(timers.reschedule_after("a", 1ms));
  timers.set("b", every(10ms), recording(runs));
  CHECK(timers.reschedule_after("b", 1ms));
  time.advance(11ms);
  CHECK(runs.size() == 3);
}

TEST_CASE("cancel() returns what happened to the key's timer") {
  manual_timer time;
  by_name timers(time);
  const auto token = std::make_shared<int>(0);
  CHECK(timers.cancel("a") == cancel_result::gone);
  timers.set_after("a", 1ms, [token] { FAIL("it ran"); });
  CHECK(timers.cancel("a") == cancel_result::cancelled);
  CHECK(token.use_count() == 1);
  CHECK_FALSE(timers.contains("a"));
  CHECK(timers.cancel("a") == cancel_result::gone);
  timers.set_after("a", 1ms, [] {});
  time.advance(1ms);
  CHECK(timers.cancel("a") == cancel_result::gone);
  CHECK(time.stats().cancelled == 1);
}

TEST_CASE("inside its own one-shot task a key has no timer, and cancel() returns running") {
  manual_timer time;
  by_name timers(time);
  int runs = 0;
  timers.set_after("a", 1ms, [&] {
    ++runs;
    CHECK_FALSE(timers.contains("a"));
    CHECK(timers.size() == 0);
    CHECK_FALSE(timers.reschedule_after("a", 1ms));
    CHECK(timers.cancel("a") == cancel_result::running);
    CHECK(timers.cancel("a") == cancel_result::running);
  });
  time.advance(1s);
  CHECK(runs == 1);
  CHECK(timers.cancel("a") == cancel_result::gone);
}

TEST_CASE("inside a recurring task a key has its timer, except in the last run") {
  manual_timer time;
  by_name timers(time);
  journal seen;
  timers.set("a", every(1ms).times(2), [&] { seen.add(timers.contains("a") ? "has" : "has not"); });
  time.advance(1s);
  CHECK(seen.take() == "has has not");
  timers.set("a", every(1ms), [&] {
    CHECK(timers.cancel("a") == cancel_result::running);
    CHECK_FALSE(timers.contains("a"));
    CHECK(timers.cancel("a") == cancel_result::running);
    seen.add("ran");
  });
  time.advance(1s);
  CHECK(seen.take() == "ran");
}

TEST_CASE("a task may re-arm its own key") {
  manual_timer time;
  by_name timers(time);
  int runs = 0;
  std::function<void()> again = [&] {
    if (++runs == 5) return;
    timers.set_after("a", 1ms, again);
    CHECK(timers.contains("a"));
  };
  SUBCASE("a one-shot") { timers.set_after("a", 1ms, again); }
  SUBCASE("a recurring task") { timers.set("a", every(1ms), again); }
  SUBCASE("with try_set_after()") {
    again = [&] {
      if (++runs == 5) return;
      CHECK(timers.try_set_after("a", 1ms, again));
      CHECK_FALSE(timers.try_set_after("a", 1ms, again));
    };
    CHECK(timers.try_set_after("a", 1ms, again));
  }
  time.advance(4ms);
  CHECK(runs == 4);
  time.advance(10ms);
  CHECK(runs == 5);
  CHECK(timers.size() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE(
    "while a replaced task runs, cancel() cancels the new timer, and then returns running for the old one") {
  manual_timer time;
  by_name timers(time);
  std::vector<cancel_result> results;
  timers.set_after("a", 1ms, [&] {
    timers.set_after("a", 1ms, [] { FAIL("it ran"); });
    results.push_back(timers.cancel("a"));
    results.push_back(timers.cancel("a"));
  });
  time.advance(1s);
  CHECK(results == std::vector{cancel_result::cancelled, cancel_result::running});
  CHECK(timers.cancel("a") == cancel_result::gone);
}

TEST_CASE("a key's task that throws ends like any other") {
  int errors = 0;
  manual_timer time(options{.on_error = [&](std::exception_ptr, const firing&) { ++errors; }});
  by_name timers(time);
  timers.set_after("a", 1ms, [] { throw 1; });
  time.advance(1ms);
  CHECK(errors == 1);
  CHECK(timers.cancel("a") == cancel_result::gone);
}

TEST_CASE("a call on keyed timers that throws changes nothing") {
  manual_timer time;
  by_name timers(time);
  journal ran;
  timers.set_after("a", 5ms, ran.noting("old"));
  CHECK_THROWS_AS(timers.set_after("a", 1ms, rondo::task()), std::invalid_argument);
  CHECK_THROWS_AS(timers.set_after("a", 1ms, std::function<void()>()), std::invalid_argument);
  CHECK_THROWS_AS(timers.set("a", every(1ms), nullptr), std::invalid_argument);
  CHECK_THROWS_AS(timers.try_set_after("a", 1ms, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(timers.set_after("b", 1ms, nullptr), std::invalid_argument);
  constexpr std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(timers.set_after("a", nan, doing_nothing()), std::invalid_argument);
  CHECK_THROWS_AS(timers.reschedule_after("a", nan), std::invalid_argument);
  CHECK(timers.size() == 1);
  time.advance(1s);
  CHECK(ran.take() == "old");
  CHECK(time.stats().scheduled == 1);
}

TEST_CASE("no lock of keyed timers is held while on_earlier runs") {
  polled_timer time;
  by_name timers(time);
  int calls = 0;
  time.on_earlier([&] {
    if (++calls > 2) return;
    CHECK_FALSE(timers.contains("b"));
    CHECK(timers.size() <= 1);
    timers.cancel("none");
    timers.reschedule_after("a", 1h);
    timers.set_after("a", 2h, doing_nothing());
  });
  timers.set_after("a", 1h, doing_nothing());
  timers.reschedule_after("a", 1min);
  CHECK(calls >= 1);
  CHECK(timers.size() == 1);
  CHECK(time.pending() == 1);
}

/// A callable that calls f() when it is destroyed.
template <class F>
auto calling_at_its_end(F f) {
  return [end = std::shared_ptr<void>(nullptr, [f](void*) { f(); })] {};
}

TEST_CASE("the driver is woken for a key's new timer before the old one's callable is destroyed") {
  polled_timer time;
  by_name timers(time);
  int calls = 0, calls_before = -1;
  time.on_earlier([&] { ++calls; });
  timers.set_after("a", 1h, calling_at_its_end([&] { calls_before = calls; }));
  time.next_due();
  calls = 0;
  timers.set_after("a", 1ms, doing_nothing());
  CHECK(calls_before == 1);
  CHECK(calls == 1);
}

TEST_CASE("on_earlier may wait for the timer that its key has just replaced, and destroy everything") {
  std::optional<polled_timer> time(std::in_place);
  std::optional<by_name> timers(*time);
  int ends = 0;
  timers->set_after("a", 1h, calling_at_its_end([&] { ++ends; }));
  const timer_id old = time->list().at(0).id;
  bool is_called = false;
  const auto do_once = [&](auto what) {
    time->on_earlier([&is_called, what] {
      if (!std::exchange(is_called, true)) what();
    });
  };
  SUBCASE("by its id") {
    do_once([&] { CHECK(time->cancel_and_wait(old) == cancel_result::gone); });
  }
  SUBCASE("by its key") {
    do_once([&] { CHECK(timers->cancel_and_wait("a") == cancel_result::cancelled); });
  }
  SUBCASE("by setting the key again") {
    do_once([&] { timers->set_after("a", 1us, doing_nothing()); });
  }
  SUBCASE("by destroying the keyed timers") {
    do_once([&] { timers.reset(); });
  }
  SUBCASE("by stopping the scheduler") {
    do_once([&] { CHECK(time->stop().size() == 1); });
  }
  SUBCASE("by destroying the scheduler") {
    do_once([&] { time.reset(); });
  }
  timers->set_after("a", 1ms, doing_nothing());
  CHECK(is_called);
  CHECK(ends == 1);
}

/// A move-only key with its own hash.
struct session {
  std::unique_ptr<int> number;
};
struct session_hash {
  std::size_t operator()(const session& s) const { return static_cast<std::size_t>(*s.number); }
};
struct same_session {
  bool operator()(const session& a, const session& b) const { return *a.number == *b.number; }
};

TEST_CASE("keys may be move-only, and have their own hash and equality") {
  manual_timer time;
  keyed_timers<session, session_hash, same_session> timers(time);
  const auto key = [](int n) { return session{std::make_unique<int>(n)}; };
  int runs = 0;
  timers.set_after(key(1), 1ms, counting(runs));
  timers.set_after(key(1), 2ms, counting(runs));
  CHECK_FALSE(timers.try_set_after(key(1), 2ms, counting(runs)));
  timers.set(key(2), every(1ms), counting(runs));
  CHECK(timers.contains(key(1)));
  CHECK(timers.cancel(key(2)) == cancel_result::cancelled);
  time.advance(1s);
  CHECK(runs == 1);
}

}  // namespace on_top_keyed_timers
