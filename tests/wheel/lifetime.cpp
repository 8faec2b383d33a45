// Nodes leave their wheel when they are cancelled, destroyed or moved to another wheel, or when the wheel is destroyed.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>

#include "recording.hpp"

namespace wheel_lifetime {

using namespace wheel_test;

TEST_CASE("cancel() removes a node, once") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 5);
  w.schedule(b, 5);
  CHECK(w.cancel(a));
  CHECK_FALSE(a.scheduled());
  CHECK(w.size() == 1);
  CHECK_FALSE(w.cancel(a));
  CHECK(w.size() == 1);
  CHECK(fired(w, 10) == "b@5");
}

TEST_CASE("cancel() returns false for a node that was never scheduled, has fired, or is in another wheel") {
  wheel w(8), small(2), other(512);
  timer never, has_fired, elsewhere;
  CHECK_FALSE(w.cancel(never));
  w.schedule(has_fired, 5);
  fired(w, 5);
  CHECK_FALSE(w.cancel(has_fired));
  other.schedule(elsewhere, 400);
  CHECK_FALSE(w.cancel(elsewhere));
  CHECK_FALSE(small.cancel(elsewhere));
  CHECK(elsewhere.scheduled());
  CHECK(other.size() == 1);
  CHECK(fired(other, 400) == "@400");
}

TEST_CASE("due() is the tick that was asked for, even a past one") {
  wheel w(8, 100);
  timer a;
  CHECK_FALSE(a.scheduled());
  for (const tick_number due : {tick_number{105}, tick_number{100}, tick_number{3}, first_tick, last_tick}) {
    w.schedule(a, due);
    CHECK(a.scheduled());
    CHECK(a.due() == due);
    CHECK(w.size() == 1);
  }
}

TEST_CASE("a node leaves its wheel when it is destroyed") {
  wheel w(8);
  timer b("b");
  auto a = std::make_unique<timer>("a");
  struct {
    std::string where;
    tick_number due;
  } const others[] = {{"alone in its bucket", 6}, {"same tick", 5}, {"same bucket, later", 13}};
  for (const auto& other : others) {
    CAPTURE(other.where);
    a = std::make_unique<timer>("a");
    w.schedule(*a, 5);
    w.schedule(b, other.due);
    a.reset();
    CHECK(w.size() == 1);
    CHECK(w.next_due() == other.due);
    w.cancel(b);
  }
  CHECK(w.empty());
}

TEST_CASE("destroying a wheel leaves its nodes unscheduled, and they can be scheduled in another one") {
  timer next("next"), later("later"), overdue("overdue");
  {
    wheel w(8, 3);
    w.schedule(next, 5);
    w.schedule(later, 5 + 8 * 100);
    w.schedule(overdue, 1);
  }
  wheel another(8);
  for (timer* t : {&next, &later, &overdue}) {
    CHECK_FALSE(t->scheduled());
    another.schedule(*t, 7);
  }
  CHECK(fired(another, 7) == "next@7 later@7 overdue@7");
}

TEST_CASE("scheduling a node that is in another wheel removes it from that wheel") {
  wheel from(512), to(8);
  timer a("a"), b("b");
  from.schedule(a, 5);
  from.schedule(b, 5);
  to.schedule(a, 9);
  CHECK(from.size() == 1);
  CHECK(to.size() == 1);
  CHECK_FALSE(from.cancel(a));
  CHECK(fired(from, 100) == "b@5");
  CHECK(fired(to, 100) == "a@9");
}

TEST_CASE("scheduling a node that is already in the wheel moves it: it is counted once and fires once") {
  wheel w(8);
  timer a("a");
  for (const tick_number due : {5, 13, 5, 6, 5, 5}) {
    w.schedule(a, due);
    CHECK(w.size() == 1);
    CHECK(w.next_due() == due);
  }
  CHECK(fired(w, 100) == "a@5");
}

TEST_CASE("nodes may move between wheels of different node types") {
  struct timer_with_payload : timer {
    using timer::timer;
    int payload = 1;
  };
  wheel plain(8);
  rondo::wheel<timer_with_payload> special(8);
  timer_with_payload a("a");
  special.schedule(a, 5);
  plain.schedule(a, 6);
  CHECK(special.empty());
  CHECK(fired(plain, 6) == "a@6");
}

TEST_CASE("size() and empty() count the scheduled nodes") {
  wheel w(8);
  timer a, b, c;
  CHECK(w.empty());
  w.schedule(a, 5);
  w.schedule(b, 500);
  w.schedule(c, -5);
  CHECK(w.size() == 3);
  CHECK_FALSE(w.empty());
  w.cancel(b);
  CHECK(w.size() == 2);
  fired(w, 5);
  CHECK(w.empty());
}

}  // namespace wheel_lifetime
