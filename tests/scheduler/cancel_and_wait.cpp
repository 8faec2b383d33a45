// cancel_and_wait() when there is nothing to wait for. (For the other case see threads/cancel_and_wait.cpp.)
#include <memory>

#include "scheduler/virtual_time.hpp"

namespace scheduler_cancel_and_wait {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("cancel_and_wait() returns what cancel() returns") {
  manual_timer time;
  const auto id = time.schedule_after(1ms, doing_nothing());
  CHECK(time.cancel_and_wait(id) == cancel_result::cancelled);
  CHECK(time.cancel_and_wait(id) == cancel_result::gone);
  CHECK(time.stats().cancelled == 1);
}

TEST_CASE("cancel_and_wait() inside the timer's own run does not wait") {
  manual_timer time;
  std::vector<cancel_result> results;
  timer_id id;
  SUBCASE("a one-shot") {
    id = time.schedule_after(1ms, [&] { results.push_back(time.cancel_and_wait(id)); });
  }
  SUBCASE("a periodic task") {
    id = time.schedule_every(1ms, [&] { results.push_back(time.cancel_and_wait(id)); });
  }
  SUBCASE("after it was cancelled in that run") {
    id = time.schedule_every(1ms, [&] {
      time.cancel(id);
      results.push_back(time.cancel_and_wait(id));
    });
  }
  time.advance(10ms);
  CHECK(results == std::vector{cancel_result::running});
}

TEST_CASE("cancel_and_wait() inside the timer's own run on an executor does not wait") {
  std::vector<cancel_result> results;
  timer_id id;
  manual_timer time(options{.run_on = [](job j) { j(); }});
  id = time.schedule_every(1ms, [&] { results.push_back(time.cancel_and_wait(id)); });
  time.advance(10ms);
  CHECK(results == std::vector{cancel_result::running});
}

TEST_CASE("cancel_and_wait() inside on_error for the same timer does not wait") {
  std::vector<cancel_result> results;
  manual_timer* timer = nullptr;
  manual_timer time(options{.on_error = [&](std::exception_ptr, const firing& f) {
    results.push_back(timer->cancel_and_wait(f.id));
  }});
  timer = &time;
  time.schedule_every(1ms, [] { throw 1; });
  time.advance(10ms);
  CHECK(results == std::vector{cancel_result::running});
}

TEST_CASE("cancel_and_wait() in the destructor of the timer's own callable does not wait") {
  manual_timer time;
  std::vector<cancel_result> results;
  timer_id id;
  const auto waiting = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) { results.push_back(time.cancel_and_wait(id)); });
  };
  SUBCASE("after a run") {
    id = time.schedule_after(1ms, [held = waiting()] {});
    time.advance(1ms);
    CHECK(results.size() == 1);
  }
  SUBCASE("after the last run of a periodic task") {
    id = time.schedule_every(1ms, [held = waiting(), &time, &id] { time.cancel(id); });
    time.advance(1ms);
    CHECK(results.size() == 1);
  }
  SUBCASE("inside cancel()") {
    id = time.schedule_after(1ms, [held = waiting()] {});
    CHECK(time.cancel(id) == cancel_result::cancelled);
    CHECK(results == std::vector{cancel_result::gone});
  }
}

TEST_CASE("cancel_and_wait() inside another task does not wait for a timer that has not begun to run") {
  manual_timer time;
  timer_id sibling;
  time.schedule_after(1ms, [&] { CHECK(time.cancel_and_wait(sibling) == cancel_result::cancelled); });
  sibling = time.schedule_after(1ms, doing_nothing());
  CHECK(time.advance(1ms) == 1);
}

TEST_CASE("cancel_and_wait() does not wait for a job that has not started") {
  std::vector<job> kept;
  manual_timer time(options{.run_on = [&](job j) { kept.push_back(std::move(j)); }});
  int runs = 0;
  const auto id = time.schedule_after(1ms, counting(runs));
  time.advance(1ms);
  CHECK(time.cancel_and_wait(id) == cancel_result::cancelled);
  kept[0]();
  CHECK(runs == 0);
}

}  // namespace scheduler_cancel_and_wait
