// Timers of a scope, on real threads.
#include <rondo/timer_scope.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <rondo/polled_timer.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace on_top_timer_scope_threads {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("the destructor of a scope waits for its runs in progress, and for no others") {
  for (const bool on_pool : {false, true}) {
    pool workers(2);
    timer t(options{.run_on = on_pool ? rondo::executor(workers.executor()) : rondo::executor()});
    gate begun, may_end;
    int ended = 0;  // not atomic: a thread that has waited for the run may read it
    std::optional<timer_scope> scope(t);
    scope->schedule_after(0s, [&] {
      begun.open();
      may_end.wait();
      ++ended;
    });
    REQUIRE(begun.wait());
    gate about_to_wait;
    std::thread other([&] {
      about_to_wait.wait();
      may_end.open();
    });
    about_to_wait.open();
    scope.reset();
    CHECK(ended == 1);
    other.join();
  }
}

TEST_CASE("the destructor of a scope does not wait for a run of another scope") {
  pool workers(2);
  timer t(options{.run_on = workers.executor()});
  gate begun, may_end;
  timer_scope scope(t);
  scope.schedule_after(0s, [&] {
    begun.open();
    may_end.wait();
  });
  REQUIRE(begun.wait());
  {
    timer_scope other(t);
    other.schedule_after(1h, [] {});
  }
  may_end.open();
}

TEST_CASE("the destructor of a scope waits even if one of its tasks has closed the scope") {
  pool workers(2);
  timer t(options{.run_on = workers.executor()});
  gate closed, may_end;
  int ended = 0;
  std::optional<timer_scope> scope(t);
  scope->schedule_after(0s, [&] {
    scope->close();
    closed.open();
    may_end.wait();
    ++ended;
  });
  REQUIRE(closed.wait());
  std::thread other([&] { may_end.open(); });
  scope.reset();
  CHECK(ended == 1);
  other.join();
}

TEST_CASE("close() cancels all timers before it waits for any run") {
  timer_id other;
  gate begun, scheduled;
  bool saw_other_cancelled = false;  // not atomic: a thread that has waited for the run may read it
  timer t;
  timer_scope scope(t);
  scope.schedule_after(0s, [&] {
    begun.open();
    scheduled.wait();
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (t.pending(other) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    saw_other_cancelled = !t.pending(other);
  });
  other = scope.schedule_after(1h, [] {});
  scheduled.open();
  REQUIRE(begun.wait());
  scope.close();
  CHECK(saw_other_cancelled);
}

/// What a scope's tasks note while the scope is being destroyed.
struct last_moments {
  std::atomic<bool> destroyed{false};
  std::atomic<int> ran_after{0}, refused{0};
  gate under_way;
};

/// A task that schedules itself again, and another task that is due at once.
struct rearming {
  timer_scope& scope;
  last_moments& notes;
  std::shared_ptr<int> token;

  void operator()() const {
    notes.ran_after += notes.destroyed.load();
    notes.under_way.open();
    try {
      scope.schedule_after(0s, [&n = notes, t = token] { n.ran_after += n.destroyed.load(); });
      scope.schedule_after(30us, *this);
    } catch (const stopped_error&) {
      ++notes.refused;
    }
  }
};

TEST_CASE("no task runs after the destructor of its scope has returned, and none leaves a timer behind") {
  const auto token = std::make_shared<int>(0);
  for (int round = 0; round != 60; ++round) {
    pool workers(2);
    timer t(options{.tick = 10us,
                    .run_on = round % 2 == 0 ? rondo::executor(workers.executor()) : rondo::executor()});
    last_moments notes;
    {
      timer_scope scope(t);
      for (int i = 0; i != 4; ++i) scope.schedule_after(i * 10us, rearming{scope, notes, token});
      scope.schedule_every(15us, [&, token] { notes.ran_after += notes.destroyed.load(); });
      REQUIRE(notes.under_way.wait(20));
      if (round % 3 == 0) spin(static_cast<unsigned>(round) * 300);
    }
    notes.destroyed = true;
    CHECK(token.use_count() == 1);
    CHECK(t.pending() == 0);
    t.stop();
    CHECK(notes.ran_after == 0);
    CHECK(adds_up(t.stats()));
  }
}

TEST_CASE("a task in progress cannot schedule once the destruction of its scope has begun") {
  for (int round = 0; round != 200; ++round) {
    timer t(options{.tick = 1us});
    gate begun;
    int refused = 0;
    {
      timer_scope scope(t);
      scope.schedule_after(0s, [&] {
        begun.open();
        try {
          for (;;) {
            scope.schedule_after(1h, [] {});
            spin(300);  // otherwise the destructor may find the lock taken every time
          }
        } catch (const stopped_error&) {
          ++refused;
        }
      });
      REQUIRE(begun.wait());
    }
    CHECK(refused == 1);
    CHECK(t.pending() == 0);
    t.stop();
    CHECK(adds_up(t.stats()));
  }
}

TEST_CASE("a scope may be destroyed by one of its tasks while others run") {
  for (int round = 0; round != 50; ++round) {
    std::atomic<bool> gone{false};
    std::atomic<int> ran_after{0};
    gate destroyed;
    pool workers(3);
    timer t(options{.tick = 10us, .run_on = workers.executor()});
    auto scope = std::make_unique<timer_scope>(t);
    timer_scope* const raw = scope.get();
    for (int i = 0; i != 20; ++i) raw->schedule_every(20us + i * 3us, [&] { ran_after += gone.load(); });
    raw->schedule_after(200us, [&] {
      scope.reset();
      gone = true;
      destroyed.open();
    });
    REQUIRE(destroyed.wait());
    t.stop();
    CHECK(ran_after == 0);
    CHECK(adds_up(t.stats()));
  }
}

TEST_CASE("a running task belongs to its scope, even while the call that scheduled it is in progress") {
  gate ran;
  std::atomic<int> strangers{0};
  timer t(options{.tick = 1us});
  timer_scope scope(t);
  for (long i = 0; i != 5000; ++i) {
    scope.schedule_after(0s, [&](const rondo::firing& f) {
      strangers += scope.cancel(f.id) == rondo::cancel_result::running ? 0 : 1;
      ran.open();
    });
    if (i % 16 == 0) CHECK(ran.wait(i + 1));
  }
  CHECK(ran.wait(5000));
  CHECK(strangers == 0);
}

TEST_CASE("a scope may be used by several threads at once") {
  timer t(options{.tick = 10us});
  std::atomic<long> ran{0}, cancelled{0};
  constexpr int each = 2000;
  std::optional<timer_scope> scope(t);
  std::vector<std::thread> users;
  for (unsigned u = 0; u != 3; ++u)
    users.emplace_back([&, u] {
      std::vector<timer_id> ids;
      for (int i = 0; i != each; ++i) {
        ids.push_back(scope->schedule_after(i % 50 * 10us, [&] { ++ran; }));
        const timer_id any = ids[static_cast<std::size_t>(i) * (u + 3) % ids.size()];
        if (i % 3 == 0) cancelled += scope->cancel(any) == rondo::cancel_result::cancelled;
        if (i % 3 == 1) scope->reschedule_after(any, i % 20 * 10us);
        if (i % 100 == 0) static_cast<void>(scope->pending());
      }
    });
  for (std::thread& u : users) u.join();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (scope->pending() != 0 && std::chrono::steady_clock::now() < deadline) let_pass(1ms);
  scope.reset();
  t.stop();
  CHECK(ran + cancelled == 3 * each);
  CHECK(adds_up(t.stats()));
}

}  // namespace on_top_timer_scope_threads
