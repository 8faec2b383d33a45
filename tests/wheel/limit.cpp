#include <doctest/doctest.h>

#include "recording.hpp"

namespace wheel_limit {

using namespace wheel_test;

TEST_CASE("advance() returns how many timers it has fired") {
  wheel w(8);
  timer a, b, c;
  w.schedule(a, 3);
  w.schedule(b, 3);
  w.schedule(c, 30);
  const auto ignore = [](timer&) {};
  CHECK(w.advance(2, ignore) == 0);
  CHECK(w.advance(10, ignore) == 2);
  CHECK(w.advance(29, ignore) == 0);
  CHECK(w.advance(40, ignore) == 1);
  CHECK(w.advance(last_tick, ignore) == 0);
}

TEST_CASE("advance() ends at the given tick if it has fired all due timers") {
  wheel w(8);
  timer a("a");
  w.schedule(a, 3);
  CHECK(fired(w, 10, 2) == "a@3");
  CHECK(w.now() == 10);
}

TEST_CASE("at its limit advance() stops at the tick last fired, and the next call continues there") {
  wheel w(8);
  timer a("a"), b("b"), c("c"), d("d");
  w.schedule(a, 3);
  w.schedule(b, 3);
  w.schedule(c, 3);
  w.schedule(d, 11);
  CHECK(fired(w, 20, 2) == "a@3 b@3");
  CHECK(w.now() == 3);
  CHECK(w.size() == 2);
  CHECK(c.scheduled());
  CHECK(w.next_due() == 3);
  CHECK(fired(w, 20, 1) == "c@3");
  CHECK(w.now() == 3);
  CHECK(w.next_due() == 11);
  CHECK(fired(w, 20, 1) == "d@11");
  CHECK(w.now() == 11);
  CHECK(fired(w, 20, 1) == "");
  CHECK(w.now() == 20);
}

TEST_CASE("between two calls of advance() with a limit, nodes can be cancelled, moved and added") {
  wheel w(8);
  timer a("a"), b("b"), c("c"), d("d"), joined("joined"), past("past");
  for (timer* t : {&a, &b, &c, &d}) w.schedule(*t, 5);
  CHECK(fired(w, 20, 1) == "a@5");
  w.cancel(b);
  w.schedule(c, 6);
  w.schedule(joined, 5);
  w.schedule(past, 4);
  CHECK(fired(w, 20) == "past@5 d@5 joined@5 c@6");
}

TEST_CASE("with a limit of 0 nothing fires and no time passes") {
  wheel w(8);
  timer a("a");
  w.schedule(a, 3);
  CHECK(fired(w, 10, 0) == "");
  CHECK(w.now() == 0);
  CHECK(a.scheduled());
  CHECK(fired(w, 10) == "a@3");
}

TEST_CASE("a limit includes timers that a callback schedules for ticks already reached") {
  wheel w(8);
  timer a("a");
  w.schedule(a, 3);
  int runs = 0;
  const auto again = [&](timer& t) {
    ++runs;
    w.schedule(t, 3);
  };
  CHECK(w.advance(10, again, 5) == 5);
  CHECK(runs == 5);
  CHECK(w.now() == 3);
  CHECK(a.scheduled());
}

}  // namespace wheel_limit
