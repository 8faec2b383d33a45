// Coroutines that sleep, on virtual time.
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>

#include "on_top/coroutines.hpp"
#include "scheduler/virtual_time.hpp"

namespace on_top_coroutine {

using namespace rondo;
using namespace rondo::test;

/// Sleeps, and notes the result: "slept" or "dropped". The coroutine holds `token` as long as it lives.
template <class When>
routine nap(scheduler& s, When d, journal& notes, std::shared_ptr<int> token = nullptr) {
  try {
    co_await sleep_for(s, d);
    notes.add("slept");
  } catch (const stopped_error&) {
    notes.add("dropped");
  }
  token.reset();
}

TEST_CASE("a coroutine resumes at its deadline, not before") {
  manual_timer time;
  journal notes;
  const auto sleeper = nap(time, 5ms, notes);
  CHECK(time.pending() == 1);
  CHECK(time.next_due() == at(5ms));
  time.advance(5ms - 1ns);
  CHECK_FALSE(sleeper.done());
  time.advance(1ns);
  CHECK(sleeper.done());
  CHECK(notes.take() == "slept");
  CHECK(adds_up(time.stats()));
  CHECK(time.stats().completed == 1);
}

TEST_CASE("each sleep counts from the end of the one before") {
  manual_timer time;
  std::vector<time_point> woken;
  const auto sleeper = [](manual_timer& t, std::vector<time_point>& w) -> routine {
    for (int i = 1; i <= 1000; ++i) {
      co_await sleep_for(t, 1ms);
      w.push_back(t.now());
    }
  }(time, woken);
  CHECK(time.advance(10s) == 1000);
  REQUIRE(woken.size() == 1000);
  for (std::size_t i = 0; i != woken.size(); ++i) CHECK(woken[i] == at(static_cast<int>(i + 1) * 1ms));
  CHECK(sleeper.done());
}

TEST_CASE("sleepers and tasks of one tick run in the order in which they were scheduled") {
  manual_timer time;
  journal notes;
  const auto sleep_and_note = [](manual_timer& t, journal& n, const char* name) -> routine {
    co_await sleep_for(t, 1ms);
    n.add(name);
  };
  const auto a = sleep_and_note(time, notes, "a");
  time.schedule_after(1ms, notes.noting("b"));
  const auto c = sleep_and_note(time, notes, "c");
  time.advance(1ms);
  CHECK(notes.take() == "a b c");
}

TEST_CASE("sleep_until() takes any time point of the steady clock, and rounds up") {
  manual_timer time;
  const auto sleeper = [](manual_timer& t) -> routine {
    co_await sleep_until(t, at(3ms));
    CHECK(t.now() == at(3ms));
    co_await sleep_until(t, std::chrono::time_point<scheduler::clock, std::chrono::seconds>(2s));
    CHECK(t.now() == at(2s));
    using picoseconds = std::chrono::duration<long long, std::pico>;
    co_await sleep_until(
        t, std::chrono::time_point<scheduler::clock, picoseconds>(picoseconds(2'001'000'000'001)));
    CHECK(t.now() == at(2002ms));
    co_await sleep_until(t, at(1s));  // in the past
    CHECK(t.now() == at(2002ms));
  }(time);
  time.advance(10s);
  CHECK(sleeper.done());
}

TEST_CASE("sleep_for() takes durations of any unit, including floating-point ones") {
  manual_timer time;
  const auto sleeper = [](manual_timer& t) -> routine {
    co_await sleep_for(t, 1min);
    CHECK(t.now() == at(1min));
    co_await sleep_for(t, std::chrono::duration<double>(0.25));
    CHECK(t.now() == at(1min + 250ms));
  }(time);
  time.advance(1h);
  CHECK(sleeper.done());
}

TEST_CASE("a sleep that is due at once still waits for the driver's next pass") {
  manual_timer time;
  journal notes;
  const auto zero = nap(time, 0s, notes);
  const auto negative = nap(time, -1h, notes);
  CHECK(notes.take() == "");
  CHECK(time.advance(0s) == 2);
  CHECK(notes.take() == "slept slept");
  CHECK(since_epoch(time) == 0s);
}

TEST_CASE("the longest duration, and a deadline past the clock's end, sleep forever") {
  manual_timer time;
  journal notes;
  auto a = nap(time, duration::max(), notes);
  auto b = nap(time, std::chrono::hours::max(), notes);
  auto c = [](manual_timer& t) -> routine { co_await sleep_until(t, time_point::max()); }(time);
  CHECK(time.pending() == 3);
  CHECK_FALSE(time.next_due().has_value());
  time.advance(24h * 365 * 200);
  CHECK(notes.take() == "");
  for (routine* r : {&a, &b, &c}) r->destroy();
  CHECK(time.pending() == 0);
}

TEST_CASE("sleeps refuse a NaN, and schedule nothing") {
  manual_timer time;
  journal notes;
  const auto sleeper =
      nap(time, std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()), notes);
  CHECK_THROWS_AS(sleeper.rethrow(), std::invalid_argument);
  CHECK(time.stats().scheduled == 0);
}

