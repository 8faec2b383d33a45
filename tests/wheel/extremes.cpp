// Negative ticks, the first and the last one are ticks like others.
#include <doctest/doctest.h>

#include <optional>

#include "recording.hpp"

using namespace wheel_test;

TEST_CASE("negative ticks fire in order, each on its own tick, on through zero") {
  wheel w(8, -30);
  timer a("a"), b("b"), c("c"), d("d"), e("e");
  w.schedule(d, 0);
  w.schedule(b, -9);
  w.schedule(e, 7);
  w.schedule(a, -25);
  w.schedule(c, -1);
  CHECK(w.next_due() == -25);
  CHECK(fired(w, -26) == "");
  CHECK(fired(w, -1) == "a@-25 b@-9 c@-1");
  CHECK(fired(w, 7) == "d@0 e@7");
}

TEST_CASE("negative ticks a turn apart are different rounds") {
  wheel w(8, -100);
  timer a("a"), b("b"), c("c");
  w.schedule(c, 4);
  w.schedule(b, -4);
  w.schedule(a, -12);
  for (tick_number t = -99; t != -12; ++t) REQUIRE(fired(w, t) == "");
  CHECK(fired(w, -12) == "a@-12");
  CHECK(fired(w, -5) == "");
  CHECK(fired(w, -4) == "b@-4");
  CHECK(fired(w, 3) == "");
  CHECK(fired(w, 4) == "c@4");
}

TEST_CASE("the last tick is a tick like others") {
  const auto last = "last@" + std::to_string(last_tick);
  for (const std::size_t buckets : {1U, 8U, 512U}) {
    CAPTURE(buckets);
    wheel w(buckets, last_tick - 100);
    timer before("before"), at("last");
    w.schedule(at, last_tick);
    w.schedule(before, last_tick - 1);
    CHECK(w.next_due() == last_tick - 1);
    CHECK(fired(w, last_tick - 2) == "");
    CHECK(fired(w, last_tick - 1) == "before@" + std::to_string(last_tick - 1));
    CHECK(w.next_due() == last_tick);
    CHECK(fired(w, last_tick) == last);
    CHECK(w.now() == last_tick);
    w.schedule(at, last_tick);
    CHECK(fired(w, last_tick) == last);
  }
}

TEST_CASE("the first tick is a tick like others") {
  const std::string at_first = "@" + std::to_string(first_tick);
  for (const std::size_t buckets : {1U, 8U, 512U}) {
    CAPTURE(buckets);
    wheel w(buckets, first_tick);
    timer a("a"), b("b");
    w.schedule(b, first_tick + 1);
    w.schedule(a, first_tick);
    CHECK(w.next_due() == first_tick);
    CHECK(fired(w, first_tick) == "a" + at_first);
    CHECK(w.now() == first_tick);
    CHECK(fired(w, last_tick) == "b@" + std::to_string(first_tick + 1));
  }
}

TEST_CASE("all ticks fit into one wheel at once, and one jump fires them in order") {
  for (const std::size_t buckets : {1U, 8U, 512U}) {
    CAPTURE(buckets);
    wheel w(buckets, first_tick);
    timer a("a"), b("b"), c("c"), d("d"), e("e");
    w.schedule(e, last_tick);
    w.schedule(c, 0);
    w.schedule(a, first_tick);
    w.schedule(d, last_tick - static_cast<tick_number>(buckets));
    w.schedule(b, first_tick + static_cast<tick_number>(buckets));
    std::string told;
    w.advance(last_tick, [&](timer& t) {
      CHECK(w.now() == (&t == &e ? last_tick : w.now()));
      told += t.name;
    });
    CHECK(told == "abcde");
  }
}

TEST_CASE("a wheel at its last tick still takes timers of the past") {
  wheel w(8, last_tick);
  timer a("a"), b("b");
  w.schedule(a, last_tick);
  w.schedule(b, first_tick);
  std::string told;
  w.advance(last_tick, [&](timer& t) { told += t.name; });
  CHECK(told == "ba");
}
