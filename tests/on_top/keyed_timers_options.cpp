// Keyed timers with their own options: an executor, a name.
#include <rondo/keyed_timers.hpp>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace on_top_keyed_timers_options {

using namespace rondo;
using namespace rondo::test;

using by_name = keyed_timers<std::string>;

/// Every way to set a key, with a callable and with a task.
const std::vector<std::function<void(by_name&, timer_options, std::function<void(const firing&)>)>> ways = {
    [](by_name& t, timer_options o, auto work) { t.set_after("k", 1ms, std::move(work), std::move(o)); },
    [](by_name& t, timer_options o, auto work) { t.set_at("k", at(1ms), std::move(work), std::move(o)); },
    [](by_name& t, timer_options o, auto work) {
      t.set("k", every(1ms).times(1), std::move(work), std::move(o));
    },
    [](by_name& t, timer_options o, auto work) {
      const bool is_set = t.try_set_after("k", 1ms, std::move(work), std::move(o));
      CHECK(is_set);
    },
    [](by_name& t, timer_options o, auto work) {
      t.set_after("k", 1ms, rondo::task(std::move(work)), std::move(o));
    },
    [](by_name& t, timer_options o, auto work) {
      t.set_at("k", at(1ms), rondo::task(std::move(work)), std::move(o));
    },
    [](by_name& t, timer_options o, auto work) {
      t.set("k", every(1ms).times(1), rondo::task(std::move(work)), std::move(o));
    },
    [](by_name& t, timer_options o, auto work) {
      const bool is_set = t.try_set_after("k", 1ms, rondo::task(std::move(work)), std::move(o));
      CHECK(is_set);
    },
};

TEST_CASE("each call that sets a key takes an executor and a name") {
  for (const auto& set : ways) {
    manual_timer time;
    by_name timers(time);
    int jobs = 0, runs = 0;
    const executor counted = [&](job j) {
      ++jobs;
      j();
    };
    set(timers, {.run_on = counted, .name = "the name"}, [&](const firing& f) {
      CHECK(f.name == "the name");
      CHECK(f.due == at(1ms));
      ++runs;
    });
    REQUIRE(time.list().size() == 1);
    CHECK(time.list().front().name == "the name");
    CHECK(time.advance(1ms) == 1);
    CHECK(jobs == 1);
    CHECK(runs == 1);
    CHECK(time.pending() == 0);
  }
}

TEST_CASE("a timer that replaces another one has its own options, or none") {
  manual_timer time;
  by_name timers(time);
  std::vector<std::string> names;
  const auto note = [&](const firing& f) { names.emplace_back(f.name); };
  timers.set_after("a", 1ms, note, {.name = "old"});
  timers.set_after("a", 1ms, note, {.name = "new"});
  timers.set_after("b", 1ms, note, {.name = "old"});
  timers.set_after("b", 1ms, note);
  CHECK_FALSE(timers.try_set_after("a", 1ms, note, {.name = "too late"}));
  time.advance(1ms);
  CHECK(names == std::vector<std::string>{"new", ""});
}

TEST_CASE("calls that set a key take rondo::on in place of options") {
  manual_timer time;
  by_name timers(time);
  int jobs = 0;
  const on counted([&](job j) {
    ++jobs;
    j();
  });
  timers.set_after("a", 1ms, doing_nothing(), counted);
  timers.set_at("b", at(1ms), doing_nothing(), counted);
  timers.set("c", every(1ms).times(1), doing_nothing(), counted);
  timers.try_set_after("d", 1ms, doing_nothing(), counted);
  CHECK(time.advance(1ms) == 4);
  CHECK(jobs == 4);
  CHECK_THROWS_AS(timers.set_after("a", 1ms, doing_nothing(), on(executor())), std::invalid_argument);
}

TEST_CASE("the contents of a timer's options are destroyed with its callable") {
  manual_timer time;
  by_name timers(time);
  const auto token = std::make_shared<int>(0);
  const auto with = [&] { return timer_options{.run_on = [token](job j) { j(); }}; };
  timers.set_after("a", 1ms, doing_nothing(), with());
  timers.set_after("a", 1ms, doing_nothing());
  CHECK(token.use_count() == 1);
  timers.set_after("a", 1ms, doing_nothing(), with());
  CHECK(token.use_count() == 2);
  timers.cancel("a");
  CHECK(token.use_count() == 1);
  timers.set_after("a", 1ms, doing_nothing(), with());
  time.advance(1ms);
  CHECK(token.use_count() == 1);
}

