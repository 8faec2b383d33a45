// Durations and time points in other units, and invalid ones.
#include <limits>
#include <ratio>
#include <stdexcept>

#include "scheduler/virtual_time.hpp"

namespace scheduler_units {

using namespace rondo;
using namespace rondo::test;

using seconds_as_double = std::chrono::duration<double>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

template <class Duration>
duration due_after(Duration delay) {
  manual_timer time(options{.tick = 1ns});
  std::vector<rondo::firing> runs;
  time.schedule_after(delay, recording(runs));
  time.advance_to_next();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].lateness == 0ns);
  return runs[0].due.time_since_epoch();
}

TEST_CASE("scheduling calls take delays in any unit, rounded up to that of the clock") {
  CHECK(due_after(std::chrono::hours(3)) == 3h);
  CHECK(due_after(std::chrono::duration<int, std::ratio<86400>>(2)) == 48h);
  CHECK(due_after(std::chrono::duration<short, std::milli>(std::int16_t{7})) == 7ms);
  CHECK(due_after(seconds_as_double(0.25)) == 250ms);
  CHECK(due_after(seconds_as_double(1e-10)) == 1ns);
  CHECK(due_after(std::chrono::duration<float, std::milli>(1.5F)) == 1500us);
  CHECK(due_after(picoseconds(1)) == 1ns);
  CHECK(due_after(picoseconds(2000)) == 2ns);
  CHECK(due_after(picoseconds(2001)) == 3ns);
  CHECK(due_after(std::chrono::duration<int, std::ratio<1, 3>>(1)) == 333'333'334ns);
}

TEST_CASE("scheduling calls take time points in any unit") {
  manual_timer time;
  journal ran;
  using clock = std::chrono::steady_clock;
  const auto id = time.schedule_at(std::chrono::time_point<clock, std::chrono::seconds>(2s), ran.noting("a"));
  time.schedule_at(std::chrono::time_point<clock, seconds_as_double>(seconds_as_double(1.5)),
                   ran.noting("b"));
  CHECK(time.advance(1500ms) == 1);
  CHECK(time.reschedule_at(id, std::chrono::time_point<clock, std::chrono::minutes>(1min)));
  CHECK(time.advance(1min - 1501ms) == 0);
  CHECK(time.advance(1ms) == 1);
  CHECK(ran.take() == "b a");
}

TEST_CASE("periods, steps of time and reschedulings may be in any unit") {
  manual_timer time;
  int runs = 0;
  const auto id = time.schedule_every(std::chrono::duration<double, std::milli>(2.5), counting(runs));
  time.advance(std::chrono::duration<double, std::milli>(10.0));
  CHECK(runs == 4);
  time.elapse(seconds_as_double(0.001));
  CHECK(since_epoch(time) == 11ms);
  CHECK(time.reschedule_after(id, std::chrono::minutes(1)));
  CHECK(time.next_due() == at(1min + 11ms));
}

TEST_CASE("every call refuses a NaN, and changes nothing") {
  manual_timer time;
  const auto id = time.schedule_after(1ms, doing_nothing());
  const seconds_as_double nan(std::numeric_limits<double>::quiet_NaN());
  const std::chrono::duration<float, std::milli> float_nan(-std::numeric_limits<float>::quiet_NaN());
  const std::chrono::time_point<std::chrono::steady_clock, seconds_as_double> nan_point(nan);
  CHECK_THROWS_AS(time.schedule_after(nan, doing_nothing()), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_after(float_nan, doing_nothing()), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_at(nan_point, doing_nothing()), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_every(nan, doing_nothing()), std::invalid_argument);
  CHECK_THROWS_AS(time.reschedule_after(id, nan), std::invalid_argument);
  CHECK_THROWS_AS(time.reschedule_at(id, nan_point), std::invalid_argument);
  CHECK_THROWS_AS(time.advance(nan), std::invalid_argument);
  CHECK_THROWS_AS(time.elapse(nan), std::invalid_argument);
  CHECK(time.stats().scheduled == 1);
  CHECK(time.next_due() == at(1ms));
  CHECK(since_epoch(time) == 0ms);
}

TEST_CASE("a delay of minus infinity is due at once") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(seconds_as_double(-std::numeric_limits<double>::infinity()), counting(runs));
  CHECK(time.advance(0s) == 1);
}

}  // namespace scheduler_units
