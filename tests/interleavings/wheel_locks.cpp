// Between reading which stripe is the first, without its lock, and locking it, other threads may change both.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "interleavings/explored.hpp"
#include "wheel_kinds.hpp"

namespace interleavings_wheel_locks {

using rondo::tick_number;

using kind = rondo::test::striped;

struct timer : kind::node {
  explicit timer(const char* n) : name(n) {}
  const char* name;
};
using wheel = kind::wheel<timer>;

/// The names of the timers that fire up to `to`.
std::string fired(wheel& w, tick_number to) {
  std::string names;
  w.advance(to, [&](timer& t) { names += t.name; });
  return names;
}

TEST_CASE("a former top bucket with a later tick is not taken in place of an overdue timer of its old tick") {
  wheel w(8);
  timer a("a"), b("b"), later("later"), overdue("overdue");
  w.schedule(a, 5);
  w.schedule(b, 6);
  rondo::test::before_stripe_lock = [&] {
    CHECK(fired(w, 6) == "ab");
    w.schedule(later, 5 + 8);  // in the bucket that `a` has left
    w.schedule(overdue, 5);
  };
  SUBCASE("advance") {
    CHECK(fired(w, 12) == "overdue");
    CHECK(w.next_due() == 13);
  }
  SUBCASE("next_due") {
    CHECK(w.next_due() == 5);
    CHECK(fired(w, 12) == "overdue");
  }
  CHECK(later.scheduled());
  CHECK(w.fault() == "");
}

}  // namespace interleavings_wheel_locks
