// Far timers that are cancelled or moved stay in their lists until the wheel comes there. Nobody may notice.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "failing_new.hpp"
#include "recording.hpp"
#include "wheel_kinds.hpp"

namespace wheel_in_place {

using namespace wheel_test;
using rondo::test::small_parts;

/// The number of cancelled nodes that are still in their slots. Also checks that for_each() does not visit these.
template <class Wheel>
std::size_t cancelled_in_slots(Wheel& w) {
  const rondo::detail::wheel_core& core = rondo::detail::wheel_access::core(w);
  std::size_t linked = 0, scheduled = 0;
  core.for_each_linked([&](rondo::detail::node&) { ++linked; });
  core.for_each([&](rondo::detail::node&) { ++scheduled; });
  CHECK(scheduled == w.size());
  return linked - scheduled;
}

TEST_CASE("a far timer that is cancelled stays in its slot, and is set again there") {
  wheel w(8);
  timer a("a");
  w.schedule(a, 1000);
  CHECK(w.cancel(a));
  CHECK(cancelled_in_slots(w) == 1);
  CHECK_FALSE(a.scheduled());
  CHECK(w.empty());
  CHECK_FALSE(w.cancel(a));
  w.schedule(a, 1500);
  CHECK(cancelled_in_slots(w) == 0);
  CHECK(a.scheduled());
  CHECK(a.due() == 1500);
  CHECK(w.size() == 1);
  CHECK(w.next_due() == 1500);
  CHECK(fired(w, 1499).empty());
  CHECK(fired(w, 1500) == "a@1500");
  CHECK(w.empty());
}

TEST_CASE("a timer that was set again in its slot may be cancelled, moved and set for an earlier tick") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 1000);
  w.schedule(b, 1200);
  for (const tick_number due : {1000, 1001, 1100, 5000}) {
    CAPTURE(due);
    w.cancel(a);
    w.schedule(a, due);
    CHECK(w.size() == 2);
    CHECK(w.next_due() == std::min<tick_number>(due, 1200));
  }
  w.schedule(a, 6000);
  CHECK(w.next_due() == 1200);
  w.cancel(a);
  w.schedule(a, 900);
  CHECK(w.next_due() == 900);
  CHECK(fired(w, 10'000) == "a@900 b@1200");
}

TEST_CASE("the order within a tick is that of the last call of schedule(), wherever a timer was before") {
  for (const bool in_a_jump : {false, true}) {
    for (const tick_number due : {600, 1000, 5000, 100'000}) {
      CAPTURE(in_a_jump);
      CAPTURE(due);
      small_parts::wheel<timer> w(8);
      timer early("early"), first("first"), second("second"), again("again"), last("last"), other("other");
      w.schedule(early, due / 2);
      w.schedule(again, due);
      w.schedule(first, due);
      w.schedule(other, due - 100);
      w.cancel(early);
      w.schedule(second, due);
      w.schedule(early, due);
      w.cancel(again);
      w.schedule(again, due);
      w.schedule(other, due);
      w.schedule(last, due);
      if (!in_a_jump)
        for (tick_number t = std::max<tick_number>(due - 1000, 0); t < due; t += 3)
          CHECK(fired(w, t).empty());
      const std::string at = "@" + std::to_string(due);
      CHECK(fired(w, due) ==
            "first" + at + " second" + at + " early" + at + " again" + at + " other" + at + " last" + at);
    }
  }
}

TEST_CASE(
    "a tick with thousands of timers fires in the order of scheduling after any of them were set again") {
  for (const bool in_a_jump : {false, true}) {
    CAPTURE(in_a_jump);
    small_parts::wheel<timer> w(8);
    std::deque<timer> timers(3000);
    std::vector<const timer*> expected;
    const auto set_again = [&](timer& t) {
      w.schedule(t, 100'000);
      expected.push_back(&t);
    };
    for (timer& t : timers) w.schedule(t, 90'000);
    for (std::size_t i = 1; i < timers.size(); i += 2) set_again(timers[i]);
    for (std::size_t i = timers.size(); i != 0; i -= 2) {
      w.cancel(timers[i - 2]);
      set_again(timers[i - 2]);
    }
    std::vector<const timer*> seen;
    const auto see = [&](timer& t) { seen.push_back(&t); };
    if (!in_a_jump)
      for (tick_number t = 88'000; t != 100'000; ++t) w.advance(t, see);
    w.advance(100'000, see, 1);
    w.advance(100'000, see);
    CHECK((seen == expected));
  }
}

TEST_CASE(
    "timers that are set directly for a tick fire after those that were redistributed to it, in any order") {
  wheel w(64);
  timer a("a"), b("b"), c("c"), d("d"), clock("clock");
  w.schedule(a, 999);
  w.schedule(b, 1000);
  w.schedule(a, 1000);  // in the slot before b
  w.schedule(clock, 950);
  CHECK(fired(w, 950) == "clock@950");
  w.schedule(c, 1000);
  w.schedule(d, 1000);
  w.schedule(c, 1000);
  CHECK(fired(w, 1000) == "b@1000 a@1000 d@1000 c@1000");
}

TEST_CASE("next_due() is exact while timers are set again for ticks beyond those of later lists") {
  small_parts::wheel<timer> w(8);
  std::deque<timer> timers(300);
  for (std::size_t i = 0; i != timers.size(); ++i) w.schedule(timers[i], 1000 + static_cast<tick_number>(i));
  for (std::size_t i = 0; i != timers.size(); ++i) {
    CHECK(w.next_due() == 1000 + static_cast<tick_number>(i));
    w.cancel(timers[i]);
    w.schedule(timers[i], 50'000 - static_cast<tick_number>(i));
  }
  CHECK(w.next_due() == 50'000 - 299);
  CHECK(w.advance(50'000 - 300, [](timer&) { FAIL_CHECK("too early"); }) == 0);
  CHECK(w.advance(50'000, [](timer&) {}) == timers.size());
}

TEST_CASE("a cancelled timer cannot be set again before a tick that next_due() has returned") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 1000);
  w.schedule(b, 1050);
  w.cancel(a);
  CHECK(w.next_due() == 1050);
  w.schedule(a, 1010);
  CHECK(w.next_due() == 1010);
  CHECK(fired(w, 2000) == "a@1010 b@1050");
}

TEST_CASE("a cancelled timer may be destroyed or set in another wheel while it is in its slot") {
  wheel w(8), other(8);
  auto a = std::make_unique<timer>("a");
  timer b("b"), c("c");
  w.schedule(*a, 1000);
  w.schedule(b, 1000);
  w.schedule(c, 1000);
  w.cancel(*a);
  w.cancel(b);
  CHECK(cancelled_in_slots(w) == 2);
  a.reset();
  other.schedule(b, 1200);
  CHECK(cancelled_in_slots(w) == 0);
  CHECK_FALSE(w.cancel(b));
  CHECK(other.size() == 1);
  CHECK(fired(w, 2000) == "c@1000");
  CHECK(fired(other, 2000) == "b@1200");
}

TEST_CASE("destroying a wheel releases the cancelled timers in its slots, too") {
  timer a("a");
  {
    wheel w(8);
    w.schedule(a, 1000);
    w.cancel(a);
  }
  wheel other(8);
  other.schedule(a, 5);
  CHECK(fired(other, 5) == "a@5");
}

TEST_CASE("setting a cancelled timer in another wheel without memory leaves it cancelled") {
  if (!rondo::test::failing_new::available) return;
  wheel w(8), other(8);
  timer a("a");
  w.schedule(a, 1000);
  w.cancel(a);
  bool failed = false;
  try {
    const rondo::test::failing_new memory(0);
    other.schedule(a, 5);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  CHECK(failed);
  CHECK_FALSE(a.scheduled());
  CHECK(other.empty());
  CHECK(w.next_due() == std::nullopt);
  other.schedule(a, 5);
  CHECK(fired(other, 2000) == "a@5");
}

TEST_CASE("advance() erases cancelled timers in parts while most timers are cancelled") {
  small_parts::wheel<timer> w(8);
  std::deque<timer> timers(1000);
  for (timer& t : timers) w.schedule(t, 100'000);
  for (std::size_t i = 1; i != timers.size(); ++i) w.cancel(timers[i]);
  CHECK(cancelled_in_slots(w) == 999);
  std::size_t left = 999;
  for (int calls = 0; calls != 20; ++calls) {
    w.advance(0, [](timer&) {});
    CHECK(left - cancelled_in_slots(w) <= rondo::detail::chunk_pool::chunk_nodes);
    left = cancelled_in_slots(w);
  }
  CHECK(left <= 63);  // the first chunk of a list is not swept
  CHECK(w.next_due() == 100'000);
}

TEST_CASE("timers that are set, cancelled and searched over and over allocate nothing") {
  wheel w(8);
  timer last("last");
  w.schedule(last, 100'500);
  std::deque<timer> timers(500);
  const auto turn = [&] {
    for (timer& t : timers) w.schedule(t, 100'001);
    for (timer& t : timers) w.cancel(t);
    CHECK(w.next_due() == 100'500);
    CHECK(cancelled_in_slots(w) == 0);
  };
  turn();
  const std::size_t before = rondo::test::allocations();
  for (int turns = 0; turns != 200; ++turns) turn();
  CHECK(rondo::test::allocations() == before);
}

TEST_CASE("shrink_to_fit() erases cancelled timers among others, but for the first few of a list") {
  wheel w(8);
  std::deque<timer> timers(1000);
  for (timer& t : timers) w.schedule(t, 100'000);
  for (std::size_t i = 1; i != timers.size(); ++i) w.cancel(timers[i]);
  w.shrink_to_fit();
  CHECK(cancelled_in_slots(w) < 63);
  CHECK(w.next_due() == 100'000);
}

TEST_CASE(
    "while timers are set again for earlier ticks, cancel() empties their slots; later it no longer does") {
  wheel w(8);
  std::deque<timer> timers(200);
  for (timer& t : timers) w.schedule(t, 100'000);
  tick_number due = 100'000;
  for (timer& t : timers) {
    w.cancel(t);
    w.schedule(t, --due);
  }
  w.cancel(timers[0]);
  CHECK(cancelled_in_slots(w) == 0);
  for (int i = 0; i != 5000; ++i) {
    w.cancel(timers[0]);
    w.schedule(timers[0], 100'000);
  }
  w.cancel(timers[0]);
  CHECK(cancelled_in_slots(w) == 1);
}

TEST_CASE(
    "cancel() itself erases cancelled timers if there are tens of thousands more than twice those pending") {
  wheel w(8);
  std::deque<timer> timers(200'000);
  for (std::size_t i = 0; i != timers.size(); ++i)
    w.schedule(timers[i], 100'000 + static_cast<tick_number>(i * 7919 % timers.size()));
  std::size_t most = 0;
  for (std::size_t i = 0; i != timers.size(); ++i) {
    w.cancel(timers[i]);
    if (i % 10'000 == 0)
      most = std::max(most, cancelled_in_slots(w) - std::min(cancelled_in_slots(w), 2 * w.size()));
  }
  CHECK(most > 30'000);
  CHECK(most <= 60'000);
  CHECK(w.empty());
}

TEST_CASE("the first and the last tick, and everything between, can be left in place") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, last_tick - 1);
  w.schedule(b, last_tick);
  w.cancel(a);
  w.schedule(a, last_tick);
  CHECK(w.next_due() == last_tick);
  w.cancel(b);
  w.cancel(a);
  CHECK(w.next_due() == std::nullopt);
  w.schedule(b, last_tick);
  w.schedule(a, last_tick);
  record seen(w);
  w.advance(last_tick, [&](timer& t) { seen(t); });
  const std::string at = "@" + std::to_string(last_tick);
  CHECK(seen.text() == "b" + at + " a" + at);
}

}  // namespace wheel_in_place
