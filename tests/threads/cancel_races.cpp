// Cancelling a timer while it fires: exactly one of the two happens.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_cancel_races {

using namespace rondo;
using namespace rondo::test;

struct fate {
  std::atomic<int> ran{0}, said_cancelled{0}, said_running{0}, said_gone{0};
};

/// Schedules `many` timers that are due within moments, and lets two threads cancel each of them at the same time.
void race(executor run_on, int rounds) {
  constexpr std::size_t many = 300;
  const auto token = std::make_shared<int>(0);
  int wrong = 0;
  {
    timer t(options{.tick = 10us, .run_on = std::move(run_on)});
    for (int round = 0; round != rounds; ++round) {
      std::vector<fate> fates(many);
      std::vector<timer_id> ids(many);
      for (std::size_t i = 0; i != many; ++i)
        ids[i] = t.schedule_after(i * 2us, [&fates, i, token] { fates[i].ran.fetch_add(1); });
      const auto cancel_all = [&] {
        for (std::size_t i = 0; i != many; ++i) switch (t.cancel(ids[i])) {
            case cancel_result::cancelled:
              fates[i].said_cancelled.fetch_add(1);
              break;
            case cancel_result::running:
              fates[i].said_running.fetch_add(1);
              break;
            case cancel_result::gone:
              fates[i].said_gone.fetch_add(1);
              break;
          }
      };
      std::thread one(cancel_all), two(cancel_all);
      one.join();
      two.join();
      for (const timer_id id : ids) t.cancel_and_wait(id);  // after this no run is in progress
      for (const fate& f : fates) {
        wrong += f.ran + f.said_cancelled != 1;
        wrong += f.said_running != 0 && f.ran == 0;
        wrong += f.said_cancelled + f.said_running + f.said_gone != 2;
      }
      wrong += t.pending() != 0;
    }
    CHECK(adds_up(t.stats()));
    CHECK(t.stats().rejected == 0);
  }
  CHECK(wrong == 0);
  CHECK(token.use_count() == 1);
}

TEST_CASE("a timer that is cancelled as it fires on the driver either runs or is cancelled") { race({}, 40); }

TEST_CASE("a timer that is cancelled as it fires on a pool either runs or is cancelled") {
  pool workers(2);
  race(workers.executor(), 40);
}

TEST_CASE("a periodic task does not run again once cancel() has returned cancelled") {
  timer t(options{.tick = 10us});
  for (int round = 0; round != 300; ++round) {
    std::atomic<bool> over{false};
    std::atomic<int> ran_after{0};
    const timer_id id = t.schedule_every(20us, [&] { ran_after += over.load(); });
    spin(static_cast<unsigned>(round) * 10);
    if (t.cancel(id) == cancel_result::cancelled) over = true;
    t.cancel_and_wait(id);
    over = true;
    if (ran_after != 0) FAIL("it ran after it was cancelled");
  }
  CHECK(t.pending() == 0);
  CHECK(t.stats().cancelled == 300);
  CHECK(adds_up(t.stats()));
}

TEST_CASE("of two tasks that cancel each other, either both run or one is cancelled") {
  // Two timers that are due at the same moment.
  pool workers(2);
  timer t(options{.tick = 10us, .run_on = workers.executor()});
  for (int round = 0; round != 300; ++round) {
    gate decided;
    std::atomic<int> ran{0}, cancelled{0};
    timer_id ids[2];
    gate scheduled;
    for (std::size_t i = 0; i != 2; ++i)
      ids[i] = t.schedule_after(50us, [&, i] {
        if (!scheduled.wait()) return;
        ++ran;
        if (t.cancel(ids[1 - i]) == cancel_result::cancelled) {
          ++cancelled;
          decided.open();
        }
        decided.open();
      });
    scheduled.open();
    const bool both_decided = decided.wait(2);
    t.cancel_and_wait(ids[0]);
    t.cancel_and_wait(ids[1]);
    REQUIRE(both_decided);
    if (ran + cancelled != 2) FAIL("a timer was lost, or ran though it was cancelled");
  }
}

}  // namespace threads_cancel_races
