#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "recording.hpp"

namespace wheel_next_due {

using namespace wheel_test;

TEST_CASE("next_due() is the tick of the earliest timer, whatever the order of scheduling") {
  wheel w(8);
  timer a, b, c;
  w.schedule(a, 100);
  CHECK(w.next_due() == 100);
  w.schedule(b, 30);
  CHECK(w.next_due() == 30);
  w.schedule(c, 31);
  CHECK(w.next_due() == 30);
}

TEST_CASE("next_due() is exact after the earliest timer was cancelled") {
  wheel w(8);
  timer earliest, second, third;
  struct {
    std::string where;
    tick_number due;
  } const seconds[] = {{"same tick", 5}, {"same bucket", 13}, {"another bucket", 6}, {"another round", 22}};
  for (const auto& second_is : seconds) {
    CAPTURE(second_is.where);
    w.schedule(earliest, 5);
    w.schedule(second, second_is.due);
    w.schedule(third, 1000);
    w.cancel(earliest);
    CHECK(w.next_due() == second_is.due);
    w.cancel(second);
    CHECK(w.next_due() == 1000);
    w.cancel(third);
    CHECK(w.next_due() == std::nullopt);
  }
}

TEST_CASE("next_due() is exact after the earliest timer was moved later") {
  wheel w(8);
  timer moved, still;
  w.schedule(moved, 5);
  w.schedule(still, 20);
  for (const tick_number due : {6, 13, 19, 21}) {
    CAPTURE(due);
    w.schedule(moved, due);
    CHECK(w.next_due() == (due < 20 ? due : 20));
  }
}

TEST_CASE("next_due() is exact after the earliest of several later rounds was cancelled") {
  wheel w(8);
  timer next, far, farther, farthest;
  w.schedule(next, 5);
  w.schedule(far, 5 + 8 * 2);
  w.schedule(farther, 5 + 8 * 3);
  w.schedule(farthest, 5 + 8 * 300);
  w.cancel(far);
  w.cancel(next);
  CHECK(w.next_due() == 5 + 8 * 3);
  w.cancel(farther);
  CHECK(w.next_due() == 5 + 8 * 300);
}

TEST_CASE(
    "cancelling without a call of next_due() neither keeps a later timer from firing nor fires it early") {
  wheel w(8);
  timer cancelled, a("a"), b("b");
  w.schedule(cancelled, 5);
  w.schedule(a, 13);
  w.schedule(b, 14);
  w.cancel(cancelled);
  CHECK(fired(w, 12) == "");
  CHECK(fired(w, 13) == "a@13");
  CHECK(fired(w, 14) == "b@14");
}

TEST_CASE("next_due() works on a const wheel and has no visible effect") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 5);
  w.schedule(b, 13);
  w.cancel(a);
  const wheel& seen = w;
  CHECK(seen.next_due() == 13);
  CHECK(seen.next_due() == 13);
  CHECK(seen.size() == 1);
  CHECK(fired(w, 20) == "b@13");
}

TEST_CASE("after firing, next_due() is that of the next timer, and none when all have fired") {
  wheel w(8);
  timer a("a"), b("b");
  w.schedule(a, 5);
  w.schedule(b, 13);
  fired(w, 5);
  CHECK(w.next_due() == 13);
  fired(w, 13);
  CHECK(w.next_due() == std::nullopt);
}

}  // namespace wheel_next_due
