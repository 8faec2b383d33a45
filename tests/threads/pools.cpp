// Tasks on a thread pool.
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/manual_timer.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_pools {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("tasks run on the pool, not on the driver") {
  gate ran;
  std::thread::id driver, worker;
  pool workers(1);
  timer t(options{.run_on = [&](job j) {
    driver = std::this_thread::get_id();
    workers.post(std::move(j));
  }});
  t.schedule_after(0s, [&] {
    worker = std::this_thread::get_id();
    ran.open();
  });
  REQUIRE(ran.wait());
  t.stop();
  CHECK(driver != std::this_thread::get_id());
  CHECK(worker != driver);
}

TEST_CASE(
    "one worker runs jobs in the order of their ticks, and those of a tick in the order of scheduling") {
  pool workers(1);
  std::vector<int> order;
  gate ran;
  timer t(options{.tick = 1ms, .run_on = workers.executor()});
  const auto due = t.now() + 200ms;  // after all of them have been scheduled
  for (int i = 0; i != 100; ++i)
    t.schedule_at(due + (i % 2) * 2ms, [&, i] {
      order.push_back(i);
      ran.open();
    });
  REQUIRE(ran.wait(100));
  bool in_order = true;
  for (int i = 0; i != 50; ++i)
    in_order = in_order && order[static_cast<std::size_t>(i)] == 2 * i &&
               order[static_cast<std::size_t>(i) + 50] == 2 * i + 1;
  CHECK(in_order);
}

/// For the thread sanitizer: the job and schedule() access the record at the same time without a lock.
TEST_CASE("a job of a timer that is gone does not affect the next timer in its record") {
  manual_timer t;
  std::vector<job> jobs;
  const on stored([&](job j) { jobs.push_back(std::move(j)); });
  int runs = 0;
  for (int round = 0; round != 200; ++round) {
    const timer_id gone = t.schedule_after(
        0s, [&] { ++runs; }, stored);
    t.advance(0s);
    REQUIRE(jobs.size() == 1);
    REQUIRE(t.cancel(gone) == cancel_result::cancelled);
    std::thread other([late = std::move(jobs.back())]() mutable { late(); });
    jobs.clear();
    const timer_id next = t.schedule_every(
        1h, [&] { ++runs; }, stored);
    other.join();
    CHECK(t.cancel(next) == cancel_result::cancelled);
  }
  CHECK(runs == 0);
}

TEST_CASE("a periodic task on a slow pool never runs twice at once, and each point is accounted for") {
  pool workers(3);
  std::vector<firing> runs;
  std::atomic<int> at_once{0};
  int overlaps = 0;
  gate ran;
  timer t(options{.tick = 100us, .run_on = workers.executor()});
  const timer_id id = t.schedule_every(500us, [&](const firing& f) {
    overlaps += at_once.fetch_add(1) != 0;
    runs.push_back(f);
    let_pass(1300us);
    at_once.fetch_sub(1);
    ran.open();
  });
  REQUIRE(ran.wait(10));
  t.cancel_and_wait(id);
  CHECK(overlaps == 0);
  std::uint64_t missed = 0;
  for (std::size_t i = 0; i != runs.size(); ++i) {
    CHECK(runs[i].run == i + 1);
    missed += runs[i].missed;
    if (i > 0) CHECK((runs[i].due - runs[i - 1].due) % 500us == 0us);
  }
  const auto s = t.stats();
  CHECK(s.fired == runs.size());
  CHECK(s.missed == missed);
  CHECK(s.overlapped > 0);
  // Every point up to the one of the last run ran, was missed, or was dropped. Later points may have been dropped as
  // well.
  const auto points = static_cast<std::uint64_t>((runs.back().due - runs.front().due) / 500us) + 1;
  CHECK(s.fired + s.missed + s.overlapped >= points);
}

TEST_CASE(
    "a pool that is shut down before the timer rejects the jobs it still holds and those it still gets") {
  gate handed, blocked, may_end;
  std::atomic<int> ran{0};
  const auto token = std::make_shared<int>(0);
  auto workers = std::make_unique<pool>(1);
  timer t(options{.tick = 10us, .run_on = [&](job j) {
                    if (workers) workers->post(std::move(j));
                    handed.open();
                  }});
  t.schedule_after(0s, [&] {
    blocked.open();
    may_end.wait();
    ++ran;
  });
  REQUIRE(blocked.wait());
  for (int i = 0; i != 10; ++i) t.schedule_after(0s, [&ran, token] { ++ran; });
  REQUIRE(handed.wait(11));
  may_end.open();
  workers->shut_down();
  const int ran_before = ran;
  for (int i = 0; i != 10; ++i) t.schedule_after(0s, [&ran, token] { ++ran; });
  const timer_id often = t.schedule_every(1ms, [&ran, token] { ++ran; });
  REQUIRE(handed.wait(24));
  CHECK(t.pending(often));
  t.cancel_and_wait(often);
  t.stop();
  CHECK(ran == ran_before);
  CHECK(token.use_count() == 1);
  const auto s = t.stats();
  CHECK(s.fired == static_cast<std::uint64_t>(ran_before));
  // 21 one-shots, and three runs of the periodic timer. The last of these may have been cancelled while it was being
  // dropped.
  CHECK(s.rejected >= 21 - static_cast<std::uint64_t>(ran_before) + 2);
  CHECK(s.failed == 0);
  CHECK(adds_up(s));
}

TEST_CASE("jobs that run on two threads at the same time are all in the histograms") {
  std::vector<job> jobs;
  manual_timer t(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  constexpr int timers = 100'000;
  for (int i = 0; i != timers; ++i) t.schedule_after(1ms, [] {});
  t.advance(1ms);
  REQUIRE(jobs.size() == timers);
  std::atomic<int> here{0};
  const auto run = [&](std::size_t first) {
    for (++here; here != 2;) std::this_thread::yield();
    for (std::size_t i = first; i < jobs.size(); i += 2) jobs[i]();
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  const statistics s = t.stats();
  CHECK(s.fired == timers);
  CHECK(s.lateness.count() == timers);
  CHECK(s.run_time.count() == timers);
}

TEST_CASE("several timers can share one pool") {
  pool workers(2);
  gate ran;
  std::vector<std::unique_ptr<timer>> timers;
  for (int i = 0; i != 8; ++i)
    timers.push_back(std::make_unique<timer>(options{.run_on = workers.executor()}));
  for (int i = 0; i != 400; ++i)
    timers[static_cast<std::size_t>(i) % 8]->schedule_after(i % 5 * 1ms, [&] { ran.open(); });
  CHECK(ran.wait(400));
  timers.clear();
}

TEST_CASE("a task on a pool may schedule itself again at once") {
  pool workers(2);
  gate done;
  std::atomic<int> left{2000};
  struct again {
    timer* t;
    std::atomic<int>* left;
    gate* done;
    void operator()() const {
      if (left->fetch_sub(1) == 1) return done->open();
      t->schedule_after(0s, *this);
    }
  };
  timer t(options{.tick = 10us, .run_on = workers.executor()});
  t.schedule_after(0s, again{&t, &left, &done});
  CHECK(done.wait());
}

}  // namespace threads_pools
