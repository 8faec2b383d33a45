// When, where and how callables are destroyed.
#include <array>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "scheduler/virtual_time.hpp"

namespace scheduler_callable_destruction {

using namespace rondo;
using namespace rondo::test;

/// A task that shares `token`.
auto holding(const std::shared_ptr<int>& token) {
  return [token] { ++*token; };
}

/// As holding(), but too large to be stored inside a task.
auto holding_much(const std::shared_ptr<int>& token) {
  return [token, ballast = std::array<char, 200>{}] { *token += 1 + ballast[7]; };
}

TEST_CASE("the callable is destroyed with the timer, not later") {
  const auto token = std::make_shared<int>(0);
  manual_timer time;
  SUBCASE("after its run") {
    time.schedule_after(1ms, holding(token));
    time.schedule_after(1ms, holding_much(token));
    time.schedule_after(1ms, [&] { CHECK(token.use_count() == 1); });
    time.advance(1ms);
    CHECK(*token == 2);
  }
  SUBCASE("inside cancel()") { time.cancel(time.schedule_after(1h, holding(token))); }
  SUBCASE("inside cancel(), a large one") { time.cancel(time.schedule_after(1h, holding_much(token))); }
  SUBCASE("inside cancel_and_wait()") { time.cancel_and_wait(time.schedule_every(1h, holding(token))); }
  SUBCASE("inside cancel() of a timer that is never due") {
    time.cancel(time.schedule_after(std::chrono::hours::max(), holding(token)));
  }
  SUBCASE("inside cancel() of another timer that the pass has already taken") {
    timer_id sibling;
    time.schedule_after(1ms, [&] {
      time.cancel(sibling);
      CHECK(token.use_count() == 1);
    });
    sibling = time.schedule_after(1ms, holding(token));
    time.advance(1ms);
  }
  SUBCASE("after the run that cancelled it") {
    timer_id id;
    id = time.schedule_every(1ms, [&time, &id, token] {
      time.cancel(id);
      CHECK(token.use_count() == 2);
    });
    time.advance(1ms);
  }
  SUBCASE("with the list of stop()") {
    time.schedule_after(1h, holding(token));
    auto list = time.stop();
    CHECK(token.use_count() == 2);
    list.clear();
  }
  SUBCASE("when it is refused") {
    time.stop();
    CHECK_THROWS_AS(time.schedule_after(1h, holding(token)), rondo::stopped_error);
  }
  SUBCASE("after it threw") {
    manual_timer lenient(options{.on_error = [](std::exception_ptr, const rondo::firing&) {}});
    lenient.schedule_after(1ms, [token] { throw std::runtime_error("no"); });
    lenient.advance(1ms);
  }
  CHECK(token.use_count() == 1);
}

TEST_CASE("the destructor of the scheduler destroys the callables of unfired timers") {
  const auto token = std::make_shared<int>(0);
  {
    manual_timer time;
    time.schedule_after(1h, holding(token));
    time.schedule_every(1h, holding_much(token));
    time.schedule_after(std::chrono::hours::max(), holding(token));
    CHECK(token.use_count() == 4);
  }
  CHECK(token.use_count() == 1);
}

TEST_CASE("cancel() destroys the callable on the calling thread") {
  manual_timer time;
  std::thread::id destroyed_on;
  const auto token = std::shared_ptr<int>(new int(0), [&](const int* p) {
    destroyed_on = std::this_thread::get_id();
    delete p;
  });
  auto held = token;
  const auto id = time.schedule_after(1h, [held = std::move(held)] {});
  auto last = std::move(const_cast<std::shared_ptr<int>&>(token));
  last.reset();
  std::thread canceller([&] { time.cancel(id); });
  const auto expected = canceller.get_id();
  canceller.join();
  CHECK(destroyed_on == expected);
}

/// Calls every function of a scheduler when it is destroyed.
struct nosy {
  manual_timer* time;
  const timer_id* own;
  int* destroyed;

