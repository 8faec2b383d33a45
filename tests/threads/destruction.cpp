// Destroying a timer that is in use.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <rondo/errors.hpp>
#include <rondo/manual_timer.hpp>

#include "failing_new.hpp"
#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_destruction {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("an unused timer and an idle one can be destroyed") {
  { const timer t; }
  gate ran;
  timer t;
  t.schedule_after(0s, [&] { ran.open(); });
  CHECK(ran.wait());
}

TEST_CASE("a timer can be destroyed as soon as it is created, again and again") {
  for (int i = 0; i != 200; ++i) {
    timer t;
    if (i % 2 == 0) t.schedule_after(1h, [] {});
  }
}

TEST_CASE("under load, no task runs after the destructor has returned") {
  const auto token = std::make_shared<int>(0);
  for (int round = 0; round != 40; ++round) {
    pool workers(2);
    gate running;
    std::atomic<bool> destroyed{false};
    std::atomic<int> ran_after{0};
    {
      timer t(options{.tick = 10us,
                      .run_on = round % 2 == 0 ? rondo::executor(workers.executor()) : rondo::executor()});
      const auto work = [&, token] {
        ran_after += destroyed.load();
        running.open();
      };
      for (int i = 0; i != 20; ++i) t.schedule_every(20us + i * 7us, work);
      for (int i = 0; i != 200; ++i) t.schedule_after(i * 10us, work);
      REQUIRE(running.wait(20));
    }
    destroyed = true;
    CHECK(token.use_count() == 1);
    workers.shut_down();
    CHECK(ran_after == 0);
  }
}

TEST_CASE("the destructor waits for a run in progress") {
  pool workers(1);
  for (const bool on_pool : {false, true}) {
    gate begun;
    int ended = 0;
    {
      timer t(options{.run_on = on_pool ? rondo::executor(workers.executor()) : rondo::executor()});
      t.schedule_after(0s, [&] {
        begun.open();
        std::this_thread::yield();
        ++ended;
      });
      REQUIRE(begun.wait());
    }
    CHECK(ended == 1);
  }
}

TEST_CASE("a timer may be destroyed inside its own task on the driver thread") {
  for (int round = 0; round != 50; ++round) {
    gate destroyed, released;
    auto t = std::make_unique<timer>();
    auto* const raw = t.get();
    const auto token = std::shared_ptr<void>(nullptr, [&](void*) { released.open(); });
    raw->schedule_after(1h, [token] {});
    raw->schedule_every(1ms, [&, held = token] {
      t.reset();
      destroyed.open();
    });
    const_cast<std::shared_ptr<void>&>(token).reset();
    CHECK(destroyed.wait());
    CHECK(released.wait());
  }
}

TEST_CASE("a timer may be destroyed inside on_error on the driver thread, which then releases the handlers") {
  gate destroyed, released;
  std::unique_ptr<timer> t;
  auto token = std::shared_ptr<void>(nullptr, [&](void*) { released.open(); });
  options o{.on_error = [&, held = token](std::exception_ptr, const firing&) {
    t.reset();
    destroyed.open();
  }};
  token.reset();
  t = std::make_unique<timer>(o);
  o = {};
  t->schedule_after(1ms, [] { throw 1; });
  CHECK(destroyed.wait());
  CHECK(released.wait());
}

TEST_CASE("a timer may be destroyed inside its executor on the driver thread") {
  gate destroyed, released;
  std::unique_ptr<timer> t;
  auto token = std::shared_ptr<void>(nullptr, [&](void*) { released.open(); });
  options o{.run_on = [&, held = token](const job&) {
    t.reset();
    destroyed.open();
  }};
  token.reset();
  t = std::make_unique<timer>(o);
  o = {};
  t->schedule_after(20ms, [] {});
  CHECK(destroyed.wait());
  CHECK(released.wait());
}

TEST_CASE("a timer may be destroyed inside a task on a pool while the driver and another worker are busy") {
  for (int round = 0; round != 50; ++round) {
    gate destroyed;
    std::atomic<bool> gone{false};
    std::atomic<int> ran_after{0};
    pool workers(2);
    auto t = std::make_unique<timer>(options{.tick = 10us, .run_on = workers.executor()});
    auto* const raw = t.get();
    for (int i = 0; i != 50; ++i) raw->schedule_every(30us + i * 3us, [&] { ran_after += gone.load(); });
    raw->schedule_after(200us, [&] {
      t.reset();
      gone = true;
      destroyed.open();
    });
    REQUIRE(destroyed.wait());
    workers.shut_down();
    CHECK(ran_after == 0);
  }
}

TEST_CASE("a destructor inside a job waits for the job that another thread runs") {
  std::vector<job> jobs;
  auto time =
      std::make_unique<rondo::manual_timer>(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  gate running, destroying;
  std::atomic<bool> ended{false};
  time->schedule_after(0s, [&] {
    running.open();
    destroying.wait();
    let_pass(20ms);  // the destructor must not return during this
    ended = true;
  });
  time->schedule_after(0s, [&] {
    destroying.open();
    time.reset();
    CHECK(ended);
  });
  time->advance(0s);
  REQUIRE(jobs.size() == 2);
  std::thread other([&] { jobs[0](); });
  CHECK(running.wait());
  jobs[1]();
  other.join();
  CHECK(time == nullptr);
}

TEST_CASE("a destructor without memory also waits for jobs in progress before it destroys other callables" *
          doctest::skip(!failing_new::available)) {
  const auto alive = std::make_shared<int>();
  std::vector<job> jobs;
  auto time = std::make_unique<manual_timer>(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  gate running;
  bool was_alive = false;
  time->schedule_after(0s, [&, core = time.get()] {
    running.open();
    try {
      for (;;) core->cancel(core->schedule_after(1h, [] {}));  // until the scheduler is stopped
    } catch (const rondo::stopped_error&) {
    }
    let_pass(20ms);  // nothing may be destroyed during this
    was_alive = alive.use_count() == 2;
  });
  time->advance(0s);
  time->schedule_after(1h, [alive] {});
  std::thread worker([&] { jobs.at(0)(); });
  CHECK(running.wait());
  {
    const failing_new failing;
    time.reset();
  }
  worker.join();
  CHECK(was_alive);
  CHECK(alive.use_count() == 1);
}

TEST_CASE("jobs that outlive the timer do nothing, on any thread") {
  std::vector<job> jobs;
  std::mutex mutex;
  gate handed;
  std::atomic<int> ran{0};
  const auto in_executor = std::make_shared<int>(0);
  {
    timer t(options{.run_on = [&, in_executor](job j) {
      const std::lock_guard hold(mutex);
      jobs.push_back(std::move(j));
      handed.open();
    }});
    for (int i = 0; i != 20; ++i) t.schedule_after(0s, [&] { ++ran; });
    REQUIRE(handed.wait(20));
  }
  CHECK(in_executor.use_count() == 1);
  std::thread other([&] {
    for (std::size_t i = 0; i != jobs.size() / 2; ++i) jobs[i]();
    jobs.clear();
  });
  other.join();
  CHECK(ran == 0);
}

}  // namespace threads_destruction