TEST_CASE("a coroutine resumes inside the job, wherever the executor runs it") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  journal notes;
  const auto sleeper = nap(time, 1ms, notes);
  CHECK(time.advance(1ms) == 1);
  CHECK_FALSE(sleeper.done());
  REQUIRE(jobs.size() == 1);
  jobs[0]();
  CHECK(sleeper.done());
}

TEST_CASE("destroying a suspended coroutine cancels its timer") {
  manual_timer time;
  journal notes;
  const auto token = std::make_shared<int>(0);
  auto sleeper = nap(time, 1ms, notes, token);
  CHECK(token.use_count() == 2);
  sleeper.destroy();
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 0);
  CHECK(time.stats().cancelled == 1);
  CHECK(time.advance(1h) == 0);
  CHECK(notes.take() == "");
}

TEST_CASE("destroying a suspended coroutine also cancels a job that an executor has not started") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  journal notes;
  auto sleeper = nap(time, 1ms, notes);
  time.advance(1ms);
  sleeper.destroy();
  CHECK(time.stats().cancelled == 1);
  REQUIRE(jobs.size() == 1);
  jobs[0]();
  jobs.clear();
  CHECK(notes.take() == "");
  CHECK(time.stats().rejected == 0);
}

TEST_CASE("a coroutine may be destroyed by a task, even by the one that runs just before it") {
  manual_timer time;
  journal notes;
  routine* second = nullptr;
  time.schedule_after(1ms, [&] { second->destroy(); });
  auto next = nap(time, 1ms, notes);
  second = &next;
  auto later = nap(time, 2ms, notes);
  time.schedule_after(1ms, [&] { later.destroy(); });
  CHECK(time.advance(1h) == 2);
  CHECK(notes.take() == "");
  CHECK(time.stats().cancelled == 2);
}

TEST_CASE("timers that were cancelled or have fired resume nothing when the scheduler ends") {
  journal notes;
  auto time = std::make_unique<manual_timer>();
  const auto slept = nap(*time, 1ms, notes);
  auto cancelled = nap(*time, 2ms, notes);
  time->advance(1ms);
  cancelled.destroy();
  time.reset();
  CHECK(notes.take() == "slept");
}

TEST_CASE("destroying the scheduler drops the coroutines that sleep on it") {
  journal notes;
  auto time = std::make_unique<manual_timer>();
  const auto soon = nap(*time, 1ms, notes);
  const auto never = nap(*time, duration::max(), notes);
  time.reset();
  CHECK(notes.take() == "dropped dropped");
  CHECK(soon.done());
  CHECK(never.done());
}

TEST_CASE("destroying entries of the list from stop() drops their coroutines, at that moment") {
  journal notes;
  manual_timer time;
  const auto a = nap(time, 2ms, notes);
  const auto b = nap(time, 1ms, notes);
  auto unfired = time.stop();
  REQUIRE(unfired.size() == 2);
  CHECK(notes.take() == "");
  unfired.pop_back();
  CHECK(a.done());
  CHECK_FALSE(b.done());
  unfired.clear();
  CHECK(notes.take() == "dropped dropped");
}

TEST_CASE("a coroutine whose task from stop() is run by hand has slept to the end") {
  journal notes;
  manual_timer time;
  const auto sleeper = nap(time, 1ms, notes);
  auto unfired = time.stop();
  REQUIRE(unfired.size() == 1);
  unfired[0].work();
  CHECK(notes.take() == "slept");
  unfired[0].work();  // a second time: the coroutine has already resumed
  unfired.clear();
  CHECK(notes.take() == "");
  CHECK(sleeper.done());
}

TEST_CASE("a list from stop() does not touch a coroutine that has been destroyed") {
  journal notes;
  manual_timer time;
  auto a = nap(time, 1ms, notes);
  auto b = nap(time, 2ms, notes);
  auto unfired = time.stop();
  a.destroy();
  b.destroy();
  REQUIRE(unfired.size() == 2);
  unfired[0].work();
  unfired.clear();
  CHECK(notes.take() == "");
}

