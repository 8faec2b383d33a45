// Coroutines that sleep, on real threads: they start, fire, are asked to stop, dropped and destroyed at the same time,
// and each wait ends in exactly one way.
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "on_top/coroutines.hpp"
#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace on_top_coroutine_threads {

using namespace rondo;
using namespace rondo::test;

/// Where the destructor of a std::stop_callback may wait for ever for a call that has returned: tests/README, other platforms.
#ifdef _WIN32
constexpr bool loses_wake_ups = true;
#else
constexpr bool loses_wake_ups = false;
#endif

/// Options of a timer with a fine tick.
options fine(executor run_on = {}) { return {.tick = 10us, .run_on = std::move(run_on)}; }

/// How the waits of a test ended.
struct ends {
  gate all;
  std::atomic<int> slept{0}, asked{0}, dropped{0};
};

/// Sleeps `naps` times, each time a little longer, or until a sleep is refused.
detached sleep_on(timer& t, int naps, ends& e) {
  bool dropped = false;
  for (int i = 0; i != naps && !dropped; ++i) {
    try {
      co_await sleep_for(t, i % 8 * 1us);
      ++e.slept;
    } catch (const stopped_error&) {
      dropped = true;
      ++e.dropped;
    }
  }
  e.all.open();
}

TEST_CASE("a coroutine may be resumed on another thread before the call that suspends it has returned") {
  ends e;
  pool workers(2);
  timer t(fine(workers.executor()));
  for (int i = 0; i != 20; ++i) sleep_on(t, 200, e).start();
  CHECK(e.all.wait(20));
  CHECK(e.slept == 20 * 200);
}

TEST_CASE("without an executor a coroutine resumes on the driver, not before its time") {
  gate done;
  bool late_enough = false;
  std::thread::id driver, goes_on;
  timer t(fine());
  t.schedule_after(0s, [&] { driver = std::this_thread::get_id(); });
  // (Read once in the coroutine: clang 14 assumes that a function runs on one thread.)
  const auto sleeper = [](timer& s, bool& enough, std::thread::id& on, gate& g) -> routine {
    const auto due = s.now() + 2ms;
    co_await sleep_until(s, due);
    on = std::this_thread::get_id();
    enough = s.now() >= due;
    g.open();
  }(t, late_enough, goes_on, done);
  REQUIRE(done.wait());
  t.stop();
  CHECK(late_enough);
  CHECK(goes_on == driver);
  CHECK(goes_on != std::this_thread::get_id());
}

TEST_CASE("a sleep that begins while the scheduler stops is dropped or refused, once") {
  for (int round = 0; round != 300; ++round) {
    ends e;
    timer t(fine());
    std::thread sleepers([&] {
      for (int i = 0; i != 8; ++i) sleep_on(t, 1'000'000, e).start();
    });
    spin(static_cast<unsigned>(round) * 30);
    t.stop();
    sleepers.join();
    REQUIRE(e.all.wait(8));
    if (e.dropped != 8) FAIL("a coroutine resumed more than once, or was not told of the end");
    CHECK(adds_up(t.stats()));
  }
}

TEST_CASE("sleeping coroutines may be destroyed while others are resumed") {
  ends e;
  pool workers(2);
  timer t(fine(workers.executor()));
  for (int i = 0; i != 4; ++i) sleep_on(t, 2000, e).start();
  int destroyed = 0;
  while (e.all.count() != 4 && destroyed != 20'000) {
    auto longer = [](timer& s) -> routine { co_await sleep_for(s, 1h); }(t);
    longer.destroy();
    ++destroyed;
  }
  REQUIRE(e.all.wait(4));
  CHECK(e.slept == 4 * 2000);
  t.stop();
  CHECK(t.stats().cancelled == static_cast<std::uint64_t>(destroyed));
}

#ifdef __cpp_lib_jthread

/// Sleeps once.
detached sleep_once(timer& t, duration d, std::stop_token token, ends& e) {
  try {
    const bool slept = co_await sleep_for(t, d, std::move(token));
    ++(slept ? e.slept : e.asked);
  } catch (const stopped_error&) {
    ++e.dropped;
  }
  e.all.open();
}

