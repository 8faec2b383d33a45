// Runs on one thread are asked to stop by another one.
#include <version>
#ifdef __cpp_lib_jthread
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/timer_scope.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_interrupt {

using namespace rondo;
using namespace rondo::test;

/// A task that ends when it is asked to stop.
struct until_asked {
  gate begun;
  gate ended;

  auto task() {
    return [this](std::stop_token token) {
      gate asked;
      const std::stop_callback when_asked(token, [&] { asked.open(); });
      begun.open();
      if (asked.wait()) ended.open();
    };
  }
};

TEST_CASE("the calls that wait for a run ask it first, so they do not wait long") {
  until_asked run;
  auto t = std::make_unique<timer>();
  std::optional<timer_scope> scope(*t);
  std::optional<keyed_timers<int>> keys(*t);
  SUBCASE("cancel_and_wait") {
    const auto id = t->schedule_every(1ms, run.task());
    REQUIRE(run.begun.wait());
    CHECK(t->cancel_and_wait(id) == cancel_result::running);
  }
  SUBCASE("stop") {
    t->schedule_after(0s, run.task());
    REQUIRE(run.begun.wait());
    CHECK(t->stop().empty());
  }
  SUBCASE("stop with a limit") {
    t->schedule_after(0s, run.task());
    REQUIRE(run.begun.wait());
    CHECK(t->stop(patience));
  }
  SUBCASE("the destructor of the scheduler") {
    t->schedule_after(0s, run.task());
    REQUIRE(run.begun.wait());
    t.reset();
  }
  SUBCASE("the destructor of a scope") {
    scope->schedule_after(0s, run.task());
    REQUIRE(run.begun.wait());
    scope.reset();
  }
  SUBCASE("the destructor of keyed timers") {
    keys->set_after(1, 0s, run.task());
    REQUIRE(run.begun.wait());
    keys.reset();
  }
  CHECK(run.ended.count() == 1);
}

TEST_CASE("setting a key again ends the run in progress") {
  pool workers(2);
  timer t({.run_on = workers.executor()});
  keyed_timers<int> keys(t);
  until_asked first;
  until_asked second;
  keys.set_after(1, 0s, first.task());
  REQUIRE(first.begun.wait());
  keys.set_after(1, 0s, second.task());
  REQUIRE(second.begun.wait());
  CHECK(keys.cancel_and_wait(1) == cancel_result::running);
  CHECK(first.ended.count() == 1);
  CHECK(second.ended.count() == 1);
}

TEST_CASE("a task that sets its key again asks another run of the key, and not itself") {
  pool workers(2);
  timer t({.run_on = workers.executor()});
  keyed_timers<int> keys(t);
  until_asked other;
  bool asked = true;
  gate done;
  keys.set_after(1, 0s, [&](std::stop_token token) {
    keys.set_after(1, 0s, other.task());
    CHECK(other.begun.wait());
    keys.set_after(1, 1h, [] {});
    CHECK(other.ended.wait());
    asked = token.stop_requested();
    done.open();
  });
  CHECK(done.wait());
  CHECK_FALSE(asked);
}

TEST_CASE("drain() asks nobody, and a stop() after it does") {
  until_asked run;
  timer t;
  t.schedule_after(0s, run.task());
  REQUIRE(run.begun.wait());
  CHECK_FALSE(t.drain(1ms));
  CHECK(run.ended.count() == 0);
  CHECK(t.stop().empty());
  CHECK(run.ended.count() == 1);
}

TEST_CASE("no request is lost, whenever it meets the beginning of a run") {
  until_asked run;
  timer t({.tick = 1us});
  int running = 0;
  for (unsigned i = 0; i != 2'000; ++i) {
    const auto id = t.schedule_after(0s, run.task());
    spin(i % 500);
    if (t.cancel_and_wait(id) == cancel_result::running) ++running;
  }
  CHECK(run.ended.count() == running);
  CHECK(t.stats().fired == static_cast<std::uint64_t>(running));
}

TEST_CASE("several threads ask while runs overlap, and each run is asked") {
  pool workers(4);
  timer t({.tick = 100us, .run_on = workers.executor()});
  until_asked run;
  const auto id = t.schedule(every(100us).on_overlap(overlapping_runs::allow).times(4), run.task());
  REQUIRE(run.begun.wait(4));
  on_threads(3, [&](std::size_t) { t.cancel_and_wait(id); });
  CHECK(run.ended.count() == 4);
}

TEST_CASE("a stop callback that outlives its run is inside no later timer of the same record") {
  std::deque<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  gate begun, asked, later_begun;
  std::atomic<bool> later_ended{false};
  timer_id later;
  std::optional<std::stop_callback<std::function<void()>>> outliving;
  const auto first = time.schedule_after(0s, [&](std::stop_token token) {
    outliving.emplace(token, [&] {
      asked.open();
      CHECK(later_begun.wait());
      time.cancel_and_wait(later);
      CHECK(later_ended);
    });
    begun.open();
    CHECK(asked.wait());
  });
  time.advance(0s);
  std::thread worker([&] {
    jobs[0]();  // frees the record, which this thread uses again
    later = time.schedule_after(0s, [&](std::stop_token token) {
      gate asked_too;
      const std::stop_callback when_asked(token, [&] { asked_too.open(); });
      later_begun.open();
      CHECK(asked_too.wait());
      let_pass(20ms);
      later_ended = true;
    });
    time.advance(0s);
    jobs[1]();
  });
  CHECK(begun.wait());
  time.cancel(first);
  worker.join();
}

}  // namespace threads_interrupt
#endif