TEST_CASE("a list may outlive the scheduler, and a coroutine may be destroyed in between") {
  journal notes;
  std::vector<unfired> list;
  auto time = std::make_unique<manual_timer>();
  auto a = nap(*time, 1ms, notes);
  const auto b = nap(*time, 2ms, notes);
  list = time->stop();
  time.reset();
  a.destroy();
  list.clear();
  CHECK(notes.take() == "dropped");
  CHECK(b.done());
}

TEST_CASE("an executor that drops the job drops the coroutine") {
  manual_timer time(options{.run_on = [](job) {}});
  journal notes;
  const auto sleeper = nap(time, 1ms, notes);
  time.advance(1ms);
  CHECK(notes.take() == "dropped");
  CHECK(sleeper.done());
  CHECK(time.stats().rejected == 1);
}

TEST_CASE("a coroutine that is dropped may destroy the scheduler") {
  auto time = std::make_unique<manual_timer>(options{.run_on = [](job) {}});
  journal notes;
  auto sleeper = [](std::unique_ptr<manual_timer>& t, journal& n) -> detached {
    try {
      co_await sleep_for(*t, 1ms);
    } catch (const stopped_error&) {
      t.reset();
      n.add("destroyed");
    }
  }(time, notes);
  sleeper.start();
  const auto other = nap(*time, 1s, notes);
  time->advance(1ms);
  CHECK(time == nullptr);
  CHECK(notes.take() == "dropped destroyed");
}

TEST_CASE("a coroutine that has slept may destroy the scheduler") {
  auto time = std::make_unique<manual_timer>();
  journal notes;
  auto sleeper = [](std::unique_ptr<manual_timer>& t, journal& n) -> detached {
    co_await sleep_for(*t, 1ms);
    t.reset();
    n.add("destroyed");
  }(time, notes);
  sleeper.start();
  const auto other = nap(*time, 1s, notes);
  time->advance(1h);
  CHECK(time == nullptr);
  CHECK(notes.take() == "dropped destroyed");
}

TEST_CASE("on a stopped scheduler no coroutine can sleep, and a dropped one cannot sleep again") {
  manual_timer time;
  const auto dropped = [](manual_timer& t) -> routine {
    try {
      co_await sleep_for(t, 1ms);
    } catch (const stopped_error&) {
    }
    co_await sleep_for(t, 1ms);
  }(time);
  time.stop();
  CHECK_THROWS_AS(dropped.rethrow(), stopped_error);
  const auto late = [](manual_timer& t) -> routine { co_await sleep_for(t, 1ms); }(time);
  CHECK_THROWS_AS(late.rethrow(), stopped_error);
  CHECK(time.stats().scheduled == 1);
}

TEST_CASE("beyond max_pending the co_await throws, and can be tried again") {
  manual_timer time(options{.max_pending = 1});
  journal notes;
  const auto first = nap(time, 1ms, notes);
  const auto second = [](manual_timer& t, journal& n) -> routine {
    auto again = sleep_for(t, 1ms);
    try {
      co_await again;
    } catch (const capacity_error&) {
      n.add("refused");
    }
    t.advance(1ms);
    co_await again;
    n.add("slept");
  }(time, notes);
  time.advance(1ms);
  CHECK(notes.take() == "refused slept slept");
  CHECK(second.done());
}

TEST_CASE("an exception that leaves the coroutine goes to on_error") {
  int errors = 0;
  manual_timer time(options{.on_error = [&](std::exception_ptr, const firing&) { ++errors; }});
  auto sleeper = [](manual_timer& t) -> routine {
    co_await sleep_for(t, 1ms);
    throw std::runtime_error("out");
  }(time);
  sleeper.let_out();
  CHECK(time.advance(1ms) == 1);
  CHECK(errors == 1);
}

TEST_CASE("a sleep that is not awaited schedules nothing, and may be moved before it is awaited") {
  manual_timer time;
  {
    [[maybe_unused]] auto unused = sleep_for(time, 1ms);
    [[maybe_unused]] auto too = sleep_until(time, at(1ms));
  }
  CHECK(time.stats().scheduled == 0);
  const auto sleeper = [](manual_timer& t) -> routine {
    auto made = sleep_for(t, 1ms);
    auto moved = std::move(made);
    co_await moved;
    co_await moved;  // again, counted from now
    CHECK(t.now() == at(2ms));
  }(time);
  time.advance(1s);
  CHECK(sleeper.done());
  sleeper.rethrow();
}

}  // namespace on_top_coroutine
