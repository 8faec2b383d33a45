// Each allocation fails in turn: a call that throws changes nothing, and succeeds when it is repeated.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "failing_new.hpp"
#include "recording.hpp"
#include "without_memory.hpp"

namespace wheel_allocation_failure {

using namespace wheel_test;
using namespace rondo::test;

/// The visible state of a wheel and its nodes.
struct view {
  std::vector<std::optional<tick_number>> dues;
  std::size_t size = 0;
  tick_number now = 0;
  bool operator==(const view&) const = default;
};

view view_of(const wheel& w, const std::deque<timer>& timers) {
  view seen;
  for (const timer& t : timers) seen.dues.push_back(t.scheduled() ? std::optional(t.due()) : std::nullopt);
  seen.size = w.size();
  seen.now = w.now();
  return seen;
}

/// A wheel with timers of several rounds, all of bucket 5.
struct crowded {
  crowded() {
    for (const tick_number round : {4, 5, 9, 17, 40})
      for (int i = 0; i != 8; ++i) add(round * 8 + 5);
  }
  void add(tick_number due) { w.schedule(timers.emplace_back("t"), due); }
  std::deque<timer> timers;
  wheel w{8};
};

/// Timers whose ticks all enter the window at once. This takes memory although nothing is being scheduled.
struct far_ticks {
  far_ticks() {
    add(5);
    add(8 + 5);
    for (tick_number tick = 0; tick < 16'000; tick += 200)
      for (int i = 0; i != 3; ++i) add(first + tick);
  }
  void add(tick_number due) { w.schedule(timers.emplace_back("t"), due); }
  static constexpr tick_number first = 1 << 20;
  std::deque<timer> timers;
  wheel w{1 << 14};
};

/// Fires all timers, and returns them in order.
std::vector<const timer*> drain(wheel& w) {
  std::vector<const timer*> seen;
  w.advance(last_tick, [&](timer& t) { seen.push_back(&t); });
  return seen;
}

std::vector<const timer*> in_order(const std::deque<timer>& timers) {
  std::vector<const timer*> sorted;
  for (const timer& t : timers) sorted.push_back(&t);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const timer* a, const timer* b) { return a->due() < b->due(); });
  return sorted;
}

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE("schedule() without memory changes nothing") {
  struct {
    std::string where;
    tick_number due;
  } const cases[] = {{"an empty bucket", 6},          {"an earlier round", 5},
                     {"the next round", 4 * 8 + 5},   {"a later round", 9 * 8 + 5},
                     {"between rounds", 7 * 8 + 5},   {"after all others", 1 << 20},
                     {"the far past", -(1 << 20) + 5}};
  for (const auto& tick : cases) {
    CAPTURE(tick.where);
    for (int more = 0; more != 70; ++more) {  // some of these numbers fill a chunk or an array
      crowded c;
      for (int i = 0; i != more; ++i) c.add(tick.due);
      timer& added = c.timers.emplace_back("added");
      const auto next_before = c.w.next_due();
      const view before = view_of(c.w, c.timers);
      fail_at_each_allocation([&] { c.w.schedule(added, tick.due); },
                              [&] {
                                REQUIRE((view_of(c.w, c.timers) == before));
                                REQUIRE(c.w.next_due() == next_before);
                              });
      REQUIRE(added.scheduled());
      const auto expected = in_order(c.timers);
      REQUIRE((drain(c.w) == expected));
    }
  }
}

TEST_CASE("some of these calls do allocate, so the failures above are real") {
  wheel w(8);
  timer a;
  CHECK(fail_at_each_allocation([&] { w.schedule(a, 5); }, [] {}) > 0);
}

TEST_CASE("moving a node without memory leaves it where it was") {
  for (const tick_number due : {5, 6, 4 * 8 + 5, 7 * 8 + 5, 9 * 8 + 5, 1 << 20}) {
    for (const std::size_t moved : {0U, 3U, 12U, 39U}) {
      CAPTURE(due);
      CAPTURE(moved);
      crowded c;
      const view before = view_of(c.w, c.timers);
      fail_at_each_allocation([&] { c.w.schedule(c.timers[moved], due); },
                              [&] { REQUIRE((view_of(c.w, c.timers) == before)); });
      REQUIRE(c.timers[moved].due() == due);
      REQUIRE(c.w.size() == c.timers.size());
      REQUIRE(drain(c.w).size() == c.timers.size());
    }
  }
}

TEST_CASE("moving a node without memory does not change the order") {
  for (const tick_number due : {5, 6, 7 * 8 + 5, 1 << 20}) {
    for (const std::size_t moved : {0U, 3U, 12U, 39U}) {
      CAPTURE(due);
      CAPTURE(moved);
      crowded c;
      const auto expected = in_order(c.timers);
      bool failed = false;
      try {
        const failing_new memory(0);
        c.w.schedule(c.timers[moved], due);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      if (failed) REQUIRE((drain(c.w) == expected));
    }
  }
}

TEST_CASE("moving a node from another wheel without memory leaves it in that wheel") {
  wheel from(8), to(8);
  timer a("a");
  from.schedule(a, 5);
  const std::size_t failures = fail_at_each_allocation([&] { to.schedule(a, 9); },
                                                       [&] {
                                                         CHECK(from.size() == 1);
                                                         CHECK(to.empty());
                                                         CHECK(a.due() == 5);
                                                         CHECK(from.next_due() == 5);
                                                         CHECK(to.next_due() == std::nullopt);
                                                       });
  CHECK(failures > 0);
  CHECK(from.empty());
  CHECK(fired(to, 10) == "a@9");
}

TEST_CASE("advance() without memory loses no timer and fires none twice") {
  far_ticks far;
  const auto expected = in_order(far.timers);
  std::vector<const timer*> seen;
  seen.reserve(far.timers.size());  // the callback itself needs no memory
  const std::size_t failures =
      fail_at_each_allocation([&] { far.w.advance(last_tick, [&](timer& t) { seen.push_back(&t); }); },
                              [&] { REQUIRE(far.w.size() == far.timers.size() - seen.size()); });
  CHECK(failures > 0);
  CHECK((seen == expected));
}

TEST_CASE("next_due() allocates nothing") {
  far_ticks far;
  far.w.cancel(far.timers[0]);
  far.w.cancel(far.timers[1]);
  {
    const failing_new memory(0);
    CHECK(far.w.next_due() == far_ticks::first);
    CHECK_FALSE(memory.struck());
  }
  CHECK(drain(far.w).size() == far.timers.size() - 2);
}

TEST_CASE("a constructor without memory leaks nothing") {
  const auto before = bytes_held();
  const std::size_t failures =
      fail_at_each_allocation([] { wheel w(8); }, [&] { CHECK(bytes_held() == before); });
  CHECK(failures > 0);
  CHECK(bytes_held() == before);
}

TEST_CASE("cancelling and destroying allocate nothing") {
  crowded c;
  const failing_new memory(0);
  while (!c.timers.empty()) c.timers.pop_back();
  CHECK(c.w.empty());
}

TEST_SUITE_END();

}  // namespace wheel_allocation_failure
