// cancel_and_wait() returns once no run is in progress and the callable has been destroyed.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_cancel_and_wait {

using namespace rondo;
using namespace rondo::test;

/// One run that begins, and ends when the test says so.
struct held_run {
  gate begun, may_end;
  int ended = 0;  // not atomic: a thread that has waited for the run may read it
  std::shared_ptr<int> token = std::make_shared<int>(0);

  auto task() {
    return [this, held = token] {
      begun.open();
      may_end.wait();
      ++ended;
    };
  }
};

/// Cancels on `waiters` threads, then lets the run end, and checks that each thread waited for it.
void check_waiting(timer& t, timer_id id, held_run& run, std::size_t waiters) {
  REQUIRE(run.begun.wait());
  std::vector<cancel_result> results(waiters, cancel_result::gone);
  std::vector<int> ended(waiters, -1);
  gate about_to_wait;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i != waiters; ++i)
    threads.emplace_back([&, i] {
      about_to_wait.open();
      results[i] = t.cancel_and_wait(id);
      ended[i] = run.ended;
    });
  REQUIRE(about_to_wait.wait(static_cast<long>(waiters)));
  while (t.pending(id)) std::this_thread::yield();  // otherwise a periodic timer would begin another run
  run.may_end.open();
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i != waiters; ++i) CHECK(ended[i] == 1);
  CHECK(run.token.use_count() == 1);
}

TEST_CASE("cancel_and_wait() waits for a run on the driver") {
  held_run run;
  timer t;
  SUBCASE("of a one-shot") { check_waiting(t, t.schedule_after(0s, run.task()), run, 1); }
  SUBCASE("of a periodic task") { check_waiting(t, t.schedule_every(1ms, run.task()), run, 1); }
  SUBCASE("in several threads") { check_waiting(t, t.schedule_every(1ms, run.task()), run, 3); }
  CHECK(t.pending() == 0);
}

TEST_CASE("cancel_and_wait() waits for a run on a pool") {
  held_run run;
  pool workers(2);
  timer t(options{.run_on = workers.executor()});
  SUBCASE("of a one-shot") { check_waiting(t, t.schedule_after(0s, run.task()), run, 1); }
  SUBCASE("of a periodic task") { check_waiting(t, t.schedule_every(1ms, run.task()), run, 1); }
  SUBCASE("in several threads") { check_waiting(t, t.schedule_after(0s, run.task()), run, 3); }
  CHECK(t.pending() == 0);
}

TEST_CASE("during a run every cancel() returns running, and no call waits unnecessarily") {
  held_run run;
  pool workers(1);
  timer t(options{.run_on = workers.executor()});
  const timer_id id = t.schedule_every(1ms, run.task());
  REQUIRE(run.begun.wait());
  CHECK(t.cancel(id) == cancel_result::running);
  CHECK(t.cancel(id) == cancel_result::running);
  CHECK_FALSE(t.pending(id));
  CHECK_FALSE(t.reschedule_after(id, 1ms));
  const timer_id other = t.schedule_after(1h, [] {});
  CHECK(t.cancel_and_wait(other) == cancel_result::cancelled);
  run.may_end.open();
  CHECK(t.cancel_and_wait(id) != cancel_result::cancelled);
  CHECK(t.cancel(id) == cancel_result::gone);
  CHECK(run.ended == 1);
  CHECK(t.stats().cancelled == 2);
}

TEST_CASE("cancel_and_wait() also waits for the destructor of the callable") {
  gate destroying, may_end;
  int destroyed = 0;
  timer t;
  const auto slow_to_die = std::shared_ptr<void>(nullptr, [&](void*) {
    destroying.open();
    may_end.wait();
    ++destroyed;
  });
  auto held = slow_to_die;
  const_cast<std::shared_ptr<void>&>(slow_to_die).reset();
  const timer_id id = t.schedule_after(0s, [held = std::move(held)] {});
  REQUIRE(destroying.wait());
  std::thread waiter([&] {
    t.cancel_and_wait(id);
    CHECK(destroyed == 1);
  });
  may_end.open();
  waiter.join();
}

TEST_CASE("what a run writes can be read after cancel_and_wait(), however close the two are") {
  pool workers(2);
  timer on_pool(options{.tick = 10us, .run_on = workers.executor()});
  timer inline_(options{.tick = 10us});
  for (timer* t : {&on_pool, &inline_}) {
    int lost = 0;
    for (int round = 0; round != 500; ++round) {
      int writes = 0;  // a race here is a race in the library
      const auto token = std::make_shared<int>(0);
      const bool often = round % 2 == 0;
      const auto work = [&writes, token] { ++writes; };
      const timer_id id = often ? t->schedule_every(20us, work) : t->schedule_after(20us, work);
      spin(static_cast<unsigned>(round) * 20);
      const cancel_result result = t->cancel_and_wait(id);
      lost += !often && (result == cancel_result::cancelled) == (writes == 1);
      // `work` still holds one copy, so there are two.
      lost += token.use_count() != 2;
    }
    CHECK(lost == 0);
  }
}

TEST_CASE("a task may wait for a task that runs on another thread") {
  pool workers(2);
  held_run run;
  gate done;
  int seen = -1;
  timer t(options{.run_on = workers.executor()});
  const timer_id id = t.schedule_after(0s, run.task());
  REQUIRE(run.begun.wait());
  t.schedule_after(0s, [&] {
    run.may_end.open();
    t.cancel_and_wait(id);
    seen = run.ended;
    done.open();
  });
  REQUIRE(done.wait());
  CHECK(seen == 1);
}

TEST_CASE("cancel_and_wait() waits for another thread that has cancelled and is destroying the callable") {
  for (unsigned round = 0; round != 20; ++round) {
    gate destroying, about_to_wait;
    int destroyed = 0;
    timer t;
    auto token = std::shared_ptr<void>(nullptr, [&](void*) {
      destroying.open();
      about_to_wait.wait();
      spin(round * 500);
      ++destroyed;
    });
    const timer_id id = t.schedule_after(1h, [held = token] {});
    token.reset();
    std::thread canceller([&] { t.cancel(id); });
    REQUIRE(destroying.wait());
    about_to_wait.open();
    CHECK(t.cancel_and_wait(id) == cancel_result::gone);
    CHECK(destroyed == 1);
    canceller.join();
  }
}

TEST_CASE("when cancel_and_wait() returns, the ended timer has been counted") {
  rondo::timer timer({.tick = 1us});
  for (int i = 0; i != 500; ++i) {
    std::atomic<bool> running{false}, go_on{false};
    const auto id = timer.schedule_after(0s, [&] {
      running = true;
      while (!go_on) std::this_thread::yield();
    });
    while (!running) std::this_thread::yield();
    go_on = true;
    timer.cancel_and_wait(id);
    REQUIRE(adds_up(timer.stats()));
  }
}

}  // namespace threads_cancel_and_wait
