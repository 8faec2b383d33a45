#include <doctest/doctest.h>

#include "recording.hpp"

namespace wheel_rounds {

using namespace wheel_test;

constexpr std::size_t buckets = 16;
constexpr tick_number turn = buckets;

TEST_CASE("a timer fires on its own tick, after any number of turns and in any bucket") {
  const tick_number starts[] = {0, 5, 15, -3};
  const tick_number delays[] = {1,        turn - 1,     turn,         turn + 1,       2 * turn,
                                4 * turn, 4 * turn - 1, 4 * turn + 5, 1000 * turn + 7};
  for (const tick_number start : starts) {
    for (const tick_number delay : delays) {
      CAPTURE(start);
      CAPTURE(delay);
      wheel w(buckets, start);
      timer a("a");
      w.schedule(a, start + delay);
      for (tick_number t = start + 1; t != start + delay; ++t) REQUIRE(fired(w, t) == "");
      CHECK(fired(w, start + delay) == "a@" + std::to_string(start + delay));
    }
  }
}

TEST_CASE("a node of a later round does not fire a turn early") {
  wheel w(buckets);
  timer near("near"), far("far");
  w.schedule(near, 5);
  w.schedule(far, 5 + turn);
  CHECK(fired(w, 5) == "near@5");
  CHECK(far.scheduled());
  CHECK(w.next_due() == 5 + turn);
  CHECK(fired(w, 5 + turn - 1) == "");
  CHECK(fired(w, 5 + turn) == "far@21");
}

TEST_CASE("a node of a later round does not fire early even if it is scheduled first") {
  wheel w(buckets);
  timer near("near"), far("far"), farther("farther");
  w.schedule(farther, 5 + 3 * turn);
  w.schedule(far, 5 + turn);
  w.schedule(near, 5);
  CHECK(fired(w, 5) == "near@5");
  CHECK(fired(w, 5 + turn) == "far@21");
  CHECK(fired(w, 5 + 3 * turn) == "farther@53");
}

TEST_CASE("timers at exact multiples of a turn share a bucket and fire one round after the other") {
  wheel w(buckets);
  timer a("a"), b("b"), c("c"), d("d");
  w.schedule(c, 3 * turn);
  w.schedule(a, turn);
  w.schedule(d, 4 * turn);
  w.schedule(b, 2 * turn);
  CHECK(fired(w, 4 * turn) == "a@16 b@32 c@48 d@64");
}

TEST_CASE("a timer that has fired does not fire again a turn later") {
  wheel w(buckets);
  timer a("a");
  w.schedule(a, 5);
  CHECK(fired(w, 5) == "a@5");
  CHECK(fired(w, 5 + turn) == "");
  CHECK(fired(w, 5 + 100 * turn) == "");
}

TEST_CASE("when an earlier round is added to a bucket, the later rounds still fire at their own ticks") {
  wheel w(buckets);
  timer first("first"), second("second"), third("third");
  w.schedule(second, 5 + 2 * turn);
  w.schedule(third, 5 + 3 * turn);
  CHECK(w.next_due() == 5 + 2 * turn);
  w.schedule(first, 5 + turn);
  CHECK(w.next_due() == 5 + turn);
  CHECK(fired(w, 5 + turn) == "first@21");
  CHECK(fired(w, 5 + 2 * turn) == "second@37");
  CHECK(fired(w, 5 + 3 * turn) == "third@53");
}

TEST_CASE("a timer 2^50 ticks away is found without visiting the ticks before it") {
  wheel w;
  timer a("a"), b("b");
  const tick_number far = tick_number{1} << 50;
  w.schedule(a, far);
  w.schedule(b, far + 1);
  CHECK(fired(w, far - 1) == "");
  CHECK(w.advance(far, [&](timer& t) { CHECK(&t == &a); }) == 1);
  CHECK(w.next_due() == far + 1);
}

TEST_CASE("timers at distances of a power of two, one less and one more fire on their own ticks") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{512}}) {
    wheel w(size, 5);
    timer before("before"), at("at"), after("after");
    for (int power = 1; power != 62; ++power) {
      CAPTURE(size);
      CAPTURE(power);
      const tick_number due = w.now() + (tick_number{1} << (power % 56));
      w.schedule(after, due + 1);
      w.schedule(at, due);
      w.schedule(before, due - 1);
      const auto seen =
          "before@" + std::to_string(due - 1 > w.now() ? due - 1 : w.now()) + " at@" + std::to_string(due);
      CHECK(fired(w, due) == seen);
      CHECK(w.next_due() == due + 1);
      w.cancel(after);
    }
  }
}

}  // namespace wheel_rounds
