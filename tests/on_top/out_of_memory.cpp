// Without memory, calls of keyed timers, scopes and sleeps either succeed or change nothing.
#include <rondo/keyed_timers.hpp>
#include <rondo/timer_scope.hpp>

#include <functional>
#include <memory>
#include <new>
#include <string>

#include "on_top/coroutines.hpp"
#include "failing_new.hpp"
#include "scheduler/out_of_memory.hpp"
#include "scheduler/virtual_time.hpp"

namespace on_top_out_of_memory {

using namespace rondo;
using namespace rondo::test;

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

/// Runs `operation` with the 1st, 2nd, … allocation failing, until none fails. After each failure, the key must have
/// its old timer and no other.
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
    if (max_pending == 1) CHECK_THROWS_AS(time.schedule_after(1h, doing_nothing()), capacity_error);
    CHECK(time.advance(1h) == 1);
    CHECK(ran.take() == (done ? "new" : "old"));
    CHECK(timers.cancel(1) == cancel_result::gone);
  }
}

TEST_CASE("re-arming a key without memory leaves the old timer, even at the limit") {
  const auto set = [](keyed_timers<int>& timers, journal& ran) {
    timers.set_after(1, 700ms, [&ran] { ran.add("new"); });
  };
  CHECK(fail_everywhere(rondo::unlimited, set) > 0);
  CHECK(fail_everywhere(1, set) > 0);
}

TEST_CASE("setting a key to a recurrence without memory leaves the old timer") {
  CHECK(fail_everywhere(rondo::unlimited, [](keyed_timers<int>& timers, journal& ran) {
          timers.set(1, every(700ms).times(1), [&ran] { ran.add("new"); });
        }) > 1);
}

TEST_CASE("setting a new key without memory leaves it without a timer, and keeps nothing of it") {
  const std::function<void(keyed_timers<std::string>&, std::string&&, rondo::task &&)> ways[] = {
      [](auto& timers, auto&& key, auto&& work) { timers.set_after(std::move(key), 1ms, std::move(work)); },
      [](auto& timers, auto&& key, auto&& work) { timers.set_at(std::move(key), at(1ms), std::move(work)); },
      [](auto& timers, auto&& key, auto&& work) { timers.set(std::move(key), every(1ms), std::move(work)); },
      [](auto& timers, auto&& key, auto&& work) {
        timers.try_set_after(std::move(key), 1ms, std::move(work));
      },
  };
  for (const auto& set : ways) {
    bool struck = true;
    for (std::size_t k = 0; struck; ++k) {
      REQUIRE(k < 1000);
      manual_timer time;
      const auto token = std::make_shared<int>(0);
      keyed_timers<std::string> timers(time);
      const std::string name = "a key that is too long to be held inside";
      bool done = false;
      {
        std::string key = name;
        rondo::task work = [token] {};
        const failing_new failing(k);
        try {
          set(timers, std::move(key), std::move(work));
          done = true;
        } catch (const std::bad_alloc&) {
        }
        struck = failing.struck();
      }
      CHECK(timers.contains(name) == done);
      CHECK(time.pending() == (done ? 1 : 0));
      CHECK(token.use_count() == (done ? 2 : 1));
      CHECK(adds_up(time.stats()));
      CHECK((done || struck));
    }
  }
}

TEST_CASE("without memory, rescheduling a key either moves its timer or leaves it where it was") {
  for (std::size_t k = 0;; ++k) {
    manual_timer time;
    keyed_timers<int> timers(time);
    journal ran;
    timers.set_after(1, 5ms, ran.noting("1"));
    timers.set_after(2, 7ms, ran.noting("2"));
    bool done = false, struck = false;
    {
      const failing_new failing(k);
      try {
        done = timers.reschedule_after(1, 900ms);  // the first far timer
      } catch (const std::bad_alloc&) {
      }
      struck = failing.struck();
    }
    time.advance(900ms);
    CHECK(ran.take() == (done ? "2 1" : "1 2"));
    if (!struck) {
      CHECK(k > 0);
      return;
    }
  }
}