TEST_CASE("with options, too, an empty task and a key that has a timer are refused") {
  manual_timer time;
  by_name timers(time);
  const timer_options named{.name = "x"};
  CHECK_THROWS_AS(timers.set_after("a", 1ms, rondo::task(), named), std::invalid_argument);
  CHECK_THROWS_AS(timers.try_set_after("a", 1ms, rondo::task(), named), std::invalid_argument);
  CHECK_THROWS_AS(timers.set("a", every(1ms), std::function<void()>(), named), std::invalid_argument);
  CHECK(timers.size() == 0);
  timers.set_after("a", 1ms, doing_nothing());
  CHECK_FALSE(timers.try_set_after("a", 1ms, doing_nothing(), named));
  CHECK_FALSE(timers.try_set_after("a", 1ms, rondo::task(doing_nothing()), named));
}

TEST_CASE("without memory for its options a timer is not set, and the old timer stays" *
          doctest::skip(!failing_new::available)) {
  for (const auto& set : ways) {
    if (&set == &ways[3] || &set == &ways[7]) continue;  // these would find the old timer
    bool struck = true;
    for (std::size_t k = 0; struck; ++k) {
      REQUIRE(k < 1000);
      manual_timer time;
      by_name timers(time);
      int runs = 0, old_runs = 0;
      timers.set_after("k", 1ms, counting(old_runs));
      bool done = false;
      {
        timer_options with{.run_on = [](job j) { j(); }, .name = "longer than a string that is held inside"};
        std::function<void(const firing&)> work = [&](const firing&) { ++runs; };
        const failing_new failing(k);
        try {
          set(timers, std::move(with), std::move(work));
          done = true;
        } catch (const std::bad_alloc&) {
        }
        struck = failing.struck();
      }
      CHECK(time.pending() == 1);
      time.advance(1ms);
      CHECK(runs == (done ? 1 : 0));
      CHECK(old_runs == (done ? 0 : 1));
      CHECK(adds_up(time.stats()));
    }
  }
}

TEST_CASE("setting a key with options is refused when the scheduler is gone") {
  std::optional<manual_timer> time(std::in_place);
  by_name timers(*time);
  const auto token = std::make_shared<int>(0);
  time.reset();
  for (const auto& set : ways)
    CHECK_THROWS_AS(set(timers, {.name = "x"}, [token](const firing&) {}), stopped_error);
  CHECK(token.use_count() == 1);
}

// The last argument of a call that sets a key: any other type does not compile.
template <class... Rest>
concept settable = requires(by_name& t, void (*work)(), Rest... rest) {
  t.set_after("", 1ms, work, rest...);
};
template <class... Rest>
concept settable_at = requires(by_name& t, void (*work)(), Rest... rest) {
  t.set_at("", at(1ms), work, rest...);
};
template <class... Rest>
concept settable_as = requires(by_name& t, void (*work)(), Rest... rest) {
  t.set("", every(1ms), work, rest...);
};
template <class... Rest>
concept try_settable = requires(by_name& t, void (*work)(), Rest... rest) {
  t.try_set_after("", 1ms, work, rest...);
};

template <class... Rest>
constexpr int takers() {
  return int{settable<Rest...>} + int{settable_at<Rest...>} + int{settable_as<Rest...>} +
         int{try_settable<Rest...>};
}

static_assert(takers<>() == 4);
static_assert(takers<timer_options>() == 4);
static_assert(takers<const timer_options&>() == 4);
static_assert(takers<on>() == 4);
static_assert(takers<executor>() == 0);
static_assert(takers<void (*)(job)>() == 0);
static_assert(takers<std::nullptr_t>() == 0);
static_assert(takers<int>() == 0);
static_assert(takers<const char*>() == 0);
static_assert(takers<std::string>() == 0);
static_assert(takers<options>() == 0);
static_assert(takers<on, on>() == 0);

}  // namespace on_top_keyed_timers_options
