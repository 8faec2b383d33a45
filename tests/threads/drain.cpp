// drain() with threads.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/manual_timer.hpp>
#include <rondo/polled_timer.hpp>
#include <rondo/timer.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_drain {

using namespace rondo::test;
using namespace std::chrono_literals;

/// Returns once a drain of `s` has begun on another thread.
void await_drain(rondo::scheduler& s) {
  try {
    for (;;) {
      s.cancel(s.schedule_after(rondo::duration::max(), [] {}));
      std::this_thread::yield();
    }
  } catch (const rondo::stopped_error&) {
  }
}

TEST_CASE("drain() waits for due timers and for runs in progress") {
  std::atomic<int> runs{0};
  rondo::timer timer;
  timer.schedule_after(20ms, [&] {
    let_pass(20ms);  // drain() must not return during this
    ++runs;
  });
  timer.schedule_after(10ms, [&] { ++runs; });
  timer.schedule_every(1ms, [] {});
  CHECK(timer.drain(1min));
  CHECK(runs == 2);
  CHECK(timer.pending() == 0);
  CHECK_THROWS_AS(timer.schedule_after(1s, [] {}), rondo::stopped_error);
}

TEST_CASE(
    "a periodic timer that is cancelled in its run is counted once when drain() begins before the run ends") {
  rondo::timer timer;
  std::atomic<bool> gave_up{false};
  timer.schedule_every(1ms, [&](const rondo::firing& f) {
    timer.cancel(f.id);
    std::thread([&] { gave_up = !timer.drain(0ms); }).join();
  });
  while (!gave_up) std::this_thread::yield();
  CHECK(timer.drain(1min));
  const rondo::statistics s = timer.stats();
  CHECK(s.pending == 0);
  CHECK(s.scheduled == 1);
  CHECK(s.cancelled == 1);
  CHECK(s.completed == 0);
}

TEST_CASE("drain() gives up at its limit") {
  rondo::timer timer;
  timer.schedule_after(1h, [] {});
  const auto before = rondo::scheduler::clock::now();
  CHECK(!timer.drain(20ms));
  CHECK(rondo::scheduler::clock::now() - before >= 20ms);
  CHECK(timer.stop().size() == 1);
}

TEST_CASE("stop() ends a drain() on another thread") {
  rondo::timer timer;
  timer.schedule_after(1h, [] {});
  bool drained = false;
  std::thread draining([&] { drained = timer.drain(1h); });
  await_drain(timer);
  CHECK(timer.stop().size() == 1);
  draining.join();
  CHECK(drained);  // nothing is pending by then
}

TEST_CASE("drain() of a manual timer waits in real time for jobs on other threads") {
  std::vector<std::thread> threads;
  rondo::manual_timer time({.run_on = [&](rondo::job j) {
    threads.emplace_back([j = std::move(j)]() mutable {
      let_pass(20ms);  // drain() must not return during this
      j();
    });
  }});
  std::atomic<int> runs{0};
  const auto start = time.now();
  time.schedule_after(1s, [&] {
    let_pass(20ms);
    ++runs;
  });
  time.schedule_after(2s, [&] { ++runs; });
  CHECK(time.drain(1min));
  CHECK(runs == 2);
  CHECK(time.now() == start + 2s);
  for (auto& t : threads) t.join();
}

// To reach a drain both before and during its sleep, the next two cases move several timers, each a little later.

TEST_CASE("a run that is taken back while drain() of a manual timer sleeps is submitted again at once") {
  std::vector<rondo::job> jobs;
  gate handed;
  rondo::manual_timer time({.run_on = [&](rondo::job j) {
    jobs.push_back(std::move(j));
    handed.open();
  }});
  const auto id = time.schedule_after(1s, [] {});
  std::thread draining([&] { time.drain(1h); });
  bool noticed = handed.wait();
  for (unsigned moves = 1; moves != 100 && noticed; ++moves) {
    spin(moves * 500);
    CHECK(time.reschedule_after(id, 0s));
    noticed = handed.wait(static_cast<long>(moves) + 1);
  }
  CHECK(noticed);
  time.stop();
  draining.join();
}

TEST_CASE("a timer that is moved to now while drain() of a polled timer sleeps runs at once") {
  rondo::polled_timer timer;
  gate ran;
  std::vector<rondo::timer_id> ids;
  for (int i = 0; i != 100; ++i) ids.push_back(timer.schedule_after(1h, [&] { ran.open(); }));
  std::thread draining([&] { timer.drain(2h); });
  await_drain(timer);
  bool noticed = true;
  for (unsigned moves = 0; moves != ids.size() && noticed; ++moves) {
    spin(moves * 500);
    CHECK(timer.reschedule_after(ids[moves], 0s));
    noticed = ran.wait(static_cast<long>(moves) + 1);
  }
  CHECK(noticed);
  timer.stop();
  draining.join();
}

