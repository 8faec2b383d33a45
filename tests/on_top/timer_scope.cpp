// Timers of a scope, on virtual time.
#include <rondo/timer_scope.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <rondo/errors.hpp>
#include <rondo/polled_timer.hpp>

#include "scheduler/virtual_time.hpp"

namespace on_top_timer_scope {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("timers of a scope run like the scheduler's own") {
  manual_timer time;
  timer_scope scope(time);
  std::vector<firing> runs;
  const auto a = scope.schedule_after(3ms, recording(runs));
  const auto b = scope.schedule_at(at(1ms), recording(runs));
  const auto c = scope.schedule_every(2ms, recording(runs));
  const auto d = scope.schedule(every(4ms).times(1), recording(runs));
  CHECK(scope.pending() == 4);
  CHECK(time.pending() == 4);
  time.advance(4ms);
  std::vector<timer_id> order;
  for (const firing& f : runs) order.push_back(f.id);
  CHECK(order == std::vector{b, c, a, d, c});
  CHECK(runs[2].due == at(3ms));
  CHECK(runs[4].run == 2);
  CHECK(scope.pending() == 1);
}

TEST_CASE("all scheduling calls of a scope take an executor for the timer") {
  manual_timer time;
  std::vector<job> jobs;
  timer_scope scope(time);
  const on collecting([&](job j) { jobs.push_back(std::move(j)); });
  int runs = 0;
  scope.schedule_after(1ms, counting(runs), collecting);
  scope.schedule_at(at(1ms), counting(runs), collecting);
  scope.schedule_every(1ms, counting(runs), collecting);
  scope.schedule(every(1ms), counting(runs), collecting);
  time.advance(1ms);
  CHECK(runs == 0);
  REQUIRE(jobs.size() == 4);
  for (job& j : jobs) j();
  CHECK(runs == 4);
}

TEST_CASE("a scope takes times in all units, and at the ends of the clock") {
  manual_timer time;
  timer_scope scope(time);
  int runs = 0;
  scope.schedule_after(std::chrono::hours::max(), counting(runs));
  scope.schedule_at(std::chrono::time_point<std::chrono::steady_clock, std::chrono::hours>::max(),
                    counting(runs));
  const auto id = scope.schedule_every(std::chrono::hours::max(), counting(runs));
  const auto soon = scope.schedule_after(std::chrono::duration<double>(0.001), counting(runs));
  CHECK(scope.reschedule_after(soon, std::chrono::duration<double>(0.002)));
  CHECK(
      scope.reschedule_at(id, std::chrono::time_point<std::chrono::steady_clock, std::chrono::hours>::max()));
  CHECK_THROWS_AS(
      scope.schedule_after(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()),
                           counting(runs)),
      std::invalid_argument);
  time.advance(1ms);
  CHECK(runs == 0);
  time.advance(24h);
  CHECK(runs == 1);
  CHECK(scope.pending() == 3);
}