TEST_CASE("querying, cancelling and destroying keyed timers needs no memory") {
  manual_timer time;
  const auto token = std::make_shared<int>(0);
  bool right = true;
  {
    keyed_timers<int> timers(time);
    for (int key = 0; key != 100; ++key) timers.set_after(key, 1h, [token] {});
    for (int key = 100; key != 200; ++key) timers.set(key, every(1h), [token] {});
    const failing_new failing;
    right = timers.size() == 200 && timers.contains(7) && !timers.contains(700) &&
            timers.cancel(7) == cancel_result::cancelled && timers.cancel(7) == cancel_result::gone;
    for (int key = 20; key != 120; ++key) right = right && timers.cancel(key) == cancel_result::cancelled;
    timers.clear();
    right = right && timers.size() == 0;
  }
  CHECK(right);
  CHECK(token.use_count() == 1);
  CHECK(time.stats().cancelled == 200);
}

/// Creates a T with the 1st, 2nd, … allocation failing, and returns how often that failed.
template <class T>
int make_everywhere() {
  for (int k = 0;; ++k) {
    REQUIRE(k < 1000);
    manual_timer time;
    const auto before = bytes_held();
    bool made = false;
    {
      const failing_new failing(static_cast<std::size_t>(k));
      try {
        const T on_top(time);
        made = true;
      } catch (const std::bad_alloc&) {
      }
    }
    CHECK(bytes_held() == before);
    if (made) return k;
  }
}

TEST_CASE("without memory, keyed timers and scopes are either created or not, and leave nothing behind") {
  CHECK(make_everywhere<keyed_timers<int>>() > 0);
  CHECK(make_everywhere<timer_scope>() > 0);
}

TEST_CASE("a key that is not set for want of memory leaves its place under the limit to others") {
  bool struck = true;
  for (std::size_t k = 0; struck; ++k) {
    REQUIRE(k < 1000);
    manual_timer time(options{.max_pending = 1});
    keyed_timers<int> timers(time);
    const auto token = std::make_shared<int>(0);
    {
      const failing_new failing(k);
      try {
        timers.set_after(1, 1h, [token] {});
      } catch (const std::bad_alloc&) {
      }
      struck = failing.struck();
    }
    timers.cancel(1);
    CHECK(token.use_count() == 1);
    CHECK(time.schedule_after(1h, doing_nothing()) != timer_id{});
    CHECK_THROWS_AS(time.schedule_after(1h, doing_nothing()), capacity_error);
  }
}

TEST_CASE("scheduling through a scope without memory schedules nothing, and closing it needs none") {
  const std::function<void(timer_scope&, rondo::task &&)> ways[] = {
      [](timer_scope& scope, rondo::task&& work) { scope.schedule_after(1h, std::move(work)); },
      [](timer_scope& scope, rondo::task&& work) { scope.schedule_at(at(1h), std::move(work)); },
      [](timer_scope& scope, rondo::task&& work) { scope.schedule_every(1h, std::move(work)); },
      [](timer_scope& scope, rondo::task&& work) { scope.schedule(every(1h).times(1), std::move(work)); },
  };
  for (const auto& schedule : ways) {
    bool struck = true;
    std::size_t k = 0;
    for (; struck; ++k) {
      REQUIRE(k < 1000);
      manual_timer time(options{.max_pending = 21});
      const auto token = std::make_shared<int>(0);
      {
        timer_scope scope(time);
        for (int i = 0; i != 20; ++i) scope.schedule_after(1ms * i, [token] {});
        {
          rondo::task work = [token] {};
          const failing_new failing(k);
          try {
            schedule(scope, std::move(work));
          } catch (const std::bad_alloc&) {
          }
          struck = failing.struck();
        }
        CHECK(scope.pending() == time.pending());
        CHECK(token.use_count() == 1 + static_cast<long>(time.pending()));
        if (time.pending() == 20) CHECK(scope.schedule_after(1h, doing_nothing()) != timer_id{});
        CHECK_THROWS_AS(scope.schedule_after(1h, doing_nothing()), capacity_error);
        const failing_new failing;
        scope.close();
      }
      CHECK(token.use_count() == 1);
      CHECK(time.pending() == 0);
      CHECK(adds_up(time.stats()));
    }
    CHECK(k > 1);
  }
}

