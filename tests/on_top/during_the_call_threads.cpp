// What may happen to a timer of a scope or a key during the call that schedules it: on_earlier is called inside the
// call, and another thread may run the timer.
#include <rondo/keyed_timers.hpp>
#include <rondo/timer_scope.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include <rondo/polled_timer.hpp>

#include "failing_new.hpp"
#include "threads/patience.hpp"

namespace on_top_during_the_call_threads {

using namespace rondo;
using namespace rondo::test;

/// Polls on another thread, because poll() would be refused on the calling one.
void poll_elsewhere(polled_timer& time) {
  std::thread([&] { time.poll(); }).join();
}

/// Calls a function the first time that on_earlier is called.
void do_during_the_call(polled_timer& time, std::function<void()> act) {
  time.on_earlier([act = std::move(act), done = false]() mutable {
    if (!std::exchange(done, true)) act();
  });
}

TEST_CASE(
    "a callable is destroyed with its run, even before the call that scheduled it through a scope returns") {
  polled_timer time;
  timer_scope scope(time);
  auto token = std::make_shared<int>(0);  // not const, so that the closure can move it
  do_during_the_call(time, [&] {
    poll_elsewhere(time);
    CHECK(*token == 1);
    CHECK(token.use_count() == 1);
  });
  scope.schedule_after(0s, [token] { ++*token; });
  CHECK(*token == 1);
  CHECK(scope.pending() == 0);
}

// If bytes_held() is unknown, there is nothing to test.
TEST_CASE(
    "a scope keeps nothing of timers whose jobs are dropped before the calls that scheduled them return" *
    doctest::skip(!failing_new::available)) {
  polled_timer time(options{.buckets = 1, .run_on = [](const job&) {}});
  timer_scope scope(time);
  time.on_earlier([&] { poll_elsewhere(time); });
  const auto schedule = [&](int times) {
    for (int i = 0; i != times; ++i) scope.schedule_after(0s, [] {});
  };
  schedule(2000);  // each of the first threads leaves records to its shard
  const auto before = bytes_held();
  schedule(500);
  CHECK(bytes_held() <= before + 512);
  CHECK(time.stats().rejected == 2500);
}

TEST_CASE("a call that sets a key while the driver is being woken for that key replaces the timer") {
  polled_timer time;
  keyed_timers<int> timers(time);
  do_during_the_call(time, [&] {
    CHECK(timers.contains(1));
    CHECK_FALSE(timers.try_set_after(1, 3h, [] {}));
    timers.set_after(1, 2h, [] {});
  });
  CHECK(timers.try_set_after(1, 1h, [] { FAIL("it ran"); }));
  CHECK(timers.size() == 1);
  CHECK(time.pending() == 1);
  CHECK(time.next_due() > time.now() + 90min);
}

TEST_CASE("a task that is replaced while the driver is being woken for it does not start, though it is due") {
  polled_timer time;
  keyed_timers<int> timers(time);
  bool ran = false;
  do_during_the_call(time, [&] {
    timers.set_after(1, 2h, [] {});
    poll_elsewhere(time);
  });
  CHECK(timers.try_set_after(1, 0s, [&] { ran = true; }));
  CHECK_FALSE(ran);
  CHECK(timers.size() == 1);
  CHECK(time.pending() == 1);
}

TEST_CASE("a key's periodic timer that runs before the call that sets it returns continues") {
  polled_timer time;
  keyed_timers<int> keys(time);
  int runs = 0;
  do_during_the_call(time, [&] { poll_elsewhere(time); });
  keys.set(1, rondo::every(1h).first_after(0s), [&] { ++runs; });
  CHECK(runs == 1);
  CHECK(keys.contains(1));
}

TEST_CASE("a task whose key is set again does not start after the new task has") {
  polled_timer time;
  keyed_timers<int> keys(time);
  int old_runs = 0, new_runs = 0;
  const auto now = time.now();
  keys.set_at(1, now, [&] { ++old_runs; });
  // Both are due. The new one is in an earlier tick, so it runs first, and the old one is next in the same pass.
  do_during_the_call(time, [&] { poll_elsewhere(time); });
  keys.set_at(1, now - 1h, [&] { ++new_runs; });
  CHECK(new_runs == 1);
  CHECK(old_runs == 0);
}

}  // namespace on_top_during_the_call_threads
