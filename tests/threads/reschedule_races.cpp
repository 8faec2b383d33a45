// Moving a timer while it fires: it runs once, at the last time that was accepted.
#include <atomic>
#include <thread>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_reschedule_races {

using namespace rondo;
using namespace rondo::test;

struct seen {
  std::atomic<int> runs{0};
  time_point due;
  bool early = false;
};

/// Moves each timer ahead again and again, until it fires.
void race(executor run_on, int rounds) {
  timer t(options{.tick = 10us, .run_on = std::move(run_on)});
  int twice = 0, elsewhen = 0, early = 0, moved = 0;
  for (int round = 0; round != rounds; ++round) {
    seen s;
    gate ran;
    time_point due = t.now() + 50us;
    const timer_id id = t.schedule_at(due, [&](const firing& f) {
      s.due = f.due;
      s.early = rondo::scheduler::clock::now() < f.due;
      ++s.runs;
      ran.open();
    });
    for (int i = 0; i != 200; ++i) {
      const time_point next = t.now() + duration(i % 7 * 10'000);
      if (!t.reschedule_at(id, next)) break;
      due = next;
      ++moved;
    }
    const bool has_run = ran.wait();
    t.cancel_and_wait(id);
    REQUIRE(has_run);
    twice += s.runs != 1;
    elsewhen += s.due != due;
    early += s.early;
  }
  CHECK(moved > 0);
  CHECK(twice == 0);
  CHECK(elsewhen == 0);
  CHECK(early == 0);
  CHECK(t.stats().fired == static_cast<std::uint64_t>(rounds));
  CHECK(t.stats().rejected == 0);
  CHECK(adds_up(t.stats()));
}

TEST_CASE("a timer that is moved as it fires on the driver runs once, at the last time accepted") {
  race({}, 300);
}

TEST_CASE("a timer that is moved as it is handed to a pool runs once, at the last time accepted") {
  pool workers(2);
  race(workers.executor(), 300);
}

TEST_CASE("a timer moved by several threads runs once") {
  timer t(options{.tick = 10us});
  for (int round = 0; round != 20; ++round) {
    std::atomic<int> runs{0};
    gate ran;
    const timer_id id = t.schedule_after(1ms, [&] {
      ++runs;
      ran.open();
    });
    std::vector<std::thread> movers;
    for (int m = 0; m != 3; ++m)
      movers.emplace_back([&, m] {
        for (int i = 0; i != 200; ++i) t.reschedule_after(id, (i * 37 + m) % 100 * 1us);
      });
    for (std::thread& m : movers) m.join();
    const bool has_run = ran.wait();
    t.cancel_and_wait(id);
    REQUIRE(has_run);
    if (runs != 1) FAIL("it did not run exactly once");
  }
  CHECK(t.pending() == 0);
}

TEST_CASE("a periodic task that is moved by other threads never runs twice at once") {
  pool workers(2);
  timer t(options{.tick = 10us, .run_on = workers.executor()});
  std::atomic<int> at_once{0}, overlaps{0};
  gate ran;
  const timer_id id = t.schedule_every(50us, [&] {
    overlaps += at_once.fetch_add(1) != 0;
    at_once.fetch_sub(1);
    ran.open();
  });
  std::vector<std::thread> movers;
  for (int m = 0; m != 2; ++m)
    movers.emplace_back([&, m] {
      for (int i = 0; i != 3000; ++i) t.reschedule_after(id, (i * 13 + m) % 60 * 1us);
    });
  for (std::thread& m : movers) m.join();
  CHECK(ran.wait(10));
  t.cancel_and_wait(id);
  CHECK(overlaps == 0);
  CHECK(t.stats().missed < 100'000'000);  // more points than this cannot have passed
}

}  // namespace threads_reschedule_races