TEST_CASE("cancelling, rescheduling and pending() of a scope return what the scheduler's calls return") {
  manual_timer time;
  timer_scope scope(time);
  int runs = 0;
  const auto id = scope.schedule_after(1ms, counting(runs));
  CHECK(scope.pending(id));
  CHECK(scope.reschedule_after(id, 3ms));
  CHECK(scope.reschedule_at(id, at(2ms)));
  CHECK(time.advance(1ms) == 0);
  CHECK(time.advance(1ms) == 1);
  CHECK_FALSE(scope.pending(id));
  CHECK_FALSE(scope.reschedule_after(id, 1ms));
  CHECK(scope.cancel(id) == cancel_result::gone);

  const auto other = scope.schedule_every(1ms, counting(runs));
  CHECK(scope.cancel(other) == cancel_result::cancelled);
  CHECK(scope.cancel(other) == cancel_result::gone);
  CHECK(scope.cancel_and_wait(scope.schedule_after(1ms, counting(runs))) == cancel_result::cancelled);
  time.advance(1s);
  CHECK(runs == 1);
  CHECK(time.stats().cancelled == 2);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("inside its own run a scope's timer is known, and is running") {
  manual_timer time;
  timer_scope scope(time);
  std::vector<cancel_result> results;
  scope.schedule_after(1ms, [&](const firing& f) {
    CHECK_FALSE(scope.pending(f.id));
    CHECK(scope.pending() == 1);
    results.push_back(scope.cancel(f.id));
    results.push_back(scope.cancel_and_wait(f.id));
  });
  scope.schedule_every(1ms, [&](const firing& f) {
    CHECK(scope.pending(f.id));
    CHECK(scope.reschedule_after(f.id, 5ms));
    results.push_back(scope.cancel(f.id));
    CHECK_FALSE(scope.reschedule_after(f.id, 5ms));
  });
  time.advance(1s);
  CHECK(results == std::vector(3, cancel_result::running));
}

TEST_CASE("for a scope, timers that are not its own are gone, and it does not touch them") {
  manual_timer time;
  timer_scope scope(time), other(time);
  int runs = 0;
  for (const timer_id id :
       {time.schedule_after(1ms, counting(runs)), other.schedule_after(1ms, counting(runs)), timer_id{}}) {
    CHECK(scope.cancel(id) == cancel_result::gone);
    CHECK(scope.cancel_and_wait(id) == cancel_result::gone);
    CHECK_FALSE(scope.reschedule_after(id, 1h));
    CHECK_FALSE(scope.reschedule_at(id, at(1h)));
    CHECK_FALSE(scope.pending(id));
  }
  scope.cancel_all();
  CHECK(scope.pending() == 0);
  time.advance(1ms);
  CHECK(runs == 2);
}

TEST_CASE(
    "cancel_all() cancels pending timers, destroys their callables at once, and the scope stays usable") {
  manual_timer time;
  timer_scope scope(time);
  int runs = 0;
  const auto token = std::make_shared<int>(0);
  for (int i = 0; i != 100; ++i) scope.schedule_after(i * 1ms, [token, &runs] { ++runs; });
  scope.schedule_every(1ms, [token, &runs] { ++runs; });
  scope.schedule_after(std::chrono::hours::max(), [token] {});
  scope.cancel_all();
  CHECK(token.use_count() == 1);
  CHECK(scope.pending() == 0);
  CHECK(time.advance(1s) == 0);
  scope.schedule_after(1ms, counting(runs));
  time.advance(1s);
  CHECK(runs == 1);
  CHECK(time.stats().cancelled == 102);
}

TEST_CASE("cancel_all() does not cancel what the destructors of the callables schedule") {
  manual_timer time;
  timer_scope scope(time);
  int runs = 0;
  const std::function<void(void*)> scheduling = [&](void*) { scope.schedule_after(1ms, counting(runs)); };
  scope.schedule_after(1h, [held = std::shared_ptr<void>(nullptr, scheduling)] {});
  scope.cancel_all();
  CHECK(scope.pending() == 1);
  time.advance(1ms);
  CHECK(runs == 1);
}

TEST_CASE("the destructor of a scope cancels pending timers and destroys their callables at once") {
  manual_timer time;
  int runs = 0;
  const auto token = std::make_shared<int>(0);
  const auto kept = time.schedule_after(1ms, counting(runs));
  std::optional<timer_scope> scope(time);
  scope->schedule_after(1ms, [token] { FAIL("it ran"); });
  scope->schedule_every(1ms, [token] { FAIL("it ran"); });
  scope.reset();
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 1);
  CHECK(time.pending(kept));
  time.advance(1s);
  CHECK(runs == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a task, or the destructor of its callable, may destroy the scope") {
  manual_timer time;
  std::optional<timer_scope> scope(time);
  journal notes;
  const auto destroying = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) {
      notes.add("destroyed");
      scope.reset();
    });
  };
  SUBCASE("a one-shot") {
    scope->schedule_after(1ms, [held = destroying()]() mutable { held.reset(); });
  }
  SUBCASE("a recurring task") {
    scope->schedule_every(1ms, [held = destroying()]() mutable { held.reset(); });
  }
  SUBCASE("after its run") {
    scope->schedule_after(1ms, [held = destroying()] {});
  }
  SUBCASE("that is cancelled") {
    scope->cancel(scope->schedule_after(1ms, [held = destroying()] {}));
  }
  SUBCASE("that is cancelled together with all others") {
    scope->schedule_after(1ms, [held = destroying()] {});
    scope->schedule_after(1ms, notes.noting("ran"));
    scope->cancel_all();
  }
  if (scope) scope->schedule_after(1h, notes.noting("ran"));
  time.advance(1ms);
  CHECK_FALSE(scope.has_value());
  time.advance(2h);
  CHECK(notes.take() == "destroyed");
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a closed scope says that it is closed, also if the scheduler is full") {
  manual_timer time(options{.max_pending = 1});
  timer_scope scope(time);
  time.schedule_after(1s, [] {});
  CHECK_THROWS_AS(scope.schedule_after(1s, [] {}), capacity_error);
  scope.close();
  CHECK_THROWS_AS(scope.schedule_after(1s, [] {}), stopped_error);
  CHECK(time.pending() == 1);
}

