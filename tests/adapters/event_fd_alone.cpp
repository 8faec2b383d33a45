// A polled_timer has at most one event_fd, and nothing else can take over its on_earlier().
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <rondo/event_fd.hpp>

#include "adapters/epoll.hpp"
#include "failing_new.hpp"

namespace adapters_event_fd_alone {

using namespace rondo;
using namespace rondo::test;

/// Whether a timer that is scheduled makes it readable, and runs.
bool works(polled_timer& timer, event_fd& due) {
  const epoll loop(due.native_handle());
  if (loop.ready()) return false;
  timer.schedule_after(0s, [] {});
  return loop.ready() && due.run_due() == 1 && !loop.ready();
}

/// The number that the next descriptor will have.
int next_descriptor() {
  const int number = ::dup(0);
  ::close(number);
  return number;
}

TEST_CASE("a second event_fd on a timer is refused, and the first one keeps working") {
  polled_timer timer;
  std::optional<event_fd> first(std::in_place, timer);
  const int free = next_descriptor();
  CHECK_THROWS_WITH_AS(event_fd{timer}, doctest::Contains("event_fd"), std::logic_error);
  CHECK(next_descriptor() == free);
  CHECK(works(timer, *first));
  first.reset();
  event_fd second(timer);
  CHECK_THROWS_AS(event_fd{timer}, std::logic_error);
  CHECK(works(timer, second));
}

TEST_CASE("each timer may have its own event_fd") {
  polled_timer timers[2];
  event_fd first(timers[0]), second(timers[1]);
  CHECK(works(timers[0], first));
  CHECK(works(timers[1], second));
}

TEST_CASE("while a timer has an event_fd, on_earlier() is refused") {
  polled_timer timer;
  int told = 0;
  const auto token = std::make_shared<int>(0);
  const std::function<void()> count = [&told, token] { ++told; };
  {
    event_fd due(timer);
    const auto held = token.use_count();
    CHECK_THROWS_WITH_AS(timer.on_earlier(count), doctest::Contains("event_fd"), std::logic_error);
    CHECK_THROWS_AS(timer.on_earlier(nullptr), std::logic_error);
    CHECK(token.use_count() == held);
    CHECK(works(timer, due));
  }
  CHECK(told == 0);
  timer.on_earlier(count);
  timer.schedule_after(0s, [] {});
  CHECK(told == 1);
}

TEST_CASE("an event_fd replaces the function that on_earlier() had set before") {
  polled_timer timer;
  int told = 0;
  timer.on_earlier([&] { ++told; });
  {
    event_fd due(timer);
    CHECK(works(timer, due));
  }
  timer.schedule_after(-1h, [] {});
  CHECK(told == 0);
}

TEST_CASE("an event_fd stays the only one after its timer was stopped") {
  polled_timer timer;
  event_fd due(timer);
  timer.stop();
  CHECK_THROWS_AS(event_fd{timer}, std::logic_error);
}

TEST_CASE("if creating an event_fd runs out of memory, the timer can still get one" *
          doctest::skip(!failing_new::available)) {
  polled_timer timer;
  std::size_t attempts = 0;
  for (bool made = false; !made; ++attempts) {
    try {
      const failing_new failing(attempts);
      const event_fd due(timer);
      made = true;
    } catch (const std::bad_alloc&) {
    }
    CHECK_NOTHROW(timer.on_earlier(nullptr));
  }
  CHECK(attempts > 1);
}

TEST_CASE("if several threads create an event_fd for one timer, exactly one succeeds") {
  constexpr int rounds = 300;
  polled_timer timer;
  std::barrier all(3);
  std::atomic<int> made{0};
  std::vector<std::thread> makers;
  for (int i = 0; i != 3; ++i)
    makers.emplace_back([&] {
      for (int round = 0; round != rounds; ++round) {
        std::optional<event_fd> due;
        all.arrive_and_wait();
        try {
          due.emplace(timer);
          ++made;
        } catch (const std::logic_error&) {
        }
        all.arrive_and_wait();
      }
    });
  for (std::thread& m : makers) m.join();
  CHECK(made == rounds);
  event_fd due(timer);
  CHECK(works(timer, due));
}

}  // namespace adapters_event_fd_alone
