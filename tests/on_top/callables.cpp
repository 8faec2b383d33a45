// Scopes and keyed timers construct the callable in its final place, as the scheduler's calls do.
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/timer_scope.hpp>

namespace on_top_callables {

using namespace std::chrono_literals;
using namespace rondo;

/// Counts its moves and calls.
struct counting {
  struct counts {
    int moves = 0;
    int runs = 0;
  };

  explicit counting(counts& c) : all(&c) {}
  counting(counting&& other) noexcept : all(other.all) { ++all->moves; }
  counting& operator=(counting&&) = delete;
  void operator()() const { ++all->runs; }

  counts* all;
};

struct throws_when_copied {
  throws_when_copied() = default;
  throws_when_copied(const throws_when_copied&) { throw std::runtime_error("no copy"); }
  throws_when_copied& operator=(const throws_when_copied&) = delete;
  void operator()() const {}
};

TEST_CASE("a callable is moved into the timer of a scope or a key once, and never again") {
  manual_timer time;
  timer_scope scope(time);
  keyed_timers<int> keys(time);
  const on inline_on([](job j) { j(); });
  const auto once = every(1ms).times(1);
  counting::counts all;
  SUBCASE("of a scope") {
    scope.schedule_after(1ms, counting(all));
    scope.schedule_at(time.now(), counting(all));
    scope.schedule(once, counting(all));
  }
  SUBCASE("of a scope, with an executor") {
    scope.schedule_after(1ms, counting(all), inline_on);
    scope.schedule_at(time.now(), counting(all), inline_on);
    scope.schedule(once, counting(all), inline_on);
  }
  SUBCASE("of keys") {
    keys.set_after(1, 1ms, counting(all));
    keys.set_at(2, time.now(), counting(all));
    keys.set(3, once, counting(all));
  }
  time.advance(1ms);
  CHECK(all.moves == 3);
  CHECK(all.runs == 3);
}

TEST_CASE("scopes and keys also take task objects, including those in braces") {
  manual_timer time;
  timer_scope scope(time);
  keyed_timers<int> keys(time);
  counting::counts all;
  scope.schedule_after(1ms, task(counting(all)));
  scope.schedule_after(1ms, {counting(all)});
  keys.set_after(1, 1ms, task(counting(all)));
  keys.set_after(2, 1ms, {counting(all)});
  CHECK(keys.try_set_after(3, 1ms, task(counting(all))));
  time.advance(1ms);
  CHECK(all.runs == 5);
}

TEST_CASE("if copying a callable throws, the key keeps its old timer and no place is taken") {
  manual_timer time(options{.max_pending = 2});
  timer_scope scope(time);
  keyed_timers<int> keys(time);
  const throws_when_copied work;
  int runs = 0;
  keys.set_after(1, 1ms, [&] { ++runs; });
  CHECK_THROWS_AS(scope.schedule_after(1ms, work), std::runtime_error);
  CHECK_THROWS_AS(keys.set_after(1, 5ms, work), std::runtime_error);
  CHECK_THROWS_AS(keys.set_after(2, 5ms, work), std::runtime_error);
  CHECK(time.pending() == 1);
  CHECK(!keys.contains(2));
  scope.schedule_after(1ms, [&] { ++runs; });
  time.advance(1ms);
  CHECK(runs == 2);
}

TEST_CASE("null callables are refused by scopes and keys, and change nothing") {
  manual_timer time;
  timer_scope scope(time);
  keyed_timers<int> keys(time);
  void (*const null)() = nullptr;
  CHECK_THROWS_AS(scope.schedule_after(1ms, null), std::invalid_argument);
  CHECK_THROWS_AS(scope.schedule_after(1ms, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(keys.set_after(1, 1ms, null), std::invalid_argument);
  CHECK_THROWS_AS(keys.set_after(1, 1ms, nullptr), std::invalid_argument);
  CHECK(time.stats().scheduled == 0);
  CHECK(keys.size() == 0);
}

}  // namespace on_top_callables
