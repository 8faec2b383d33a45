// The driver's alarm: no ring is lost, whenever it occurs.
#include "drivers/driver_thread.hpp"

#include <thread>

#include "threads/patience.hpp"

namespace threads_alarm {

using namespace rondo::test;

using alarm = rondo::detail::alarm;
using clock_type = rondo::scheduler::clock;

/// Whether a wait without a limit returns at once, without sleeping.
bool wakes_at_once(alarm& a) {
  const auto before = a.wakeups();
  a.wait_until(clock_type::now() + patience, clock_type::now());
  return a.wakeups() == before;
}

TEST_CASE("a ring between the driver's check and its sleep ends the sleep before it begins") {
  alarm a;
  a.ring();
  CHECK(wakes_at_once(a));
  a.ring();
  a.ring();
  CHECK(wakes_at_once(a));
}

TEST_CASE("the alarm does not sleep until a moment that has passed") {
  alarm a;
  const auto now = clock_type::now();
  a.wait_until(now, now);
  a.wait_until(now - 1h, now);
  CHECK(a.wakeups() == 0);
}

TEST_CASE("a ring ends one wait, even one that would not have slept") {
  alarm a;
  a.ring();
  const auto now = clock_type::now();
  a.wait_until(now, now);
  const auto until = clock_type::now() + 5ms;
  a.wait_until(until, clock_type::now());
  CHECK(clock_type::now() >= until);
  CHECK(a.wakeups() >= 1);
}

TEST_CASE("a ring during the sleep ends it") {
  for (int round = 0; round != 100; ++round) {
    alarm a;
    std::thread ringer([&] {
      spin(static_cast<unsigned>(round) * 500);
      a.ring();
    });
    a.wait_until(std::nullopt, clock_type::now());
    ringer.join();
    CHECK(a.wakeups() <= 1);
  }
}

}  // namespace threads_alarm
