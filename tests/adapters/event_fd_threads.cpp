// event_fd in a loop that sleeps, while other threads schedule.
#include <atomic>
#include <thread>
#include <vector>

#include <rondo/event_fd.hpp>

#include "adapters/epoll.hpp"

namespace adapters_event_fd_threads {

using namespace rondo;
using namespace rondo::test;

/// Sleeps and runs due timers, until done().
template <class Done>
void run_until(event_fd& due, const epoll& loop, std::size_t limit, Done&& done) {
  while (!done()) {
    REQUIRE(loop.wait());
    due.run_due(limit);
  }
}

TEST_CASE("a sleeping loop is woken when another thread schedules a timer") {
  polled_timer timer;
  event_fd due(timer);
  const epoll loop(due.native_handle());
  timer.schedule_after(1h, [] {});
  gate asleep;
  bool ran = false;
  std::thread other([&] {
    asleep.wait();
    let_pass(5ms);  // so that it is usually asleep
    timer.schedule_after(0s, [&] { ran = true; });
  });
  asleep.open();
  run_until(due, loop, rondo::unlimited, [&] { return ran; });
  other.join();
}

void misses_nothing(std::uint32_t flags, std::size_t limit) {
  polled_timer timer({.tick = 10us});
  event_fd due(timer);
  const epoll loop(due.native_handle(), flags);
  constexpr int each = 2000;
  int runs = 0, early = 0;
  std::vector<std::thread> producers;
  for (int p = 0; p != 2; ++p)
    producers.emplace_back([&, p] {
      for (int i = 0; i != each; ++i) {
        const auto id = timer.schedule_after((i * 7919 + p) % 3000 * 1us, [&](const rondo::firing& f) {
          ++runs;
          if (scheduler::clock::now() < f.due) ++early;
        });
        if (i % 3 == 0) timer.reschedule_after(id, (i * 31) % 500 * 1us);
        if (i % 5 == 0) timer.cancel(timer.schedule_after(i % 100 * 1us, [] {}));
        if (i % 16 == 0) let_pass(100us);
        spin(static_cast<unsigned>(i) % 256);
      }
    });
  run_until(due, loop, limit, [&] { return runs == 2 * each; });
  for (auto& p : producers) p.join();
  CHECK(early == 0);
  CHECK(timer.pending() == 0);
}

TEST_CASE("a loop that sleeps until its descriptor is readable misses nothing") {
  SUBCASE("level-triggered") { misses_nothing(0, rondo::unlimited); }
  SUBCASE("level-triggered, one at a time") { misses_nothing(0, 1); }
  SUBCASE("edge-triggered") { misses_nothing(static_cast<std::uint32_t>(EPOLLET), rondo::unlimited); }
  SUBCASE("edge-triggered, one at a time") { misses_nothing(static_cast<std::uint32_t>(EPOLLET), 1); }
}

TEST_CASE("an event_fd may be destroyed while other threads schedule, and another one takes over") {
  polled_timer timer;
  std::atomic<bool> over{false};
  gate begun;
  std::thread producer([&] {
    begun.open();
    while (!over) timer.cancel(timer.schedule_after(1ms, [] {}));
  });
  REQUIRE(begun.wait());
  for (int i = 0; i != 300; ++i) {
    event_fd due(timer);
    due.run_due();
  }
  over = true;
  producer.join();
  event_fd due(timer);
  const epoll loop(due.native_handle());
  bool ran = false;
  timer.schedule_after(0s, [&] { ran = true; });
  run_until(due, loop, rondo::unlimited, [&] { return ran; });
}

}  // namespace adapters_event_fd_threads
