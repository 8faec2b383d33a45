// The gentle end, under threads.
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/timer.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace {

using namespace rondo::test;
using namespace std::chrono_literals;

TEST_CASE("drain waits for what is due and for what runs") {
  rondo::timer timer;
  std::atomic<int> runs{0};
  timer.schedule_after(20ms, [&] {
    std::this_thread::sleep_for(20ms);
    ++runs;
  });
  timer.schedule_after(10ms, [&] { ++runs; });
  timer.schedule_every(1ms, [] {});
  CHECK(timer.drain(1min));
  CHECK(runs == 2);
  CHECK(timer.pending() == 0);
  CHECK_THROWS_AS(timer.schedule_after(1s, [] {}), rondo::stopped_error);
}

TEST_CASE("drain gives up at its limit") {
  rondo::timer timer;
  timer.schedule_after(1h, [] {});
  const auto before = rondo::scheduler::clock::now();
  CHECK(!timer.drain(20ms));
  CHECK(rondo::scheduler::clock::now() - before >= 20ms);
  CHECK(timer.stop().size() == 1);
}

TEST_CASE("a stop ends a drain on another thread") {
  rondo::timer timer;
  timer.schedule_after(1h, [] {});
  std::thread draining([&] { timer.drain(1h); });
  CHECK(timer.stop().size() <= 1);
  draining.join();
}

TEST_CASE("no timer gets lost between many producers, a pool and a drain") {
  for (int round = 0; round != 50; ++round) {
    pool workers(2);
    rondo::timer timer({.tick = 10us, .run_on = [&](rondo::job j) { workers.post(std::move(j)); }});
    std::atomic<int> runs{0}, accepted{0};
    std::vector<std::thread> producers;
    for (int p = 0; p != 3; ++p)
      producers.emplace_back([&, p] {
        try {
          for (int i = 0;; ++i) {
            const auto id = i % 5 == 0 ? timer.schedule_every(20us, [] {})
                                       : timer.schedule_after((i * 37 + p) % 500 * 1us, [&] { ++runs; });
            if (i % 5 != 0) ++accepted;
            if (i % 5 == 0 && i % 2 == 0) timer.reschedule_after(id, 1h);
          }
        } catch (const rondo::stopped_error&) {
        }
      });
    std::this_thread::sleep_for(200us);
    CHECK(timer.drain(1min));
    for (auto& p : producers) p.join();
    CHECK(runs == accepted);
    const auto s = timer.stats();
    CHECK(s.pending == 0);
    CHECK(s.scheduled == s.completed);
    CHECK(s.cancelled + s.returned + s.rejected == 0);
    CHECK(timer.stop().empty());
  }
}

}  // namespace
