#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "recording.hpp"

namespace wheel_order {

using namespace wheel_test;

struct numbered : rondo::wheel_node {
  explicit numbered(int n) : number(n) {}
  int number;
};

std::vector<int> numbers_fired(rondo::wheel<numbered>& w, tick_number to) {
  std::vector<int> seen;
  w.advance(to, [&](numbered& n) { seen.push_back(n.number); });
  return seen;
}

std::deque<numbered> many(int count) {
  std::deque<numbered> made;
  for (int i = 0; i != count; ++i) made.emplace_back(i);
  return made;
}

TEST_CASE("timers of one tick fire in the order in which they were scheduled") {
  wheel w(8);
  timer a("a"), b("b"), c("c"), d("d");
  for (const tick_number due : {tick_number{5}, tick_number{5 + 8 * 7}}) {
    for (timer* t : {&c, &a, &d, &b}) w.schedule(*t, due);
    const std::string at = "@" + std::to_string(due);
    CHECK(fired(w, due) == "c" + at + " a" + at + " d" + at + " b" + at);
  }
}

TEST_CASE("earlier ticks fire first, even in a jump and whatever the order of scheduling") {
  wheel w(8);
  timer a("a"), b("b"), c("c"), d("d"), e("e");
  w.schedule(e, 1000);
  w.schedule(b, 6);
  w.schedule(d, 22);
  w.schedule(a, 2);
  w.schedule(c, 7);
  CHECK(fired(w, 5000) == "a@2 b@6 c@7 d@22 e@1000");
}

TEST_CASE("a moved timer fires last in its tick") {
  wheel w(8);
  timer a("a"), b("b"), c("c");
  for (timer* t : {&a, &b, &c}) w.schedule(*t, 5);
  SUBCASE("to the tick it is already on") { w.schedule(a, 5); }
  SUBCASE("away and back") {
    w.schedule(a, 100);
    w.schedule(a, 5);
  }
  SUBCASE("cancelled and scheduled again") {
    w.cancel(a);
    w.schedule(a, 5);
  }
  CHECK(fired(w, 5) == "b@5 c@5 a@5");
}

TEST_CASE("timers that are moved to an earlier or a later tick fire only there") {
  wheel w(8);
  timer sooner("sooner"), later("later"), still("still");
  w.schedule(sooner, 50);
  w.schedule(later, 5);
  w.schedule(still, 10);
  w.schedule(sooner, 3);
  w.schedule(later, 20);
  CHECK(w.size() == 3);
  CHECK(fired(w, 100) == "sooner@3 still@10 later@20");
}

TEST_CASE("the order within a tick is kept through holes, compaction and more chunks") {
  rondo::wheel<numbered> w(8);
  auto timers = many(5000);
  std::vector<int> expected;
  SUBCASE("in the next round") {}
  SUBCASE("in a later round") { w.schedule(timers.back(), 5); }
  const tick_number due = 5 + 8 * 6;
  for (std::size_t i = 0; i + 1 != timers.size(); ++i) {
    w.schedule(timers[i], due);
    // Two of three are cancelled soon after, so there are holes everywhere, many of them in full chunks.
    if (i >= 10 && i % 3 != 0) w.cancel(timers[i - 10]);
  }
  for (auto& t : timers)
    if (t.scheduled() && t.due() == due) expected.push_back(t.number);
  numbers_fired(w, 5);
  CHECK(std::is_sorted(expected.begin(), expected.end()));
  CHECK((numbers_fired(w, due) == expected));
}

TEST_CASE("the order within a tick is kept if some of its timers have already fired") {
  rondo::wheel<numbered> w(8);
  auto timers = many(300);
  std::vector<int> seen;
  for (std::size_t i = 0; i != timers.size(); ++i) {
    w.schedule(timers[i], 5);
    if (i % 3 == 2)
      w.advance(
          5, [&](numbered& n) { seen.push_back(n.number); }, 2);
  }
  w.advance(5, [&](numbered& n) { seen.push_back(n.number); });
  CHECK(seen.size() == timers.size());
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("the order within a tick is kept while its round is next, later and next again") {
  rondo::wheel<numbered> w(8);
  auto timers = many(40);
  numbered nearer(-1);
  const tick_number due = 5 + 8 * 9;
  for (std::size_t i = 0; i != timers.size(); ++i) {
    w.schedule(timers[i], due);
    if (i % 5 == 0) w.schedule(nearer, due - 8 * static_cast<tick_number>(1 + i / 5 % 4));
    if (i % 7 == 0) w.cancel(nearer);
    if (i % 3 == 0) w.next_due();
  }
  w.cancel(nearer);
  const auto seen = numbers_fired(w, due);
  CHECK(seen.size() == timers.size());
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

}  // namespace wheel_order