TEST_CASE("a closed scope takes no more timers, even from inside") {
  manual_timer time;
  timer_scope scope(time);
  const auto token = std::make_shared<int>(0);
  int refused = 0;
  const auto again = [&] {
    try {
      scope.schedule_after(1ms, [token] {});
    } catch (const stopped_error&) {
      ++refused;
    }
  };
  scope.schedule_after(1ms, [&] {
    scope.close();
    again();
  });
  time.advance(1ms);
  again();
  CHECK_THROWS_AS(scope.schedule_every(1ms, [] {}), stopped_error);
  scope.close();
  CHECK(refused == 2);
  CHECK(token.use_count() == 1);
  CHECK(scope.pending() == 0);
  CHECK(time.pending() == 0);
  CHECK(time.stats().scheduled == 1);
}

TEST_CASE("a call of a scope that the scheduler refuses changes nothing") {
  manual_timer time(options{.max_pending = 1});
  timer_scope scope(time);
  const auto token = std::make_shared<int>(0);
  CHECK_THROWS_AS(scope.schedule_after(1ms, rondo::task()), std::invalid_argument);
  CHECK_THROWS_AS(scope.schedule_after(1ms, std::function<void()>()), std::invalid_argument);
  CHECK_THROWS_AS(scope.schedule_every(0ms, [token] {}), std::invalid_argument);
  const auto id = scope.schedule_after(1ms, [] {});
  CHECK_THROWS_AS(scope.schedule_after(1ms, [token] {}), capacity_error);
  CHECK(scope.pending(id));
  time.stop();
  CHECK_THROWS_AS(scope.schedule_after(1ms, [token] {}), stopped_error);
  CHECK(token.use_count() == 1);
  CHECK(scope.pending() == 0);
}

TEST_CASE("timers that stop() hands back no longer belong to the scope") {
  std::vector<rondo::unfired> list;
  int runs = 0;
  const auto token = std::make_shared<int>(0);
  {
    manual_timer time;
    timer_scope scope(time);
    const auto id = scope.schedule_after(1ms, [&, token] { ++runs; });
    scope.schedule_every(1ms, [&, token] { ++runs; });
    scope.schedule_after(1h, [&, token] { ++runs; });
    list = time.stop();
    REQUIRE(list.size() == 3);
    CHECK(scope.pending() == 0);
    CHECK_FALSE(scope.pending(id));
    CHECK(scope.cancel(id) == cancel_result::gone);
    list[0].work();
    list.erase(list.begin());
    scope.cancel_all();
    list[0].work();
  }
  CHECK(runs == 2);
  list[1].work();
  CHECK(runs == 3);
  CHECK(token.use_count() == 3);
  list.clear();
  CHECK(token.use_count() == 1);
}

TEST_CASE("a scope's timer ends when its job is dropped") {
  manual_timer time(options{.run_on = [](const job&) {}});
  timer_scope scope(time);
  const auto token = std::make_shared<int>(0);
  const auto id = scope.schedule_after(1ms, [token] {});
  time.advance(1ms);
  CHECK(token.use_count() == 1);
  CHECK(scope.cancel(id) == cancel_result::gone);
  CHECK(time.stats().rejected == 1);
}

TEST_CASE("jobs that outlive the scope do nothing") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto token = std::make_shared<int>(0);
  {
    timer_scope scope(time);
    scope.schedule_after(1ms, [token] { FAIL("it ran"); });
    time.advance(1ms);
  }
  REQUIRE(jobs.size() == 1);
  CHECK(token.use_count() == 1);
  jobs[0]();
}

TEST_CASE("no lock of a scope is held while on_earlier runs") {
  polled_timer time;
  timer_scope scope(time);
  int calls = 0;
  time.on_earlier([&] {
    ++calls;
    CHECK(scope.pending() <= 2);
    scope.cancel(timer_id{});
    if (calls == 1) scope.schedule_after(2h, [] {});
  });
  const auto id = scope.schedule_after(1h, [] {});
  scope.reschedule_after(id, 1min);
  CHECK(calls >= 1);
  CHECK(scope.pending() == 2);
}

