// Without memory, an operation is done or not done, and nothing that was promised is lost.
#include <algorithm>
#include <memory>
#include <new>

#include "scheduler/failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace {

using namespace rondo::test;
using rondo::cancel_result;
using rondo::duration;
using rondo::firing;
using rondo::job;
using rondo::manual_timer;
using rondo::options;
using rondo::time_point;
using rondo::timer_id;

/// A timer with work near and far, in every part of the pool and of few buckets.
struct world {
  manual_timer time{options{.buckets = 4, .max_pending = 200}};
  std::vector<firing> runs;
  std::vector<timer_id> ids;

  world() {
    runs.reserve(10'000);
    ids.reserve(200);
    for (int i = 0; i != 64; ++i)  // as many as the pool makes at a time: the next one makes it grow
      ids.push_back(time.schedule_after((i * i % 97 + 1) * 1ms, recording(runs)));
  }

  std::string state() {
    std::string s = std::to_string(time.pending()) + ' ' + std::to_string(time.stats().scheduled) + ' ' +
                    std::to_string(time.next_due().value_or(time_point::max()).time_since_epoch().count());
    for (const timer_id id : ids) s += time.pending(id) ? '+' : '-';
    return s;
  }

  /// What runs until all is done, in order.
  std::string rest() {
    runs.clear();
    time.advance(1000h);
    std::string s;
    for (const firing& f : runs)
      s += std::to_string(std::find(ids.begin(), ids.end(), f.id) - ids.begin()) + ' ';
    return s;
  }
};

/// Does `operation` in fresh worlds with the 1st, 2nd, … allocation failing, until it succeeds. Each time it
/// failed the world must be as it was; returns how often that happened.
template <class Operation>
int fail_everywhere(Operation&& operation) {
  for (int k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    world untouched, w;
    const std::string before = w.state();
    bool done = false;
    {
      const failing_new failing(static_cast<std::size_t>(k));
      try {
        operation(w);
        done = true;
      } catch (const std::bad_alloc&) {
      }
      if (done && !failing.struck()) return k;
    }
    if (done) continue;  // it made do without
    CHECK(w.state() == before);
    CHECK(adds_up(w.time.stats()));
    CHECK(w.rest() == untouched.rest());
  }
}

// Where there is no such operator new, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE("scheduling without memory changes nothing") {
  CHECK(fail_everywhere([](world& w) { w.time.schedule_after(1ms, doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_after(1000h, doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_at(at(-1h), doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_every(123ms, doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_after(std::chrono::hours::max(), doing_nothing()); }) >
        0);
}

TEST_CASE("scheduling without memory gives back the place that it took") {
  manual_timer time(options{.max_pending = 1});
  for (int i = 0; i != 3; ++i) {
    const failing_new failing;
    CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), std::bad_alloc);
  }
  CHECK_NOTHROW(time.schedule_after(1ms, doing_nothing()));
  CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), rondo::capacity_error);
}

TEST_CASE("a refused callable is destroyed") {
  const auto token = std::make_shared<int>(0);
  fail_everywhere([&](world& w) { w.time.cancel(w.time.schedule_after(1000h, [token] {})); });
  CHECK(token.use_count() == 1);
}

TEST_CASE("rescheduling without memory leaves the timer where it was") {
  CHECK(fail_everywhere([](world& w) { w.time.reschedule_after(w.ids[17], 1000h); }) > 0);
  fail_everywhere([](world& w) { w.time.reschedule_after(w.ids[17], 1ms); });
  fail_everywhere([](world& w) { w.time.reschedule_at(w.ids[0], time_point::min()); });
  fail_everywhere([](world& w) { w.time.reschedule_after(w.ids[0], duration::max()); });
  // Of two in one tick, the one that came first stays so.
  CHECK(fail_everywhere([](world& w) { w.time.reschedule_after(w.ids[40], 1000h); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.reschedule_after(w.ids[57], 1000h); }) > 0);
}

