// Allocations that fail while the window moves, and while far or overdue timers are redistributed or extracted.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/detail/chunks.hpp>

#include "failing_new.hpp"
#include "recording.hpp"
#include "wheel_kinds.hpp"
#include "without_memory.hpp"

namespace wheel_allocation_failure_far {

using namespace rondo;
using namespace rondo::test;
using wheel_test::fail_at_each_allocation;
using wheel_test::first_tick;
using wheel_test::last_tick;

/// Memory comes in segments of 32 chunks. Trials begin with different numbers of chunks in use, so that every call has
/// to allocate in some trial.
constexpr std::size_t segment_chunks = 32;

/// A wheel of 64 buckets that redistributes three nodes at a time, and its timers in the order of scheduling.
template <class Kind = rondo::test::small_parts>
struct world {
  using timer = typename Kind::node;
  using wheel = typename Kind::template wheel<timer>;

  explicit world(std::size_t chunks_in_use) {
    for (std::size_t i = 0; i != chunks_in_use * rondo::detail::chunk_pool::chunk_nodes; ++i)
      add(tick_number{1} << 40);
  }
  timer& add(tick_number due) {
    timer& added = timers.emplace_back();
    w.schedule(added, due);
    order.push_back(&added);
    return added;
  }
  /// Adds far timers: some on 40 ticks, others on many ticks.
  void add_far() {
    for (tick_number i = 0; i != 120; ++i) add(5000 + i * 37 % 40);
    for (tick_number i = 0; i != 60; ++i) add(100'000 + i * 7919 % 60'000);
  }
  void add_overdue() {
    for (tick_number i = 0; i != 60; ++i) add(-(i * 7919 % 60'000));
  }

  std::vector<const timer*> expected() const {
    std::vector<const timer*> sorted(order.begin(), order.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const timer* a, const timer* b) { return a->due() < b->due(); });
    return sorted;
  }
  void is_complete(std::size_t size) {
    REQUIRE(w.fault() == "");
    REQUIRE(w.size() == size);
  }
  /// Fires all remaining timers, and checks their order.
  void drains() {
    const auto sorted = expected();
    std::vector<const timer*> seen;
    w.advance(last_tick, [&](timer& t) { seen.push_back(&t); });
    REQUIRE((seen == sorted));
    REQUIRE(w.fault() == "");
  }

  std::deque<timer> timers;
  std::vector<timer*> order;
  wheel w{64};
};

/// Advances until some far timers are in the window and others have yet to be redistributed.
template <class Kind>
void advance_into_redistribution(world<Kind>& c) {
  std::vector<typename world<Kind>::timer*> seen;
  c.w.advance(5000, [&](auto& t) { seen.push_back(&t); });
  for (auto* t : seen) std::erase(c.order, t);
  REQUIRE(!seen.empty());
  REQUIRE(c.w.fault() == "");
}

const tick_number ticks_of_each_kind[] = {63,   70,      300,        5001,       5020,
                                          5039, 5041,    100'001,    1 << 20,    1 << 30,
                                          -1,   -50'000, -(1 << 25), first_tick, last_tick};

template <class Kind>
std::size_t fail_advance(std::size_t chunks_in_use) {
  world<Kind> c(chunks_in_use);
  c.add_far();
  c.add_overdue();
  const auto expected = c.expected();
  std::vector<const typename world<Kind>::timer*> seen;
  seen.reserve(expected.size());
  const std::size_t failures =
      fail_at_each_allocation([&] { c.w.advance(last_tick, [&](auto& t) { seen.push_back(&t); }); },
                              [&] { c.is_complete(expected.size() - seen.size()); });
  REQUIRE((seen == expected));
  c.is_complete(0);
  return failures;
}

/// Calls act(world<>&, due) for wheels whose far timers are in lists or being redistributed, with any number of chunks
/// of a segment in use, and for ticks of each kind. Then checks that all timers of `order` fire.
template <class Act>
void in_each_state(Act&& act) {
  for (const bool redistributing : {false, true}) {
    for (std::size_t chunks = 0; chunks != segment_chunks + 4; ++chunks) {
      for (const tick_number due : ticks_of_each_kind) {
        CAPTURE(due);
        CAPTURE(chunks);
        world c(chunks);
        c.add_far();
        if (redistributing)
          advance_into_redistribution(c);
        else
          c.add_overdue();
        act(c, due);
        c.drains();
      }
    }
  }
}

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE("schedule() without memory changes nothing, in every state of the far timers") {
  std::size_t failures = 0;
  in_each_state([&](world<>& c, tick_number due) {
    // Enough timers to fill a chunk.
    for (int i = 0; i != 64; ++i) {
      const std::size_t size = c.w.size();
      const auto next = c.w.next_due();
      auto& added = c.timers.emplace_back();
      failures += fail_at_each_allocation([&] { c.w.schedule(added, due); },
                                          [&] {
                                            c.is_complete(size);
                                            REQUIRE((c.w.next_due() == next));
                                            REQUIRE(!added.scheduled());
                                          });
      c.order.push_back(&added);
    }
  });
  CHECK(failures > 30);
}

TEST_CASE("moving a timer without memory leaves it where it was, in every state of the far timers") {
  std::size_t failures = 0;
  in_each_state([&](world<>& c, tick_number due) {
    const std::size_t size = c.w.size();
    for (std::size_t i = 0; i != 64; ++i) {
      auto& t = *c.order[i * 5 % c.order.size()];
      const tick_number before = t.due();
      failures += fail_at_each_allocation([&] { c.w.schedule(t, due); },
                                          [&] {
                                            c.is_complete(size);
                                            REQUIRE(t.due() == before);
                                          });
      std::erase(c.order, &t);
      c.order.push_back(&t);
    }
  });
  CHECK(failures > 30);
}

TEST_CASE("advance() without memory loses no far timer, fires none twice and continues in order") {
  std::size_t failures = 0;
  for (std::size_t chunks = 0; chunks != segment_chunks + 4; ++chunks) {
    CAPTURE(chunks);
    failures += fail_advance<rondo::test::small_parts>(chunks);
  }
  CHECK(failures > 10);
}

TEST_CASE("a timer that is scheduled after an advance() that failed fires after older ones of its tick") {
  std::size_t failures = 0;
  for (std::size_t chunks = 0; chunks != segment_chunks + 4; ++chunks) {
    CAPTURE(chunks);
    world c(chunks);
    c.add_far();
    c.add_overdue();
    std::size_t fired = 0;
    tick_number last_due = first_tick;
    std::vector<const world<>::timer*> seen;
    seen.reserve(4 * c.timers.size());
    failures += fail_at_each_allocation(
        [&] {
          c.w.advance(last_tick, [&](world<>::timer& t) {
            seen.push_back(&t);
            last_due = t.due();
            ++fired;
          });
        },
        [&] {
          REQUIRE(c.w.fault() == "");
          for (const world<>::timer* t : seen) std::erase(c.order, t);
          for (const tick_number due : {5003, 5003, 5037, 110'000})
            if (due > last_due) c.add(due);
        });
    REQUIRE(c.w.empty());
    REQUIRE(fired == c.timers.size());
    const auto is_in_order = [&](const world<>::timer* a, const world<>::timer* b) {
      return a->due() != b->due() ? a->due() < b->due() : false;
    };
    REQUIRE(std::is_sorted(seen.begin(), seen.end(), is_in_order));
    for (std::size_t i = 1; i < seen.size(); ++i)
      if (seen[i - 1]->due() == seen[i]->due()) {
        const auto at = [&](const world<>::timer* t) {
          return std::find_if(c.timers.begin(), c.timers.end(), [&](const auto& o) { return &o == t; });
        };
        REQUIRE(at(seen[i - 1]) < at(seen[i]));
      }
  }
  CHECK(failures > 10);
}

TEST_SUITE_END();

}  // namespace wheel_allocation_failure_far
