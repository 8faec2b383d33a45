// Between reading the top of the delay queue without a lock and locking its stripe, other threads may change both.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core_wheel.hpp"

namespace wheel_locks {

using rondo::tick_number;

/// Calls `before_next` once, before it locks, as if another thread had taken the lock first.
class interrupted_lock {
 public:
  void lock() {
    if (before_next) std::exchange(before_next, nullptr)();
    lock_.lock();
  }
  void unlock() noexcept { lock_.unlock(); }

  static inline std::function<void()> before_next;

 private:
  rondo::test::own_lock lock_;
};

struct interrupted {
  using stripe_mutex = interrupted_lock;
  using queue_mutex = rondo::test::own_lock;
  static constexpr std::size_t stripes = 1;
  static constexpr std::uint32_t redistributed_at_a_time = 3;
};

struct timer : rondo::test::core_node<interrupted> {
  explicit timer(const char* n) : name(n) {}
  const char* name;
};
using wheel = rondo::test::core_wheel<interrupted, timer>;

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
  interrupted_lock::before_next = [&] {
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

}  // namespace wheel_locks
