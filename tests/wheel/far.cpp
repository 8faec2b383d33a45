// Timers outside the window: they enter it in parts, which callers cannot observe.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recording.hpp"
#include "wheel_kinds.hpp"

namespace wheel_far {

using namespace wheel_test;

/// Enough timers to be redistributed in several parts.
constexpr std::size_t thousands = 20'000;

struct numbered : rondo::wheel_node {
  std::size_t number = 0;
};
using numbered_wheel = rondo::wheel<numbered>;

/// Timers that are numbered in the order of scheduling.
struct crowd {
  explicit crowd(std::size_t buckets, tick_number now = 0) : w(buckets, now) {}

  numbered& add(tick_number due) {
    numbered& n = timers.emplace_back();
    n.number = timers.size() - 1;
    w.schedule(n, due);
    return n;
  }
  /// Advances to `to`, and returns the numbers of the timers that fire.
  std::vector<std::size_t> fired(tick_number to) {
    std::vector<std::size_t> seen;
    w.advance(to, [&](numbered& n) { seen.push_back(n.number); });
    return seen;
  }
  bool is_in_order(const std::vector<std::size_t>& numbers) const {
    return std::is_sorted(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
      return timers[a].due() != timers[b].due() ? timers[a].due() < timers[b].due() : a < b;
    });
  }

  std::deque<numbered> timers;
  numbered_wheel w;
};

tick_number scattered(std::size_t i, tick_number range) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;
  x ^= x >> 29;
  return static_cast<tick_number>(x % static_cast<std::uint64_t>(range));
}

TEST_CASE("timers on both sides of the window's end fire in order, each at its own tick") {
  for (const std::size_t buckets : {1U, 8U, 64U, 512U}) {
    for (const tick_number start :
         {tick_number{0}, tick_number{5}, tick_number{-100}, tick_number{1} << 40}) {
      CAPTURE(buckets);
      CAPTURE(start);
      crowd c(buckets, start);
      const tick_number turn = static_cast<tick_number>(buckets);
      for (int turns = 3; turns-- != 0;)
        for (const tick_number due :
             {turns * turn - 1, turns * turn, turns * turn + 1, turns * turn + turn / 8})
          for (int i = 0; i != 3; ++i) c.add(start + std::max<tick_number>(due, 0));
      std::size_t fired = 0;
      for (tick_number now = start; now <= start + 4 * turn; ++now) {
        for (const std::size_t n : c.fired(now)) {
          REQUIRE(c.timers[n].due() == now);
          ++fired;
        }
      }
      CHECK(fired == c.timers.size());
    }
  }
}

TEST_CASE(
    "a timer whose tick is in the window fires after those that were scheduled while the tick was far") {
  crowd c(64);
  const tick_number due = 100;
  for (int i = 0; i != 10; ++i) c.add(due);
  c.add(50);
  CHECK(c.fired(60).size() == 1);  // the window has moved
  for (int i = 0; i != 10; ++i) c.add(due);
  const auto seen = c.fired(due);
  CHECK(seen.size() == 20);
  CHECK(c.is_in_order(seen));
}

