#include <doctest/doctest.h>

#include "recording.hpp"

namespace wheel_overdue {

using namespace wheel_test;

TEST_CASE("a timer that is due now or earlier fires in the next advance(), even if that only goes to now") {
  for (const tick_number due : {tick_number{100}, tick_number{99}, tick_number{-5}, first_tick}) {
    for (const tick_number to : {tick_number{100}, tick_number{110}}) {
      CAPTURE(due);
      CAPTURE(to);
      wheel w(8, 100);
      timer a("a");
      w.schedule(a, due);
      CHECK(a.scheduled());
      CHECK(a.due() == due);
      CHECK(w.next_due() == due);
      CHECK(fired(w, to) == "a@100");
      CHECK(w.now() == to);
    }
  }
}

TEST_CASE("overdue timers keep the order of their own ticks") {
  wheel w(8, 100);
  timer now("now"), late("late"), later("later"), latest("latest"), late_too("late_too");
  w.schedule(now, 100);
  w.schedule(late, 90);
  w.schedule(latest, 10);
  w.schedule(later, 42);
  w.schedule(late_too, 90);
  CHECK(fired(w, 100) == "latest@100 later@100 late@100 late_too@100 now@100");
}

TEST_CASE("now() does not go back for an overdue timer") {
  wheel w(8, 100);
  timer past("past"), future("future");
  w.schedule(future, 107);
  w.schedule(past, 3);
  CHECK(fired(w, 200) == "past@100 future@107");
  CHECK(w.now() == 200);
}

TEST_CASE("advancing to a tick before now moves nothing and fires nothing") {
  wheel w(8, 100);
  timer overdue("overdue"), due("due");
  w.schedule(overdue, 50);
  w.schedule(due, 100);
  CHECK(w.advance(99, [](timer&) { FAIL_CHECK("fired"); }) == 0);
  CHECK(w.advance(first_tick, [](timer&) { FAIL_CHECK("fired"); }) == 0);
  CHECK(w.now() == 100);
  CHECK(w.size() == 2);
  CHECK(fired(w, 100) == "overdue@100 due@100");
}

}  // namespace wheel_overdue