TEST_CASE("no timer is lost between many producers, a pool and drain()") {
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
    while (accepted < 100) std::this_thread::yield();
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

/// Calls a function when it is destroyed.
struct at_end {
  std::function<void()> call;
  explicit at_end(std::function<void()> f) : call(std::move(f)) {}
  at_end(const at_end&) = delete;
  at_end& operator=(const at_end&) = delete;
  ~at_end() { call(); }
};

TEST_CASE(
    "the destructor of a periodic callable may stop the scheduler if the driver ends it during a drain") {
  gate in_one_shot, in_first, second_ended;
  bool refused = false;
  int runs = 0;
  rondo::manual_timer time;
  auto first = std::make_shared<at_end>([&] {
    in_first.open();
    second_ended.wait();
  });
  auto second = std::make_shared<at_end>([&] {
    try {
      time.advance(1ms);  // refused: it would wait for itself
    } catch (const std::logic_error&) {
      refused = true;
    }
    time.stop();
    second_ended.open();
  });
  time.schedule_after(10ms, [&] {
    in_one_shot.open();
    in_first.wait();
  });
  time.schedule_every(5ms, [first] {});
  time.schedule_every(5ms, [second, &runs] { ++runs; });
  first.reset();
  second.reset();
  // The driver is blocked in the one-shot until the drain is blocked ending the first timer. So the driver ends the
  // second one.
  std::thread driver([&] { time.advance(10ms); });
  CHECK(in_one_shot.wait());
  std::thread draining([&] { time.drain(1s); });
  CHECK(second_ended.wait());
  driver.join();
  draining.join();
  CHECK(refused);
  CHECK(runs == 1);  // at 5 ms: no run begins after drain() has begun
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a job that starts while drain() is ending the periodic timers runs to its end") {
  std::vector<rondo::job> jobs;
  gate in_first, job_runs, second_taken;
  std::atomic<int> alive{0}, ended{0};
  rondo::manual_timer time;
  auto first = std::make_shared<at_end>([&] {  // blocks the drain
    in_first.open();
    second_taken.wait();
  });
  auto second = std::make_shared<at_end>([&] { --alive; });
  ++alive;
  const rondo::on shelf([&](rondo::job j) { jobs.push_back(std::move(j)); });
  time.schedule_every(
      5ms, [first] {}, shelf);
  auto run = [&, second] {
    job_runs.open();
    second_taken.wait();
    CHECK(alive == 1);
    ++ended;
  };
  time.schedule_every(5ms, std::move(run), shelf);
  first.reset();
  second.reset();
  time.advance(5ms);
  REQUIRE(jobs.size() == 2);
  std::thread draining([&] { time.drain(20ms); });
  CHECK(in_first.wait());
  std::thread worker([&] { jobs[1](); });
  CHECK(job_runs.wait());
  time.advance(5ms);  // reaches the next point of the second timer, whose run is in progress
  second_taken.open();
  worker.join();
  draining.join();
  CHECK(ended == 1);
  CHECK(alive == 0);
  CHECK(time.stats().completed == 2);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("drain() ends a periodic timer whose run ends or is dropped after drain() has looked for it") {
  for (const bool runs : {true, false}) {
    CAPTURE(runs);
    std::vector<rondo::job> jobs;
    gate in_first, second_done;
    rondo::manual_timer time;
    auto first = std::make_shared<at_end>([&] {  // blocks the drain, after it has found both
      in_first.open();
      second_done.wait();
    });
    const auto alive = std::make_shared<int>();
    const rondo::on shelf([&](rondo::job j) { jobs.push_back(std::move(j)); });
    time.schedule_every(
        1ms, [first] {}, shelf);
    time.schedule(
        rondo::after_completion(1h).first_after(1ms), [alive] {}, shelf);
    first.reset();
    time.advance(1ms);
    REQUIRE(jobs.size() == 2);
    bool drained = false;
    std::thread draining([&] { drained = time.drain(20ms); });
    CHECK(in_first.wait());
    if (runs) jobs[1]();
    jobs[1] = rondo::job();
    second_done.open();
    draining.join();
    CHECK(drained);
    CHECK(alive.use_count() == 1);
    CHECK(time.stats().completed == 2);
    CHECK(time.stats().rejected == (runs ? 0 : 1));
    CHECK(adds_up(time.stats()));
  }
}

}  // namespace threads_drain