TEST_CASE("a timer that is added to a tick being redistributed fires after the older ones of that tick") {
  for (const std::size_t buckets : {1U, 8U, 512U, 4096U}) {
    CAPTURE(buckets);
    crowd c(buckets);
    for (std::size_t i = 0; i != thousands; ++i) c.add(50'000 + scattered(i, 40));
    std::vector<std::size_t> seen;
    c.w.advance(60'000, [&](numbered& n) {
      seen.push_back(n.number);
      // Adds timers to this tick and the next one, at the end of the range and after it.
      if (seen.size() % 50 == 1 && n.due() < 50'039) {
        c.add(n.due());
        c.add(n.due() + 1);
        c.add(50'000 + 39);
        c.add(50'000 + 64);
      }
    });
    CHECK(seen.size() == c.timers.size());
    CHECK(c.timers.size() > thousands + 1000);
    CHECK(c.is_in_order(seen));
  }
}

TEST_CASE("timers scheduled at the window's end, during and after redistribution, fire in that order") {
  crowd c(512);
  for (std::size_t i = 0; i != thousands; ++i) c.add(640 + static_cast<tick_number>(i % 6));
  std::vector<std::size_t> told;
  c.w.advance(2000, [&](numbered& n) {
    told.push_back(n.number);
    if (told.size() != 1 && told.size() != thousands) return;
    for (const tick_number due : {1030, 1100, 1151, 1152}) c.add(due);  // the window is 640 … 1151
  });
  CHECK(told.size() == thousands + 8);
  CHECK(c.is_in_order(told));
}

TEST_CASE("timers before, in and after a range being redistributed fire in order, even tick by tick") {
  crowd c(64);
  for (std::size_t i = 0; i != thousands; ++i) c.add(50'000 + scattered(i, 3000));
  std::vector<std::size_t> seen;
  for (tick_number now = 49'990; now <= 56'000; ++now) {
    for (const std::size_t n : c.fired(now)) {
      REQUIRE(c.timers[n].due() == now);
      seen.push_back(n);
    }
    if (now % 16 == 0 && now < 55'000)
      for (const tick_number ahead : {1, 7, 63, 64, 65, 300}) c.add(now + ahead);
  }
  CHECK(seen.size() == c.timers.size());
  CHECK(c.is_in_order(seen));
}

TEST_CASE("timers that are cancelled during redistribution do not fire; the others do, in order") {
  crowd c(512);
  for (std::size_t i = 0; i != thousands; ++i) c.add(50'000 + scattered(i, 400));
  std::vector<std::size_t> seen;
  std::size_t cancelled = 0;
  c.w.advance(60'000, [&](numbered& n) {
    seen.push_back(n.number);
    if (seen.size() % 100 != 0) return;
    for (std::size_t i = seen.size() / 100; i < thousands; i += 200)
      cancelled += c.w.cancel(c.timers[i]) ? 1U : 0U;
  });
  CHECK(cancelled > 1000);
  CHECK(seen.size() + cancelled == thousands);
  CHECK(c.is_in_order(seen));
}

TEST_CASE("thousands of overdue timers, scheduled in any order, fire in the order of their ticks") {
  for (const tick_number range : {tick_number{100}, tick_number{10'000}, tick_number{1} << 40}) {
    CAPTURE(range);
    crowd c(512, 0);
    for (std::size_t i = 0; i != thousands; ++i) c.add(-1 - scattered(i, range));
    c.add(3);
    CHECK((c.w.next_due() ==
           std::min_element(c.timers.begin(), c.timers.end(), [](const auto& a, const auto& b) {
             return a.due() < b.due();
           })->due()));
    const auto seen = c.fired(5);
    CHECK(seen.size() == thousands + 1);
    CHECK(c.is_in_order(seen));
    CHECK(c.w.now() == 5);
  }
}

TEST_CASE("earlier and later timers can be scheduled and cancelled while overdue timers fire") {
  crowd c(64, 0);
  for (std::size_t i = 0; i != 5000; ++i) c.add(-1 - scattered(i, 2000));
  std::vector<tick_number> dues;
  std::size_t cancelled = 0;
  tick_number may_be_before = first_tick;
  c.w.advance(10, [&](numbered& n) {
    REQUIRE(n.due() >= may_be_before);
    may_be_before = n.due();
    dues.push_back(n.due());
    if (dues.size() % 50 != 0 || dues.size() > 4000) return;
    may_be_before = n.due() - 3;  // the tick of the next timer to fire
    c.add(n.due() - 3);
    c.add(n.due());
    c.add(-1);
    cancelled += c.w.cancel(c.timers[dues.size()]) ? 1U : 0U;
    REQUIRE(c.w.next_due() == n.due() - 3);
  });
  CHECK(dues.size() + cancelled == c.timers.size());
  CHECK(c.w.empty());
}

TEST_CASE("next_due() is exact while overdue timers fire, up to the last one") {
  for (const tick_number due : {tick_number{-5}, first_tick}) {
    wheel w(8, 100);
    timer a("a"), b("b"), c("c"), later("later");
    for (timer* t : {&a, &b, &c}) w.schedule(*t, due);
    SUBCASE("and no other timer") {}
    SUBCASE("and a later timer") { w.schedule(later, 5000); }
    const std::optional<tick_number> after = later.scheduled() ? std::optional(later.due()) : std::nullopt;
    w.advance(100, [&](timer& t) { CHECK(w.next_due() == (&t == &c ? after : std::optional(due))); });
    CHECK(w.next_due() == after);
  }
}

TEST_CASE("next_due() is exact while overdue timers fire that the last one's callback has scheduled") {
  wheel w(8, 100);
  timer a("a"), b("b"), c("c");
  w.schedule(a, 5);
  w.advance(100, [&](timer& t) {
    if (&t == &a) {
      CHECK(w.next_due() == std::nullopt);
      w.schedule(b, 5);
      w.schedule(c, 5);
    }
    CHECK(w.next_due() == (&t == &c ? std::nullopt : std::optional<tick_number>(5)));
  });
  CHECK(w.empty());
}

TEST_CASE(
    "next_due() in the callback of a tick's last timer does not affect timers scheduled then for that tick") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 5);
  int times = 0;
  const auto seen = fired_while(w, 9, [&](timer&) {
    if (++times != 1) return;
    CHECK(w.next_due() == std::nullopt);
    w.schedule(a, 5);
    w.schedule(b, 5);
    CHECK(w.next_due() == 5);
  });
  CHECK(seen == "a@5 a@5 b@5");
}

TEST_CASE("the window does not pass a timer that a callback schedules for an earlier tick") {
  for (const tick_number earlier : {0, 3, 39}) {
    CAPTURE(earlier);
    wheel w(64);
    timer a("a"), b("b"), c("c"), far("far");
    w.schedule(a, 40);
    w.schedule(far, 1000);
    const auto seen = fired_while(w, 66, [&](timer& t) {
      if (&t != &a) return;
      w.schedule(b, earlier);
      w.schedule(c, earlier + 64);  // in the same bucket once its tick is in the window
    });
    CHECK(seen.substr(0, 9) == "a@40 b@40");
    CHECK(w.size() == (earlier + 64 <= 66 ? 1 : 2));
    CHECK(w.next_due() == (earlier + 64 <= 66 ? 1000 : earlier + 64));
  }
}

TEST_CASE("a jump over years fires all timers in order, and the wheel works afterwards") {
  constexpr tick_number year = tick_number{1000} * 60 * 60 * 24 * 365;
  crowd c(512);
  for (std::size_t i = 0; i != 3000; ++i) c.add(scattered(i, 10 * year));
  for (std::size_t i = 0; i != 3000; ++i) c.add(scattered(i, 100'000));
  auto seen = c.fired(20 * year);
  CHECK(seen.size() == 6000);
  CHECK(c.is_in_order(seen));
  for (std::size_t i = 0; i != 1000; ++i) c.add(20 * year + scattered(i, 2000));
  seen = c.fired(21 * year);
  CHECK(seen.size() == 1000);
  CHECK(c.is_in_order(seen));
}

TEST_CASE("next_due() is exact while the earliest timers of a far list are cancelled one by one") {
  crowd c(64);
  for (std::size_t i = 0; i != 2000; ++i) c.add(40'000 + scattered(i, 5000));
  std::vector<std::pair<tick_number, std::size_t>> order;
  for (const numbered& n : c.timers) order.emplace_back(n.due(), n.number);
  std::sort(order.begin(), order.end());
  for (const auto& earliest : order) {
    REQUIRE(c.w.next_due() == earliest.first);
    c.w.cancel(c.timers[earliest.second]);
  }
  CHECK(c.w.next_due() == std::nullopt);
}

TEST_CASE("next_due() is exact when all but one timer of many lists are cancelled, near, far and overdue") {
  for (const tick_number first : {tick_number{-70'000}, tick_number{10}, tick_number{50'000}}) {
    for (const std::size_t left : {std::size_t{0}, std::size_t{7777}, thousands - 1}) {
      CAPTURE(first);
      CAPTURE(left);
      crowd c(512);
      for (std::size_t i = 0; i != thousands; ++i) c.add(first + scattered(i, 300));
      for (numbered& n : c.timers)
        if (n.number != left) c.w.cancel(n);
      CHECK(c.w.next_due() == c.timers[left].due());
      CHECK(c.w.size() == 1);
      CHECK((c.fired(100'000) == std::vector<std::size_t>{left}));
      CHECK(c.w.next_due() == std::nullopt);
    }
  }
}

TEST_CASE("a cancelled far timer leaves no tick behind in a list that has not been read since") {
  crowd c(8);
  for (const tick_number due : {1000, 1001, 5000}) c.add(due);
  c.w.cancel(c.timers[0]);
  c.w.cancel(c.timers[1]);
  CHECK(c.fired(4999).empty());
  CHECK(c.w.next_due() == 5000);
  CHECK((c.fired(5000) == std::vector<std::size_t>{2}));
}

TEST_CASE(
    "part of a far list is redistributed when its first tick is due, another after each tick, and one in the "
    "end") {
  rondo::test::small_parts::wheel<timer> w(8);
  std::deque<timer> timers(12);
  for (timer& t : timers) w.schedule(t, &t == &timers[0] ? 1000 : 1001);
  const auto far_nodes = [&] { return rondo::test::far_nodes(w.core()); };
  CHECK(far_nodes() == 12);
  w.advance(1000, [&](timer&) { CHECK(far_nodes() == 9); });
  CHECK(far_nodes() == 3);
}

}  // namespace wheel_far
