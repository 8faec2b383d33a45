// What wakes the driver thread, and what does not.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "threads/patience.hpp"

namespace threads_wakeups {

using namespace rondo;
using namespace rondo::test;

/// The number of wake-ups so far of a driver that has just run a task and has nothing more to do.
std::uint64_t wakeups_after_a_run(timer& t) {
  const auto ran = std::make_shared<gate>();  // the timer may outlive this call
  t.schedule_after(2ms, [ran] { ran->open(); });
  REQUIRE(ran->wait());
  return t.stats().wakeups;
}

TEST_CASE("the driver of an idle timer does not wake up") {
  timer t;
  let_pass(50ms);
  CHECK(t.stats().wakeups == 0);
}

TEST_CASE("the driver does not wake up after its work is done, nor for a far timer") {
  timer t;
  t.schedule_after(1h, [] {});
  const auto before = wakeups_after_a_run(t);
  let_pass(50ms);
  CHECK(t.stats().wakeups == before);
}

TEST_CASE("timers that are never due do not wake the driver") {
  timer t;
  const auto before = wakeups_after_a_run(t);
  for (int i = 0; i != 100; ++i) t.schedule_after(std::chrono::hours::max(), [] {});
  let_pass(20ms);
  CHECK(t.stats().wakeups == before);
}

TEST_CASE("adding, cancelling or moving later timers does not wake the driver") {
  timer t;
  t.schedule_after(1h, [] {});
  const auto before = wakeups_after_a_run(t);
  for (int i = 0; i != 1000; ++i) {
    const timer_id id = t.schedule_after(1h + i * 10s, [] {});
    if (i % 3 == 0) t.cancel(id);
    if (i % 3 == 1) t.reschedule_after(id, 50h);
  }
  let_pass(20ms);
  CHECK(t.stats().wakeups == before);
}

TEST_CASE("cancelling or postponing the earliest timer does not wake the driver") {
  timer t;
  const timer_id a = t.schedule_after(1h, [] {});
  const timer_id b = t.schedule_after(1h, [] {});
  const auto before = wakeups_after_a_run(t);
  t.cancel(a);
  t.reschedule_after(b, 2h);
  let_pass(20ms);
  CHECK(t.stats().wakeups == before);
}

TEST_CASE("an earlier timer wakes the driver, and runs long before the one it was sleeping for") {
  gate ran;
  timer t;
  t.schedule_after(1h, [] {});
  wakeups_after_a_run(t);
  SUBCASE("scheduled") {
    t.schedule_after(5ms, [&] { ran.open(); });
  }
  SUBCASE("periodic") {
    t.schedule_every(5ms, [&] { ran.open(); });
  }
  SUBCASE("moved there") {
    const timer_id id = t.schedule_after(2h, [&] { ran.open(); });
    CHECK(t.reschedule_after(id, 5ms));
  }
  SUBCASE("moved there from never") {
    const timer_id id = t.schedule_after(std::chrono::hours::max(), [&] { ran.open(); });
    CHECK(t.reschedule_after(id, 5ms));
  }
  CHECK(ran.wait());
  CHECK(t.stats().wakeups > 0);
}

TEST_CASE("of many timers, each earlier than the one before, all are noticed") {
  gate ran;
  timer t(options{.tick = 10us});
  for (int i = 0; i != 200; ++i) t.schedule_after(1h - i * 10s, [] {});
  for (int i = 0; i != 200; ++i) t.schedule_after(20ms - i * 100us, [&] { ran.open(); });
  CHECK(ran.wait(200));
}

TEST_CASE("no ring is lost while the driver is between its check and its sleep") {
  std::atomic<int> ran{0};
  timer t(options{.tick = 1us});
  t.schedule_after(1h, [] {});
  constexpr int rounds = 150'000;                              // that moment is short
  const auto enough = std::chrono::steady_clock::now() + 20s;  // for busy machines, where a round takes long
  unsigned state = 1;
  bool lost = false;
  for (int i = 0; i != rounds && !lost; ++i) {
    const auto rung = std::chrono::steady_clock::now();
    if (rung > enough) break;
    t.schedule_after(0s, [&] { ran.fetch_add(1); });
    while (ran.load() != i + 1 && !lost) lost = std::chrono::steady_clock::now() > rung + patience;
    // The driver now checks for more work and goes to sleep: the next call occurs at some moment during that.
    state = state * 1664525U + 1013904223U;
    spin(state >> 26);
  }
  CHECK_FALSE(lost);
}

TEST_CASE("timers that run one after another cost at most two wake-ups each") {
  gate ran;
  constexpr long rounds = 20;
  timer t;
  for (long i = 0; i != rounds; ++i) {
    t.schedule_after(2ms, [&] { ran.open(); });
    REQUIRE(ran.wait(i + 1));
  }
  CHECK(t.stats().wakeups <= 2 * rounds);
  CHECK(t.stats().wakeups > 0);
}

TEST_CASE("next_due() is what the driver sleeps for") {
  timer t;
  CHECK_FALSE(t.next_due().has_value());
  const auto due = t.now() + 1h;
  const timer_id id = t.schedule_at(due, [] {});
  REQUIRE(t.next_due().has_value());
  CHECK(*t.next_due() >= due);
  CHECK(*t.next_due() < due + 1ms);
  t.cancel(id);
  CHECK_FALSE(t.next_due().has_value());
}

}  // namespace threads_wakeups
