// Memory that runs out as the window moves, as far timers are redistributed or extracted, among overdue ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/detail/chunk_pool.hpp>

#include "core_wheel.hpp"
#include "failing_new.hpp"
#include "recording.hpp"
#include "without_memory.hpp"

using namespace rondo;
using namespace rondo::test;
using wheel_test::fail_at_each_allocation;
using wheel_test::first_tick;
using wheel_test::last_tick;

namespace {

/// Memory is taken in segments of 32 chunks. So many chunks are in use before, that it runs out in all places.
constexpr std::size_t segment_chunks = 32;

/// A wheel of 64 buckets that redistributes by three, and timers in the order in which they were set.
template <class Sync = rondo::test::small_parts>
struct world {
  struct timer : rondo::test::core_node<Sync> {};
  using wheel = rondo::test::core_wheel<Sync, timer>;

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
  /// Far timers of 40 ticks, and overdue ones.
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
  void is_complete(std::size_t size) const {
    REQUIRE(w.fault() == "");
    REQUIRE(w.size() == size);
  }
  /// All that is left fires, in order.
  void drains() {
    const auto sorted = expected();
    std::vector<const timer*> told;
    w.advance(last_tick, [&](timer& t) { told.push_back(&t); });
    REQUIRE((told == sorted));
    REQUIRE(w.fault() == "");
  }

  std::deque<timer> timers;
  std::vector<timer*> order;
  wheel w{64};
};

/// Some of the far timers are in the window, others are still to be redistributed.
template <class Sync>
void advance_into_redistribution(world<Sync>& c) {
  std::vector<typename world<Sync>::timer*> told;
  c.w.advance(5000, [&](auto& t) { told.push_back(&t); });
  for (auto* t : told) std::erase(c.order, t);
  REQUIRE(!told.empty());
  REQUIRE(c.w.fault() == "");
}

const tick_number places[] = {63,      70,      300, 5001,    5020,       5039,       5041,     100'001,
                              1 << 20, 1 << 30, -1,  -50'000, -(1 << 25), first_tick, last_tick};

template <class Sync>
std::size_t fail_advance(std::size_t chunks_in_use) {
  world<Sync> c(chunks_in_use);
  c.add_far();
  c.add_overdue();
  const auto expected = c.expected();
  std::vector<const typename world<Sync>::timer*> told;
  told.reserve(expected.size());
  const std::size_t failures =
      fail_at_each_allocation([&] { c.w.advance(last_tick, [&](auto& t) { told.push_back(&t); }); },
                              [&] { c.is_complete(expected.size() - told.size()); });
  REQUIRE((told == expected));
  c.is_complete(0);
  return failures;
}

/// Calls act(world<>&, due) with wheels that hold far timers: in lists, or being redistributed, and with any number of
/// chunks of a segment in use; `due` is a tick of each kind. Looks that all timers of `order` fire afterwards.
template <class Act>
void in_each_state(Act&& act) {
  for (const bool redistributing : {false, true}) {
    for (std::size_t chunks = 0; chunks != segment_chunks + 4; ++chunks) {
      for (const tick_number due : places) {
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

}  // namespace

// Where there is no such operator new, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE("a schedule for which memory runs out changes nothing, wherever the far timers are") {
  std::size_t failures = 0;
  in_each_state([&](world<>& c, tick_number due) {
    // So many that a chunk becomes full.
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

TEST_CASE("a move for which memory runs out leaves the timer its place, wherever that is") {
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

TEST_CASE("an advance for which memory runs out loses nothing, fires nothing twice and goes on in order") {
  std::size_t failures = 0;
  for (std::size_t chunks = 0; chunks != segment_chunks + 4; ++chunks) {
    CAPTURE(chunks);
    failures += fail_advance<rondo::test::small_parts>(chunks);
    failures += fail_advance<rondo::test::stripes_without_locks>(chunks);
    failures += fail_advance<rondo::test::stripes_with_locks>(chunks);
  }
  CHECK(failures > 10);
}

TEST_CASE("what is set between an advance that failed and the next one comes after what was there before") {
  std::size_t failures = 0;
  for (std::size_t chunks = 0; chunks != segment_chunks + 4; ++chunks) {
    CAPTURE(chunks);
    world c(chunks);
    c.add_far();
    c.add_overdue();
    std::size_t fired = 0;
    tick_number last_due = first_tick;
    std::vector<const world<>::timer*> told;
    told.reserve(4 * c.timers.size());
    failures += fail_at_each_allocation(
        [&] {
          c.w.advance(last_tick, [&](world<>::timer& t) {
            told.push_back(&t);
            last_due = t.due();
            ++fired;
          });
        },
        [&] {
          REQUIRE(c.w.fault() == "");
          for (const world<>::timer* t : told) std::erase(c.order, t);
          for (const tick_number due : {5003, 5003, 5037, 110'000})
            if (due > last_due) c.add(due);
        });
    REQUIRE(c.w.empty());
    REQUIRE(fired == c.timers.size());
    const auto is_in_order = [&](const world<>::timer* a, const world<>::timer* b) {
      return a->due() != b->due() ? a->due() < b->due() : false;
    };
    REQUIRE(std::is_sorted(told.begin(), told.end(), is_in_order));
    for (std::size_t i = 1; i < told.size(); ++i)
      if (told[i - 1]->due() == told[i]->due()) {
        const auto at = [&](const world<>::timer* t) {
          return std::find_if(c.timers.begin(), c.timers.end(), [&](const auto& o) { return &o == t; });
        };
        REQUIRE(at(told[i - 1]) < at(told[i]));
      }
  }
  CHECK(failures > 10);
}

TEST_SUITE_END();
