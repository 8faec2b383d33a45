#include <doctest/doctest.h>

#include "recording.hpp"

namespace wheel_throwing_callback {

using namespace wheel_test;

struct unwell {};

void advance_until_it_throws(wheel& w, tick_number to, const timer& thrower) {
  CHECK_THROWS_AS(w.advance(to,
                            [&](timer& t) {
                              if (&t == &thrower) throw unwell{};
                            }),
                  unwell);
}

TEST_CASE(
    "an exception of a callback leaves advance(), other timers stay, and now() is the tick last fired") {
  wheel w(8);
  timer a("a"), b("b"), c("c"), d("d");
  w.schedule(a, 2);
  w.schedule(b, 5);
  w.schedule(c, 5);
  w.schedule(d, 13);
  advance_until_it_throws(w, 20, b);
  CHECK(w.now() == 5);
  CHECK(w.size() == 2);
  CHECK_FALSE(b.scheduled());
  CHECK(w.next_due() == 5);
  CHECK(fired(w, 20) == "c@5 d@13");
  CHECK(w.now() == 20);
}

TEST_CASE("if a callback throws for the last node of a round, no later round is lost") {
  wheel w(8);
  timer last("last"), later("later");
  w.schedule(last, 5);
  w.schedule(later, 13);
  advance_until_it_throws(w, 20, last);
  CHECK(w.next_due() == 13);
  CHECK(fired(w, 20) == "later@13");
}

TEST_CASE("after a callback has thrown, its timer may be scheduled again, even before the others") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 5);
  w.schedule(b, 5);
  advance_until_it_throws(w, 20, a);
  w.schedule(a, 4);
  CHECK(fired(w, 20) == "a@5 b@5");
}

TEST_CASE("changes that a callback makes before it throws are kept") {
  wheel w(8);
  timer a("a"), b("b"), c("c");
  w.schedule(a, 5);
  w.schedule(b, 5);
  CHECK_THROWS_AS(w.advance(20,
                            [&](timer& t) {
                              w.cancel(b);
                              w.schedule(c, 7);
                              w.schedule(t, 9);
                              throw unwell{};
                            }),
                  unwell);
  CHECK(w.size() == 2);
  CHECK(fired(w, 20) == "c@7 a@9");
}

}  // namespace wheel_throwing_callback