TEST_CASE("other calls of a scope need no memory, or change nothing without it") {
  manual_timer time;
  timer_scope scope(time);
  const timer_id ids[] = {scope.schedule_after(1h, doing_nothing()),
                          scope.schedule_after(1h, doing_nothing()),
                          scope.schedule_after(1h, doing_nothing())};
  use_up_chunks([&](duration after) { time.schedule_after(after, doing_nothing()); });
  bool refused = false, right = true;
  {
    const failing_new failing;
    try {
      scope.reschedule_after(ids[0], 30min);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    right = scope.pending(ids[0]) && scope.pending() == 3 &&
            scope.cancel(ids[1]) == cancel_result::cancelled &&
            scope.cancel_and_wait(ids[1]) == cancel_result::gone;
    scope.cancel_all();
    right = right && scope.pending() == 0;
  }
  CHECK(refused);
  CHECK(right);
  CHECK(time.stats().cancelled == 3);
}

routine sleeping(manual_timer& time, bool& slept) {
  co_await sleep_for(time, 1h);
  slept = true;
}

#ifdef __cpp_lib_jthread
routine sleeping_stoppably(manual_timer& time, std::stop_token token, bool& slept) {
  const bool to_the_end = co_await sleep_for(time, 1h, token);
  slept = to_the_end;
}
#endif

/// begin(timer, slept) creates a coroutine that sleeps for an hour, with the 1st, 2nd, … allocation failing.
template <class Begin>
void sleep_everywhere(Begin&& begin) {
  int refusals = 0;
  bool struck = true;
  for (std::size_t k = 0; struck; ++k) {
    REQUIRE(k < 1000);
    manual_timer time;
    bool slept = false;
    const auto before = bytes_held();
    {
      std::optional<routine> sleeper;
      {
        const failing_new failing(k);
        try {
          sleeper.emplace(begin(time, slept));
        } catch (const std::bad_alloc&) {  // there was no memory even for the coroutine
        }
        struck = failing.struck();
      }
      if (sleeper && sleeper->done()) {
        CHECK_THROWS_AS(sleeper->rethrow(), std::bad_alloc);
        ++refusals;
      }
      const bool asleep = sleeper && !sleeper->done();
      CHECK(time.pending() == (asleep ? 1 : 0));
      CHECK(time.advance(1h) == (asleep ? 1 : 0));
      CHECK(slept == asleep);
      CHECK(adds_up(time.stats()));
    }
    if (!slept) CHECK(bytes_held() <= before + 98'304);  // kept by the scheduler: a shard, with its records
  }
  CHECK(refusals > 1);
}

TEST_CASE("without memory a co_await throws, nothing is scheduled, and nothing is left behind") {
  sleep_everywhere([](manual_timer& time, bool& slept) { return sleeping(time, slept); });
#ifdef __cpp_lib_jthread
  std::stop_source source;
  sleep_everywhere(
      [&](manual_timer& time, bool& slept) { return sleeping_stoppably(time, source.get_token(), slept); });
#endif
}

routine persistent(manual_timer& time, int& refusals, bool& slept) {
  for (;;) {
    try {
      co_await sleep_for(time, 1ms);
      break;
    } catch (const std::bad_alloc&) {
      ++refusals;
    }
  }
  slept = true;
}

TEST_CASE("a co_await that found no memory may be tried again") {
  manual_timer time;
  int refusals = 0;
  bool slept = false;
  std::optional<routine> sleeper;
  {
    const failing_new failing(1, 3);  // after the allocation of the coroutine itself
    sleeper.emplace(persistent(time, refusals, slept));
  }
  CHECK(refusals == 3);
  CHECK(time.advance(1ms) == 1);
  CHECK(slept);
}

TEST_SUITE_END();

}  // namespace on_top_out_of_memory