TEST_CASE("rescheduling without memory leaves the timer in the pass in progress") {
  manual_timer time;
  journal ran;
  timer_id second;
  bool refused = false;
  time.schedule_at(at(5000ms), doing_nothing());
  time.schedule_after(1ms, [&] {
    const failing_new failing;
    try {
      time.reschedule_at(second, at(5512ms));  // another round of a bucket that has had only one so far
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  });
  second = time.schedule_after(1ms, ran.noting("second"));
  time.schedule_after(1ms, ran.noting("third"));
  CHECK(time.advance(1ms) == 3);
  CHECK(refused);
  CHECK(ran.take() == "second third");
}

TEST_CASE("stop() without memory has done nothing") {
  CHECK(fail_everywhere([](world& w) { w.time.stop(); }) > 0);
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  {
    const failing_new failing;
    CHECK_THROWS_AS(time.stop(), std::bad_alloc);
  }
  CHECK_NOTHROW(time.schedule_after(1ms, counting(runs)));
  CHECK(time.advance(1ms) == 2);
}

TEST_CASE("cancelling and asking need no memory") {
  world w;
  const failing_new failing;
  for (std::size_t i = 0; i != w.ids.size(); i += 2) {
    const bool right = w.time.pending(w.ids[i]) && w.time.cancel(w.ids[i]) == cancel_result::cancelled &&
                       w.time.stats().cancelled == i / 2 + 1;
    if (!right) FAIL("cancel() did not do without memory");
  }
}

TEST_CASE("without memory a scheduler is destroyed nevertheless, and its callables with it") {
  const auto token = std::make_shared<int>(0);
  {
    auto time = std::make_unique<manual_timer>();
    for (int i = 0; i != 100; ++i) time->schedule_after(i * 1ms, [token] {});
    time->schedule_every(1ms, [token] {});
    const failing_new failing;
    time.reset();
  }
  CHECK(token.use_count() == 1);
}

TEST_CASE("a pass that runs out of memory loses nothing: the next one goes on") {
  const std::size_t all = 64;
  for (std::size_t k = 0; k != 40; ++k) {
    CAPTURE(k);
    world w;
    w.runs.clear();
    {
      const failing_new failing(k, 3);
      for (int attempt = 0; attempt != 8; ++attempt) {
        try {
          w.time.advance(20ms);
        } catch (const std::bad_alloc&) {
        }
      }
    }
    w.time.advance(1000h);
    CHECK(w.runs.size() == all);
    CHECK(w.time.pending() == 0);
    CHECK(adds_up(w.time.stats()));
    CHECK(std::is_sorted(w.runs.begin(), w.runs.end(), [](auto& a, auto& b) { return a.due < b.due; }));
  }
}

/// Has memory run out, at 100 ms, in front of the tasks that `more` schedules for then.
template <class Body>
void fail_after_first(manual_timer& time, std::optional<failing_new>& failing, Body&& more) {
  time.schedule_after(100ms, [&failing] { failing.emplace(); });
  more();
  try {
    time.advance_to_next();
  } catch (const std::bad_alloc&) {
  }
}

TEST_CASE("a periodic task is armed again without any memory, and no point is lost") {
  std::optional<failing_new> failing;
  manual_timer time;
  std::vector<firing> runs;
  runs.reserve(1000);
  timer_id id;
  fail_after_first(time, failing, [&] { id = time.schedule_every(100ms, recording(runs)); });
  CHECK(runs.size() == 1);
  CHECK(time.pending(id));
  for (int i = 0; i != 30; ++i) {
    try {
      time.advance(10ms);
    } catch (const std::bad_alloc&) {
    }
  }
  failing.reset();
  time.advance(600ms);
  std::uint64_t points = 0;
  for (const firing& f : runs) points += 1 + f.missed;
  CHECK(points == 10);
  CHECK(time.now() == at(1000ms));
  CHECK(runs.back().due == at(1000ms));
  CHECK(time.stats().fired == runs.size() + 1);  // and the one that took the memory away
}

TEST_CASE("many periodic tasks are armed again without memory, each to its own time") {
  std::optional<failing_new> failing;
  manual_timer time;  // with so many buckets that the next run belongs to another, which has no memory yet
  std::vector<int> runs(40);
  std::vector<timer_id> ids;
  fail_after_first(time, failing, [&] {
    time.elapse(50ms);
    for (int& count : runs) ids.push_back(time.schedule_every(50ms, counting(count)));
  });
  failing.reset();
  CHECK(time.pending() == 40);
  CHECK(time.next_due() == at(150ms));

  SUBCASE("they go on") {
    time.advance(500ms);
    CHECK(runs == std::vector<int>(40, 11));
  }
  SUBCASE("they can be cancelled") {
    for (const auto id : ids) CHECK(time.cancel(id) == cancel_result::cancelled);
    CHECK_FALSE(time.next_due().has_value());
    time.advance(500ms);
    CHECK(runs == std::vector<int>(40, 1));
  }
  SUBCASE("they can be moved") {
    for (const auto id : ids) CHECK(time.reschedule_after(id, 120ms));
    CHECK(time.next_due() == at(220ms));
    time.advance(120ms);
    CHECK(runs == std::vector<int>(40, 2));
  }
  SUBCASE("they come back from stop()") {
    const auto list = time.stop();
    REQUIRE(list.size() == 40);
    for (const auto& u : list) CHECK(u.due == at(150ms));
  }
  CHECK(adds_up(time.stats()));
}

TEST_CASE("handing over needs no memory of the library's") {
  std::vector<job> jobs;
  jobs.reserve(100);
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  int runs = 0;
  for (int i = 0; i != 10; ++i) time.schedule_after(1ms, counting(runs));
  time.elapse(1ms);
  {
    const failing_new failing;
    CHECK(time.advance(0s) == 10);
    for (job& j : jobs) j();
  }
  CHECK(runs == 10);
  CHECK(time.stats().failed == 0);
}

TEST_CASE("scheduling a recurrence without memory changes nothing") {
  const auto r = rondo::cycle({1ms, 1000h}).jitter(0.5);
  CHECK(fail_everywhere([&](world& w) { w.time.schedule(r, doing_nothing()); }) > 0);
  const rondo::on where([](job j) { j(); });
  CHECK(fail_everywhere([&](world& w) { w.time.schedule(r, doing_nothing(), where); }) > 0);
  CHECK(fail_everywhere([&](world& w) { w.time.schedule_after(1000h, doing_nothing(), where); }) > 0);
}

TEST_CASE("late runs of a burst need no memory, inline and on an executor") {
  for (const bool inline_runs : {true, false}) {
    CAPTURE(inline_runs);
    std::vector<job> jobs;
    jobs.reserve(100);
    options o;
    if (!inline_runs) o.run_on = [&](job j) { jobs.push_back(std::move(j)); };
    std::vector<firing> runs;
    runs.reserve(100);
    manual_timer time(o);
    time.schedule(rondo::every(10ms).on_missed(rondo::missed_runs::burst), recording(runs));
    time.elapse(100ms);
    {
      const failing_new failing;
      for (int i = 0; i != 20; ++i) {
        try {
          time.advance(0s);
        } catch (const std::bad_alloc&) {
        }
        for (job& j : jobs) j();
        jobs.clear();
      }
    }
    for (int i = 0; i != 20; ++i) {
      time.advance(0s);
      for (job& j : jobs) j();
      jobs.clear();
    }
    REQUIRE(runs.size() == 10);
    for (std::size_t i = 0; i != 10; ++i) CHECK(runs[i].due == at((static_cast<int>(i) + 1) * 10ms));
  }
}

TEST_CASE("overlapping runs without memory for a ticket wait for the next pass") {
  std::vector<job> jobs;
  jobs.reserve(100);
  std::vector<firing> runs;
  runs.reserve(100);
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  time.schedule(rondo::every(10ms).on_overlap(rondo::overlapping_runs::allow), recording(runs));
  time.advance(10ms);
  bool refused = false;
  {
    const failing_new failing;
    try {
      time.advance(10ms);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  }
  CHECK(refused);
  CHECK(jobs.size() == 1);
  CHECK(time.advance(0s) == 1);
  for (job& j : jobs) j();
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].due == at(20ms));
  CHECK(runs[1].run == 2);
}

