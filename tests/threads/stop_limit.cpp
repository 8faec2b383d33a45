// stop(limit), which waits no longer than its limit, and stopping(), which tells long tasks that they should end.
#include <optional>
#include <thread>
#include <vector>

#include <rondo/manual_timer.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_stop_limit {

using namespace rondo;
using namespace rondo::test;

using clock = std::chrono::steady_clock;

/// One run that begins, and ends when the test says so.
struct held_run {
  gate begun, may_end;

  auto task() {
    return [this] {
      begun.open();
      may_end.wait();
    };
  }
};

TEST_CASE("stop(limit) returns the unfired timers when nothing is in progress") {
  timer t;
  t.schedule_after(1h, [] {});
  t.schedule_after(2h, [] {});
  const auto list = t.stop(patience);
  REQUIRE(list.has_value());
  CHECK(list->size() == 2);
  CHECK(t.stats().returned == 2);
}

TEST_CASE("stop(limit) gives up after the limit, and a later call gets the timers") {
  held_run run;
  timer t;
  t.schedule_after(0s, run.task());
  const auto id = t.schedule_after(1h, [] {});
  REQUIRE(run.begun.wait());
  const auto begin = clock::now();
  CHECK(t.stop(20ms) == std::nullopt);
  CHECK(clock::now() - begin >= 20ms);
  CHECK(t.stopping());
  CHECK_THROWS_AS(t.schedule_after(1s, [] {}), stopped_error);
  CHECK(t.stop(0s) == std::nullopt);
  CHECK(t.stop(-1h) == std::nullopt);
  run.may_end.open();
  const auto list = t.stop(patience);
  REQUIRE(list.has_value());
  REQUIRE(list->size() == 1);
  CHECK(list->front().id == id);
  CHECK(t.stop(0s).value().empty());
}

TEST_CASE("no run starts after stop(limit) has failed") {
  held_run run;
  std::atomic<int> others{0};
  timer t;
  t.schedule_after(0s, run.task());
  for (int i = 0; i != 10; ++i) t.schedule_after(0s, [&] { ++others; });
  REQUIRE(run.begun.wait());
  CHECK(t.stop(1ms) == std::nullopt);
  const int before = others;  // tasks of the same pass that ran first
  run.may_end.open();
  CHECK(t.stop().size() == static_cast<std::size_t>(10 - before));
  CHECK(others == before);
}

TEST_CASE("stop() with the longest limit waits like stop() without one") {
  held_run run;
  timer t;
  t.schedule_after(0s, run.task());
  REQUIRE(run.begun.wait());
  std::optional<std::vector<unfired>> list;
  std::thread stopper([&] { list = t.stop(std::chrono::hours::max()); });
  while (!t.stopping()) std::this_thread::yield();
  run.may_end.open();
  stopper.join();
  CHECK(list.has_value());
}

TEST_CASE("stop(limit) from inside waits for nothing") {
  gate done;
  std::optional<std::vector<unfired>> list;
  timer t;
  t.schedule_after(1h, [] {});
  t.schedule_after(0s, [&] {
    list = t.stop(patience);
    done.open();
  });
  REQUIRE(done.wait());
  REQUIRE(list.has_value());
  CHECK(list->size() == 1);
}

TEST_CASE("the limit of stop() is in real time, even on virtual time") {
  held_run run;
  pool workers(1);
  manual_timer time({.run_on = workers.executor()});
  time.schedule_after(1s, run.task());
  time.advance(1s);
  REQUIRE(run.begun.wait());
  const auto begin = clock::now();
  CHECK(time.stop(10ms) == std::nullopt);
  CHECK(clock::now() - begin >= 10ms);
  run.may_end.open();
  CHECK(time.stop(patience).has_value());
}

TEST_CASE(
    "of several stop() calls with and without a limit, one gets the timers and none returns too early") {
  for (int round = 0; round != 20; ++round) {
    held_run run;
    timer t;
    t.schedule_after(0s, run.task());
    for (int i = 0; i != 5; ++i) t.schedule_after(1h, [] {});
    REQUIRE(run.begun.wait());
    std::atomic<std::size_t> unfired_seen{0};
    std::atomic<int> gave_up{0};
    std::vector<std::thread> stoppers;
    for (int i = 0; i != 4; ++i)
      stoppers.emplace_back([&, i] {
        const auto list = t.stop(i % 2 == 0 ? duration(1us) : duration::max());
        if (list)
          unfired_seen += list->size();
        else
          ++gave_up;
      });
    while (gave_up != 2) std::this_thread::yield();
    CHECK(unfired_seen == 0);
    run.may_end.open();
    for (std::thread& s : stoppers) s.join();
    CHECK(unfired_seen == 5);
    CHECK(t.stats().returned == 5);
  }
}

TEST_CASE("a long task can see that it should end") {
  const auto look_until_stopped = [](timer& t, gate& begun) {
    begun.open();
    const auto end = clock::now() + patience;
    while (!t.stopping() && clock::now() < end) std::this_thread::yield();
  };
  gate begun;
  SUBCASE("by stop()") {
    timer t;
    t.schedule_after(0s, [&] { look_until_stopped(t, begun); });
    REQUIRE(begun.wait());
    CHECK_FALSE(t.stopping());
    t.stop();
    CHECK(t.stopping());
  }
  SUBCASE("by drain()") {
    timer t;
    t.schedule_after(0s, [&] { look_until_stopped(t, begun); });
    REQUIRE(begun.wait());
    CHECK(t.drain(patience));
    CHECK(t.stopping());
  }
  SUBCASE("by the destructor") {
    timer t;
    t.schedule_after(0s, [&] { look_until_stopped(t, begun); });
    REQUIRE(begun.wait());
  }
}

TEST_CASE("stopping() stays true after a drain() that failed") {
  manual_timer time;
  time.schedule_after(1h, [] {});
  CHECK_FALSE(time.stopping());
  CHECK_FALSE(time.drain(1s));
  CHECK(time.stopping());
}

}  // namespace threads_stop_limit
