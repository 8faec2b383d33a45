// What the scheduling calls take as the task, in all their forms: of a scheduler, a scope and keyed_timers, with and
// without options.
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/timer_scope.hpp>

namespace on_top_what_is_scheduled {

using namespace std::chrono_literals;
using namespace rondo;

struct calls {
  manual_timer time;
  timer_scope scope{time};
  keyed_timers<int> keyed{time};
  recurrence once = every(1ms).times(1);
  timer_options with = {.name = "given"};
  int runs = 0;
};

/// Each of the calls, as functions of a `calls`. The arguments are those of the call, after when it is due; in them, `c` is the
/// `calls`.
#define EACH_CALL(...)                                                                 \
  std::to_array<void (*)(calls&)>({                                                    \
      [](calls& c) { c.time.schedule_after(1ms, __VA_ARGS__); },                       \
      [](calls& c) { c.time.schedule_at(c.time.now() + 1ms, __VA_ARGS__); },           \
      [](calls& c) { c.time.schedule_every(1ms, __VA_ARGS__); },                       \
      [](calls& c) { c.time.schedule(c.once, __VA_ARGS__); },                          \
      [](calls& c) { c.scope.schedule_after(1ms, __VA_ARGS__); },                      \
      [](calls& c) { c.scope.schedule_at(c.time.now() + 1ms, __VA_ARGS__); },          \
      [](calls& c) { c.scope.schedule_every(1ms, __VA_ARGS__); },                      \
      [](calls& c) { c.scope.schedule(c.once, __VA_ARGS__); },                         \
      [](calls& c) { c.keyed.set_after(1, 1ms, __VA_ARGS__); },                        \
      [](calls& c) { c.keyed.set_at(1, c.time.now() + 1ms, __VA_ARGS__); },            \
      [](calls& c) { c.keyed.set(1, c.once, __VA_ARGS__); },                           \
      [](calls& c) { static_cast<void>(c.keyed.try_set_after(1, 1ms, __VA_ARGS__)); }, \
  })

/// Calls check(call) for each, with a task alone and with options too.
#define WITH_AND_WITHOUT_OPTIONS(check, ...)                                    \
  do {                                                                          \
    for (const auto call : EACH_CALL(__VA_ARGS__)) check(call);                 \
    for (const auto call : EACH_CALL(__VA_ARGS__, c.with)) check(call);         \
    for (const auto call : EACH_CALL(__VA_ARGS__, {})) check(call);             \
    for (const auto call : EACH_CALL(__VA_ARGS__, {.slack = 0ms})) check(call); \
  } while (false)

int runs_of_function = 0;
void function() { ++runs_of_function; }

struct converts {
  calls& c;
  operator task() const {
    return [&all = c] { ++all.runs; };
  }
};

TEST_CASE("each scheduling call takes a callable, a task, a task in braces, and what converts to a task") {
  const auto runs = [](void (*call)(calls&)) {
    calls c;
    runs_of_function = 0;
    call(c);
    c.time.advance(1ms);
    CHECK(c.runs + runs_of_function == 1);
  };
  WITH_AND_WITHOUT_OPTIONS(runs, [&c] { ++c.runs; });
  WITH_AND_WITHOUT_OPTIONS(runs, [&c](const firing&) { ++c.runs; });
  WITH_AND_WITHOUT_OPTIONS(runs, [&c, owned = std::make_unique<int>()] { ++c.runs; });
  WITH_AND_WITHOUT_OPTIONS(runs, std::function<void()>([&c] { ++c.runs; }));
  WITH_AND_WITHOUT_OPTIONS(runs, function);
  WITH_AND_WITHOUT_OPTIONS(runs, &function);
  WITH_AND_WITHOUT_OPTIONS(runs, task([&c] { ++c.runs; }));
  WITH_AND_WITHOUT_OPTIONS(runs, {[&c] { ++c.runs; }});
  WITH_AND_WITHOUT_OPTIONS(runs, {function, task(function).made_at()});
  WITH_AND_WITHOUT_OPTIONS(runs, converts{c});
}

TEST_CASE("each scheduling call refuses an empty task") {
  const auto refuses = [](void (*call)(calls&)) {
    calls c;
    CHECK_THROWS_AS(call(c), std::invalid_argument);
    CHECK(c.time.pending() == 0);
    CHECK(c.time.stats().scheduled == 0);
  };
  struct converts_to_nothing {
    operator task() const { return {}; }
  };
  WITH_AND_WITHOUT_OPTIONS(refuses, {});
  WITH_AND_WITHOUT_OPTIONS(refuses, nullptr);
  WITH_AND_WITHOUT_OPTIONS(refuses, task());
  WITH_AND_WITHOUT_OPTIONS(refuses, std::function<void()>());
  WITH_AND_WITHOUT_OPTIONS(refuses, static_cast<void (*)()>(nullptr));
  WITH_AND_WITHOUT_OPTIONS(refuses, converts_to_nothing());
}

template <class... Work>
concept taken = requires(calls& c, Work&&... work) {
  c.time.schedule_after(1ms, std::forward<Work>(work)...);
}
|| requires(calls& c, Work&&... work) { c.scope.schedule(c.once, std::forward<Work>(work)...); }
|| requires(calls& c, Work&&... work) { c.keyed.set_after(1, 1ms, std::forward<Work>(work)...); };

TEST_CASE("what is no task does not compile") {
  const auto one_argument = [](int) {};
  CHECK(taken<void (*)()>);
  CHECK_FALSE(taken<>);
  CHECK_FALSE(taken<int>);
  CHECK_FALSE(taken<const char*>);
  CHECK_FALSE(taken<task&>);  // a task can only be moved
  CHECK_FALSE(taken<const task>);
  CHECK_FALSE(taken<decltype(one_argument)>);
  CHECK_FALSE(taken<std::unique_ptr<int>>);
}

TEST_CASE("a call that throws leaves the task to its owner") {
  manual_timer time;
  timer_scope scope(time);
  keyed_timers<int> keyed(time);
  time.stop();
  task work = [] {};
  CHECK_THROWS_AS(time.schedule_after(1ms, std::move(work)), stopped_error);
  CHECK_THROWS_AS(scope.schedule_at(time.now(), std::move(work), {}), stopped_error);
  CHECK_THROWS_AS(keyed.set_after(1, 1ms, std::move(work)), stopped_error);
  CHECK(static_cast<bool>(work));  // NOLINT(bugprone-use-after-move)
}

}  // namespace on_top_what_is_scheduled