TEST_CASE("what was kept back for a run waits for the driver without memory, too") {
  for (const auto& r :
       {rondo::every(10ms).on_overlap(rondo::overlapping_runs::queue_one), rondo::after_completion(10ms)}) {
    CAPTURE(r);
    std::vector<job> jobs;
    jobs.reserve(100);
    std::vector<firing> runs;
    runs.reserve(100);
    manual_timer time(options{.buckets = 512, .run_on = [&](job j) { jobs.push_back(std::move(j)); }});
    time.schedule(r, recording(runs));
    time.advance(25ms);
    {
      const failing_new failing;
      jobs.at(0)();
    }
    CHECK(time.next_due().has_value());
    time.advance(15ms);
    jobs.at(1)();
    CHECK(runs.size() == 2);
  }
}

TEST_CASE("a drain without memory can be called again") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  time.schedule_every(1ms, counting(runs));
  {
    const failing_new failing;
    CHECK_THROWS_AS(time.drain(1s), std::bad_alloc);
  }
  CHECK(time.drain(1s));
  CHECK(runs == 1);
}

TEST_CASE("in the long run, scheduling, running and cancelling allocate nothing") {
  manual_timer time;
  int runs = 0;
  const auto work = [&] {
    for (int i = 0; i != 100; ++i) time.schedule_after((i % 10) * 1ms, counting(runs));
    for (int i = 0; i != 100; ++i) time.cancel(time.schedule_after(5ms, counting(runs)));
    time.advance(20ms);
  };
  for (int i = 0; i != 200; ++i) work();
  const failing_new failing;
  bool refused = false;
  try {
    for (int i = 0; i != 20; ++i) work();
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  CHECK_FALSE(refused);
  CHECK(runs == 22'000);
}

TEST_SUITE_END();

}  // namespace
