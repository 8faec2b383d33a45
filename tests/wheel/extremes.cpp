// Negative ticks, the first tick and the last one behave like all others.
#include <doctest/doctest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "recording.hpp"

namespace wheel_extremes {

using namespace wheel_test;

TEST_CASE("timers on negative ticks fire in order, each on its own tick, through zero") {
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

TEST_CASE("the last tick is a tick like any other") {
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

TEST_CASE("the first tick is a tick like any other") {
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

TEST_CASE("a wheel can have timers across all ticks at once, and one jump fires them in order") {
  for (const std::size_t buckets : {1U, 8U, 512U}) {
    CAPTURE(buckets);
    wheel w(buckets, first_tick);
    timer a("a"), b("b"), c("c"), d("d"), e("e");
    w.schedule(e, last_tick);
    w.schedule(c, 0);
    w.schedule(a, first_tick);
    w.schedule(d, last_tick - static_cast<tick_number>(buckets));
    w.schedule(b, first_tick + static_cast<tick_number>(buckets));
    std::string seen;
    w.advance(last_tick, [&](timer& t) {
      CHECK(w.now() == (&t == &e ? last_tick : w.now()));
      seen += t.name;
    });
    CHECK(seen == "abcde");
  }
}

TEST_CASE("a wheel at its last tick still takes overdue timers") {
  wheel w(8, last_tick);
  timer a("a"), b("b");
  w.schedule(a, last_tick);
  w.schedule(b, first_tick);
  std::string seen;
  w.advance(last_tick, [&](timer& t) { seen += t.name; });
  CHECK(seen == "ba");
}

/// Advances a wheel in steps to `start`, and then for forty turns. Returns the ticks at which each of a hundred timers
/// fires, relative to `start`.
std::string forty_turns(std::size_t buckets, tick_number start) {
  const auto turn = static_cast<tick_number>(buckets);
  wheel w(buckets, start - 3 * turn - 2);
  std::deque<std::string> names;
  std::deque<timer> timers;
  for (int i = 0; i != 100; ++i) timers.emplace_back(names.emplace_back(std::to_string(i)).c_str());
  timer far("far");
  w.schedule(far, start + 1000 * turn);
  w.advance(start - 1, [](timer&) {});
  w.advance(start, [](timer&) {});
  std::uint32_t state = 1;
  const auto random = [&](tick_number below) {
    state = state * 1664525U + 1013904223U;
    return static_cast<tick_number>(state >> 8) % below;
  };
  for (timer& t : timers) w.schedule(t, start - 5 + random(30 * turn));
  std::string seen;
  while (w.now() < start + 40 * turn) {
    w.schedule(timers[static_cast<std::size_t>(random(100))], w.now() + random(5 * turn));
    seen += std::to_string(*w.next_due() - start) + ':';
    w.advance(w.now() + random(2 * turn) + 1,
              [&](timer& t) { seen += std::string(t.name) + '@' + std::to_string(w.now() - start) + ' '; });
  }
  CHECK(fired(w, start + 1000 * turn - 1).find("far") == std::string::npos);
  CHECK(fired(w, start + 1000 * turn).substr(0, 4) == "far@");
  return seen;
}

TEST_CASE("a wheel that has run for years behaves like a new one") {
  for (const std::size_t buckets : {1U, 8U, 512U}) {
    CAPTURE(buckets);
    const std::string expected = forty_turns(buckets, 0);
    for (const int power : {30, 31, 32, 36, 53, 62}) {
      CAPTURE(power);
      for (const tick_number off : {-1, 0, 1, 7}) {
        CHECK(forty_turns(buckets, (tick_number{1} << power) + off) == expected);
        CHECK(forty_turns(buckets, -(tick_number{1} << power) + off) == expected);
      }
    }
  }
}

}  // namespace wheel_extremes