/// Coroutines that fall asleep, wake and are asked to stop at the same time, over and over.
void race(executor run_on) {
  constexpr int sleepers = 8;
  constexpr int rounds = 3000;
  std::vector<ends> of_rounds(rounds);  // a late wait may outlive its round
  timer t(fine(std::move(run_on)));
  int slept = 0, asked = 0;
  for (int round = 0; round != rounds; ++round) {
    ends& e = of_rounds[static_cast<std::size_t>(round)];
    std::stop_source source;
    gate go;
    std::thread asking([&] {
      if (!go.wait()) return;
      spin(static_cast<unsigned>(round) % 1000 * 20);
      source.request_stop();
    });
    go.open();
    for (int i = 0; i != sleepers; ++i) sleep_once(t, i * 10us, source.get_token(), e).start();
    asking.join();
    REQUIRE(e.all.wait(sleepers));
    if (e.slept + e.asked != sleepers || e.all.count() != sleepers)
      FAIL("a wait ended in two ways, or in none");
    slept += e.slept;
    asked += e.asked;
  }
  t.stop();
  MESSAGE(slept << " slept to the end, " << asked << " were asked to stop before");
  CHECK(slept != 0);
  CHECK(asked != 0);
  CHECK(t.pending() == 0);
  CHECK(t.stats().returned == 0);
  CHECK(adds_up(t.stats()));
}

TEST_CASE("a wait that is asked to stop as it fires on the driver ends in one way" *
          doctest::skip(loses_wake_ups)) {
  race({});
}

TEST_CASE("a wait that is asked to stop as it fires on a pool ends in one way" *
          doctest::skip(loses_wake_ups)) {
  pool workers(2);
  race(workers.executor());
}

TEST_CASE("a wait that is asked to stop as its scheduler stops ends in one way" *
          doctest::skip(loses_wake_ups)) {
  for (int round = 0; round != 500; ++round) {
    constexpr int sleepers = 8;
    ends e;
    timer t(fine());
    std::stop_source source;
    for (int i = 0; i != sleepers; ++i) sleep_once(t, 1h, source.get_token(), e).start();
    std::thread asking([&] { source.request_stop(); });
    spin(static_cast<unsigned>(round) * 10);
    t.stop();
    asking.join();
    REQUIRE(e.all.wait(sleepers));
    if (e.asked + e.dropped != sleepers || e.slept != 0) FAIL("a wait ended in two ways, or in none");
  }
}

TEST_CASE(
    "a coroutine asked to stop as it falls asleep resumes, even from an endless sleep, and leaves no timer" *
    doctest::skip(loses_wake_ups)) {
  constexpr int rounds = 10'000;
  timer t(fine());
  std::stop_source source;
  std::atomic<int> begun{0}, over{0};
  std::thread asking([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (begun != round) std::this_thread::yield();
      spin(static_cast<unsigned>(round) % 100);
      source.request_stop();
      over = round;
    }
  });
  int wrong = 0;
  for (int round = 1; round <= rounds; ++round) {
    ends e;
    const auto token = source.get_token();
    begun = round;
    spin(static_cast<unsigned>(round) / 100 % 100);
    sleep_once(t, duration::max(), token, e).start();
    while (over != round) std::this_thread::yield();
    wrong += e.asked != 1 || e.all.count() != 1;
    source = std::stop_source();
  }
  asking.join();
  CHECK(wrong == 0);
  CHECK(t.pending() == 0);
}

TEST_CASE("a coroutine that resumes inside request_stop() blocks neither the driver nor its tasks") {
  gate asked, let_go, over, others;
  pool workers(1);
  timer t(fine(workers.executor()));
  std::stop_source source;
  auto sleeper = [](timer& s, std::stop_token token, gate& a, gate& l, gate& o) -> detached {
    const bool slept = co_await sleep_for(s, 1h, token);
    CHECK_FALSE(slept);
    a.open();
    CHECK(l.wait());  // still inside request_stop()
    co_await sleep_for(s, 1us);
    o.open();
  }(t, source.get_token(), asked, let_go, over);
  sleeper.start();
  std::thread asking([&] { source.request_stop(); });
  REQUIRE(asked.wait());
  t.schedule_after(0s, [&] { others.open(); });
  CHECK(others.wait());
  let_go.open();
  CHECK(over.wait());
  asking.join();
}

#endif

}  // namespace on_top_coroutine_threads