  nosy(manual_timer& t, const timer_id& id, int& count) : time(&t), own(&id), destroyed(&count) {}
  nosy(nosy&& other) noexcept
      : time(std::exchange(other.time, nullptr)), own(other.own), destroyed(other.destroyed) {}
  nosy& operator=(nosy&&) = delete;
  ~nosy() {
    if (time == nullptr) return;
    ++*destroyed;
    time->cancel(*own);
    time->cancel_and_wait(*own);
    time->reschedule_after(*own, 1ms);
    CHECK_FALSE(time->pending(*own));
    static_cast<void>(time->pending());
    static_cast<void>(time->stats());
    static_cast<void>(time->next_due());
    static_cast<void>(time->now());
    time->elapse(0s);
    try {
      time->cancel_and_wait(time->schedule_after(1h, doing_nothing()));
      time->cancel(time->schedule_every(1h, doing_nothing()));
    } catch (const rondo::stopped_error&) {  // expected after stop()
    } catch (const rondo::capacity_error&) {
    }
  }
  void operator()() {}
};

TEST_CASE("the destructor of a callable may call every function of its scheduler") {
  int destroyed = 0;
  timer_id id;
  std::vector<job> kept;
  manual_timer time;
  SUBCASE("in cancel()") {
    id = time.schedule_after(1h, nosy(time, id, destroyed));
    CHECK(time.cancel(id) == cancel_result::cancelled);
  }
  SUBCASE("in cancel_and_wait()") {
    id = time.schedule_every(1h, nosy(time, id, destroyed));
    CHECK(time.cancel_and_wait(id) == cancel_result::cancelled);
  }
  SUBCASE("after a run") {
    id = time.schedule_after(1ms, nosy(time, id, destroyed));
    time.advance(1ms);
  }
  SUBCASE("in the list of stop()") {
    id = time.schedule_after(1ms, nosy(time, id, destroyed));
    CHECK(time.stop().size() == 1);
  }
  SUBCASE("when it is refused") {
    time.stop();
    CHECK_THROWS_AS(time.schedule_after(1h, nosy(time, id, destroyed)), rondo::stopped_error);
  }
  CHECK(destroyed == 1);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("the destructor of a callable may call its scheduler when its job is dropped") {
  int destroyed = 0;
  timer_id id;
  std::optional<job> kept;
  manual_timer time(options{.run_on = [&](job j) { kept.emplace(std::move(j)); }});
  id = time.schedule_after(1ms, nosy(time, id, destroyed));
  time.advance(1ms);
  CHECK(destroyed == 0);
  kept.reset();
  CHECK(destroyed == 1);
  CHECK(time.stats().rejected == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("the destructor of a callable may call its scheduler when max_pending refuses the timer") {
  int destroyed = 0;
  timer_id id;
  manual_timer time(options{.max_pending = 0});
  CHECK_THROWS_AS(time.schedule_after(1h, nosy(time, id, destroyed)), rondo::capacity_error);
  CHECK(destroyed == 1);
}

TEST_CASE(
    "the destructor of a callable may drive its scheduler in a cancel() from outside, but not after a run") {
  manual_timer time;
  int runs = 0;
  bool refused = false;
  const auto driving = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) {
      try {
        time.advance(5ms);
      } catch (const std::logic_error&) {
        refused = true;
      }
    });
  };
  time.schedule_after(5ms, counting(runs));
  SUBCASE("in cancel()") {
    time.cancel(time.schedule_after(1h, [held = driving()] {}));
    CHECK(runs == 1);
    CHECK_FALSE(refused);
  }
  SUBCASE("after a run") {
    time.schedule_after(1ms, [held = driving()] {});
    time.advance(1ms);
    CHECK(runs == 0);
    CHECK(refused);
  }
}

TEST_CASE("the destructor of a callable may stop its scheduler") {
  manual_timer time;
  struct stops {
    std::shared_ptr<manual_timer*> time;
    void operator()() {}
  };
  int stopped = 0;
  const auto stopping = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) {
      ++stopped;
      CHECK(time.stop().size() <= 1);
    });
  };
  time.schedule_after(1h, doing_nothing());
  SUBCASE("in cancel()") {
    time.cancel(time.schedule_after(1h, [held = stopping()] {}));
  }
  SUBCASE("after a run") {
    time.schedule_after(1ms, [held = stopping()] {});
    time.advance(1ms);
  }
  SUBCASE("in the destructor of the scheduler") {
    manual_timer other;
    other.schedule_after(1h, [held = stopping()] {});
  }
  CHECK(stopped == 1);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("timers that take the memory of ended periodic ones run once") {
  manual_timer time;
  const auto token = std::make_shared<int>(0);
  std::vector<timer_id> ids;
  for (int i = 0; i != 100; ++i) ids.push_back(time.schedule_every(1ms, holding(token)));
  for (const timer_id id : ids) time.cancel(id);
  for (int i = 0; i != 100; ++i) time.schedule_after(1ms, holding(token));  // not plain: it owns something
  for (const rondo::timer_info& t : time.list()) CHECK(!t.periodic);
  time.advance(10ms);
  CHECK(*token == 100);
  CHECK(time.pending() == 0);
}

}  // namespace scheduler_callable_destruction
