// What a callback may do to the wheel that calls it.
#include <doctest/doctest.h>

#include <memory>

#include "recording.hpp"

namespace wheel_reentry {

using namespace wheel_test;

TEST_CASE("inside its callback a node has left the wheel, and now() is its tick") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 3);
  w.schedule(b, 30);
  std::size_t left = 2;
  const auto seen = fired_while(w, 100, [&](timer& t) {
    CHECK_FALSE(t.scheduled());
    CHECK(w.size() == --left);
    CHECK(w.empty() == (left == 0));
    CHECK_FALSE(w.cancel(t));
  });
  CHECK(seen == "a@3 b@30");
}

TEST_CASE("a timer that re-arms itself keeps its period during a jump") {
  wheel w(8);
  timer a("a");
  w.schedule(a, 3);
  CHECK(fired_while(w, 20, [&](timer& t) { w.schedule(t, w.now() + 5); }) == "a@3 a@8 a@13 a@18");
  CHECK(a.due() == 23);
  CHECK(w.next_due() == 23);
}

TEST_CASE("a timer that re-arms itself a whole turn later does not fire twice in one turn") {
  wheel w(8);
  timer a("a");
  w.schedule(a, 3);
  CHECK(fired_while(w, 3, [&](timer& t) { w.schedule(t, w.now() + 8); }) == "a@3");
  CHECK(fired(w, 10) == "");
  CHECK(fired(w, 11) == "a@11");
}

TEST_CASE("a timer scheduled one turn later for the bucket being taken fires then, and last") {
  wheel w(8);
  timer a("a"), b("b"), c("c"), added("added");
  w.schedule(a, 5);
  w.schedule(b, 5);
  w.schedule(c, 13);
  CHECK(fired_while(w, 5, [&](timer& t) {
          if (&t == &a) w.schedule(added, 13);
        }) == "a@5 b@5");
  CHECK(fired(w, 12) == "");
  CHECK(fired(w, 13) == "c@13 added@13");
}

TEST_CASE("a timer that a callback schedules for a tick already reached fires in that advance(), in order") {
  struct {
    tick_number due;
    const char* seen;
  } const cases[] = {
      {5, "a@5 b@5 added@5 c@6 d@20"},   {6, "a@5 b@5 c@6 added@6 d@20"},
      {13, "a@5 b@5 c@6 added@13 d@20"}, {20, "a@5 b@5 c@6 d@20 added@20"},
      {21, "a@5 b@5 c@6 d@20"},          {4, "a@5 added@5 b@5 c@6 d@20"},
      {-3, "a@5 added@5 b@5 c@6 d@20"},  {first_tick, "a@5 added@5 b@5 c@6 d@20"},
  };
  for (const auto& expected : cases) {
    CAPTURE(expected.due);
    wheel w(8);
    timer a("a"), b("b"), c("c"), d("d"), added("added");
    w.schedule(a, 5);
    w.schedule(b, 5);
    w.schedule(c, 6);
    w.schedule(d, 20);
    CHECK(fired_while(w, 20, [&](timer& t) {
            if (&t == &a) w.schedule(added, expected.due);
          }) == expected.seen);
  }
}

TEST_CASE("a callback may cancel timers that have yet to fire in the same tick, and others") {
  wheel w(8);
  timer a("a"), b("b"), c("c"), d("d"), e("e"), same_bucket("same_bucket"), far("far");
  for (timer* t : {&a, &b, &c, &d, &e}) w.schedule(*t, 5);
  w.schedule(same_bucket, 13);
  w.schedule(far, 1000);
  const auto seen = fired_while(w, 2000, [&](timer& t) {
    if (&t == &a) {
      CHECK(w.cancel(b));
      CHECK(w.cancel(d));
      CHECK_FALSE(w.cancel(b));
    }
    if (&t == &c) {
      CHECK(w.cancel(e));
      CHECK(w.cancel(same_bucket));
      CHECK(w.cancel(far));
      CHECK_FALSE(w.cancel(a));
    }
  });
  CHECK(seen == "a@5 c@5");
  CHECK(w.empty());
}

TEST_CASE("a callback may move a timer of the same tick to the end of that tick") {
  wheel w(8);
  timer a("a"), b("b"), c("c");
  for (timer* t : {&a, &b, &c}) w.schedule(*t, 5);
  CHECK(fired_while(w, 10, [&](timer& t) {
          if (&t == &a) w.schedule(b, 5);
        }) == "a@5 c@5 b@5");
}

TEST_CASE("a callback may cancel the rest of the tick and schedule another round of its bucket") {
  wheel w(8);
  timer a("a"), b("b"), later("later");
  w.schedule(a, 5);
  w.schedule(b, 5);
  CHECK(fired_while(w, 100, [&](timer& t) {
          if (&t != &a) return;
          w.cancel(b);
          w.schedule(later, 5 + 16);
        }) == "a@5 later@21");
}

TEST_CASE("a callback may destroy the node it is called for") {
  wheel w(8);
  auto a = std::make_unique<timer>("a");
  timer b("b");
  w.schedule(*a, 5);
  w.schedule(b, 5);
  CHECK(fired_while(w, 10, [&](timer& t) {
          if (&t == a.get()) a.reset();
        }) == "a@5 b@5");
  CHECK(w.empty());
}

TEST_CASE("a callback may schedule the node it is called for and then destroy it") {
  wheel w(8);
  auto a = std::make_unique<timer>("a");
  w.schedule(*a, 5);
  CHECK(fired_while(w, 10, [&](timer& t) {
          w.schedule(t, 7);
          a.reset();
        }) == "a@5");
  CHECK(w.empty());
  CHECK_FALSE(w.next_due().has_value());
}

TEST_CASE("a callback may destroy other nodes that are due in the same tick or later") {
  wheel w(8);
  timer a("a"), last("last");
  auto same_tick = std::make_unique<timer>("same_tick");
  auto same_bucket = std::make_unique<timer>("same_bucket");
  w.schedule(a, 5);
  w.schedule(*same_tick, 5);
  w.schedule(last, 5);
  w.schedule(*same_bucket, 13);
  CHECK(fired_while(w, 100, [&](timer&) {
          same_tick.reset();
          same_bucket.reset();
        }) == "a@5 last@5");
  CHECK(w.empty());
}

TEST_CASE(
    "next_due() inside a callback is the same tick while timers of that tick remain, then the next one") {
  wheel w(8);
  timer a("a"), b("b"), c("c");
  w.schedule(a, 5);
  w.schedule(b, 5);
  w.schedule(c, 13);
  CHECK(fired_while(w, 13, [&](timer& t) {
          if (&t == &a) CHECK(w.next_due() == 5);
          if (&t == &b) CHECK(w.next_due() == 13);
          if (&t == &c) CHECK_FALSE(w.next_due().has_value());
        }) == "a@5 b@5 c@13");
}

TEST_CASE("a callback may advance another wheel, and move nodes there") {
  wheel w(8), other(8);
  timer a("a"), b("b");
  w.schedule(a, 5);
  w.schedule(b, 6);
  std::string seen_there;
  CHECK(fired_while(w, 10, [&](timer&) {
          other.schedule(b, 1);
          seen_there = fired(other, 2);
        }) == "a@5");
  CHECK(seen_there == "b@1");
  CHECK(w.now() == 10);
  CHECK(other.now() == 2);
}

}  // namespace wheel_reentry
