// What a pass of event_fd costs in system calls, and that the loop never sleeps through a deadline after it.
#include <stdexcept>

#include <rondo/event_fd.hpp>

#include "adapters/counted_settime.hpp"
#include "adapters/epoll.hpp"

namespace adapters_event_fd_passes {

using namespace rondo;
using namespace rondo::test;

constexpr auto edge = static_cast<std::uint32_t>(EPOLLET);

TEST_CASE("a timer that is due at once sets no time, neither before the pass nor after it") {
  polled_timer timer;
  event_fd due(timer);
  const epoll loop(due.native_handle());
  SUBCASE("while nothing else is pending") {}
  SUBCASE("while another is pending") {
    timer.schedule_after(1h, [] {});
  }
  settime_calls();
  raise_calls();
  for (int i = 0; i != 10; ++i) {
    timer.schedule_after(0s, [] {});
    CHECK(loop.ready());
    CHECK(due.run_due() == 1);
    CHECK_FALSE(loop.ready());
  }
  CHECK(settime_calls() == 0);
  CHECK(raise_calls() == 10);
}

TEST_CASE("a timer that becomes due while the descriptor is being cleared makes it readable again") {
  polled_timer timer;
  event_fd due(timer);
  const epoll loop(due.native_handle());
  const time_point second = timer.now() + 20ms;
  timer.schedule_at(second, [] {});
  timer.schedule_after(0s, [] {});
  {
    const clearing_slow slow(second + 1ms);
    CHECK(due.run_due() == 1);
  }
  CHECK(loop.ready());
  CHECK(due.run_due() == 1);
}

TEST_CASE("a pass that leaves work sets no time; the last pass sets the time of the next timer") {
  polled_timer timer;
  event_fd due(timer);
  for (int i = 0; i != 5; ++i) timer.schedule_after(-1s, [] {});
  timer.schedule_after(1h, [] {});
  settime_calls();
  raise_calls();
  for (int i = 0; i != 4; ++i) CHECK(due.run_due(1) == 1);
  CHECK(settime_calls() == 0);
  CHECK(raise_calls() == 4);
  CHECK(due.run_due(1) == 1);
  CHECK(settime_calls() == 1);
  CHECK(raise_calls() == 0);
}

TEST_CASE(
    "it wakes on time for the timer it is armed for, though it was made readable and cleared in between") {
  polled_timer timer;
  event_fd due(timer);
  const epoll loop(due.native_handle(), edge);
  int late = 0;
  for (int i = 0; i != 200; ++i) {
    bool ran = false;
    timer.schedule_after(300us, [&] { ran = true; });
    while (!ran) {
      timer.schedule_after(0s, [] {});
      if (!loop.wait()) ++late;
      due.run_due();
      if (!ran && scheduler::clock::now() - *timer.next_due() > -50us) {
        if (!loop.wait()) ++late;
        due.run_due();
      }
    }
  }
  CHECK(late == 0);
}

TEST_CASE("it is armed after the pass for a timer that became the earliest while it was readable") {
  polled_timer timer;
  event_fd due(timer);
  const epoll loop(due.native_handle(), edge);
  timer.schedule_after(1h, [] {});
  timer.schedule_after(0s, [] {});
  timer.schedule_after(300ms, [] {});  // later than the first pass on any machine
  CHECK(loop.ready());
  settime_calls();
  CHECK(due.run_due() == 1);
  CHECK(settime_calls() == 1);
  CHECK(loop.wait());
  CHECK(due.run_due() == 1);
}

TEST_CASE("for a timer that is due in centuries it wakes each year, because seconds may have 32 bits") {
  polled_timer timer;
  event_fd due(timer);
  constexpr auto year = std::chrono::hours(24 * 365);
  settime_calls();
  timer.schedule_after(200 * year, [] {});
  CHECK(settime_calls() == 1);
  const time_point first = last_set_time();
  CHECK(first > timer.now() + 364 * 24h);
  CHECK(first <= timer.now() + year);
  CHECK(due.run_due() == 0);
  CHECK(settime_calls() == 0);
  const clock_ahead ahead(year);
  REQUIRE(timer.now() >= first);
  CHECK(due.run_due() == 0);
  CHECK(settime_calls() == 1);
  CHECK(last_set_time() > timer.now() + 364 * 24h);
  CHECK(last_set_time() <= timer.now() + year);
}

TEST_CASE("after a task has thrown, it is readable while timers are due, and wakes for the next one") {
  polled_timer timer({.propagate_exceptions = true});
  event_fd due(timer);
  std::uint32_t flags = 0;
  SUBCASE("level-triggered") { flags = 0; }
  SUBCASE("edge-triggered") { flags = edge; }
  const epoll loop(due.native_handle(), flags);
  int runs = 0;
  const auto fail = [] { throw std::runtime_error("no"); };
  timer.schedule_after(-1s, fail);
  timer.schedule_after(-1s, [&] { ++runs; });
  timer.schedule_after(-1s, fail);
  CHECK(loop.ready());
  CHECK_THROWS_AS(due.run_due(), std::runtime_error);
  CHECK(loop.ready());
  CHECK_THROWS_AS(due.run_due(), std::runtime_error);
  CHECK(runs == 1);
  CHECK_FALSE(loop.ready());
  timer.schedule_after(5ms, [&] { ++runs; });
  CHECK(loop.wait());
  CHECK(due.run_due() == 1);
  CHECK(runs == 2);
}

}  // namespace adapters_event_fd_passes