TEST_CASE("on_earlier may destroy the scope that is scheduling, and with it the new timer") {
  polled_timer time;
  std::optional<timer_scope> scope(time);
  const auto token = std::make_shared<int>(0);
  time.on_earlier([&] { scope.reset(); });
  const timer_id id = scope->schedule_after(1h, [token] {});
  CHECK(id != timer_id{});
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a scope may outlive its scheduler, and then behaves as after stop()") {
  std::optional<manual_timer> time(std::in_place);
  timer_scope scope(*time);
  const auto token = std::make_shared<int>(0);
  const auto id = scope.schedule_after(1ms, [token] { FAIL("it ran"); });
  scope.schedule_every(1ms, [token] { FAIL("it ran"); });
  time.reset();
  CHECK(token.use_count() == 1);
  CHECK(scope.cancel(id) == cancel_result::gone);
  CHECK(scope.cancel_and_wait(id) == cancel_result::gone);
  CHECK_FALSE(scope.reschedule_after(id, 1ms));
  CHECK_FALSE(scope.pending(id));
  CHECK(scope.pending() == 0);
  CHECK_THROWS_AS(scope.schedule_after(1ms, [token] {}), stopped_error);
  CHECK_THROWS_AS(scope.schedule_every(1ms, [token] {}), stopped_error);
  CHECK(token.use_count() == 1);
  scope.cancel_all();
  scope.close();
}

TEST_CASE("a scope does not keep the handlers of a scheduler that is gone") {
  const auto token = std::make_shared<int>(0);
  std::optional<manual_timer> time(std::in_place,
                                   options{.on_error = [token](std::exception_ptr, const firing&) {}});
  const timer_scope scope(*time);
  time.reset();
  CHECK(token.use_count() == 1);
}

TEST_CASE("a task may destroy its scheduler before the scope, which is destroyed by its owner") {
  std::optional<manual_timer> time(std::in_place);
  std::optional<timer_scope> scope(*time);
  journal notes;
  scope->schedule_after(1ms, [&] {
    time.reset();
    CHECK_THROWS_AS(scope->schedule_after(1ms, [] {}), stopped_error);
    CHECK(scope->pending() == 0);
    SUBCASE("in the same task") { scope.reset(); }
    SUBCASE("later") {}
    notes.add("ran");
  });
  scope->schedule_after(1h,
                        [held = std::shared_ptr<void>(nullptr, [&](void*) { notes.add("destroyed"); })] {});
  time->advance(1ms);
  CHECK(notes.take() == "destroyed ran");
}

TEST_CASE(
    "cancel_all() only cancels timers that were scheduled before it, even if each of them schedules two") {
  manual_timer time;
  int left = 100;
  std::function<void(void*)> again;  // callables have copies of it
  timer_scope scope(time);
  again = [&](void*) {
    for (int i = 0; i != 2 && left != 0; ++i, --left)
      scope.schedule_after(1h, [held = std::shared_ptr<void>(nullptr, again)] {});
  };
  for (int i = 0; i != 10; ++i) scope.schedule_after(1h, [held = std::shared_ptr<void>(nullptr, again)] {});
  scope.cancel_all();
  CHECK(scope.pending() == 20);
  left = 0;
}

TEST_CASE("cancel_all() ends after the last timer that was scheduled before it, even if that one is gone") {
  manual_timer time;
  timer_scope scope(time);
  timer_id last;
  const std::function<void(void*)> replacing = [&](void*) {
    CHECK(scope.cancel(last) == cancel_result::cancelled);
    scope.schedule_after(1h, [] {});
  };
  scope.schedule_after(1h, [held = std::shared_ptr<void>(nullptr, replacing)] {});
  scope.schedule_after(1h, [] {});
  last = scope.schedule_after(1h, [] {});
  scope.cancel_all();
  CHECK(scope.pending() == 1);
  CHECK(time.stats().cancelled == 3);
}

TEST_CASE("a callable that cancel_all() destroys may cancel all timers, or some that are next in line") {
  manual_timer time;
  timer_scope scope(time);
  std::vector<timer_id> ids;
  int destroyed = 0;
  std::size_t first = 0, last = 0;
  const auto cancelling = [&](void*) {
    ++destroyed;
    for (std::size_t i = first; i != last; ++i) scope.cancel(ids[i]);
    if (first == last) scope.cancel_all();
  };
  for (int i = 0; i != 10; ++i)
    ids.push_back(scope.schedule_after(1h, [held = std::shared_ptr<void>(nullptr, cancelling)] {}));
  SUBCASE("all") {}
  SUBCASE("the next") { std::tie(first, last) = std::pair(1, 4); }
  SUBCASE("the last") { std::tie(first, last) = std::pair(7, 10); }
  SUBCASE("all others") { last = 10; }
  scope.cancel_all();
  CHECK(destroyed == 10);
  CHECK(time.pending() == 0);
  CHECK(time.stats().cancelled == 10);
}

}  // namespace on_top_timer_scope
