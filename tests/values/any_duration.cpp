// The parameter types any_duration, any_time_point and any_wall_time: which arguments they take, and the value they hold.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <rondo/time.hpp>

namespace values_any_duration {

using namespace std::chrono_literals;
using rondo::any_duration;
using rondo::any_time_point;
using rondo::any_wall_time;
using rondo::duration;
using rondo::time_point;
using rondo::wall_time;

using steady = std::chrono::steady_clock;
template <class Duration>
using point = std::chrono::time_point<steady, Duration>;
template <class Duration>
using wall_point = std::chrono::time_point<std::chrono::system_clock, Duration>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

duration taken(any_duration d) { return d; }
time_point taken_at(any_time_point t) { return t; }
wall_time taken_by_the_wall_clock(any_wall_time t) { return t; }

template <class To>
struct converts_to {
  To value;
  operator To() const { return value; }
};

struct converts_if_not_const {
  operator duration() { return 3ms; }
};

struct converts_if_temporary {
  operator duration() && { return 3ms; }
};

struct converts_explicitly {
  explicit operator duration() const { return 3ms; }
};

struct timeout : std::chrono::seconds {
  using duration::duration;
};

struct wake_up : point<std::chrono::seconds> {
  using time_point::time_point;
};

template <class T>
constexpr bool is_duration = std::is_convertible_v<T, any_duration>;
template <class T>
constexpr bool is_time_point = std::is_convertible_v<T, any_time_point>;
template <class T>
constexpr bool is_wall_time = std::is_convertible_v<T, any_wall_time>;

template <class T>
constexpr bool costs_what_a_number_costs =
    sizeof(T) == sizeof(std::int64_t) &&
    std::is_trivially_copyable_v<T>&& std::is_trivially_destructible_v<T>;

static_assert(costs_what_a_number_costs<any_duration> && costs_what_a_number_costs<any_time_point> &&
              costs_what_a_number_costs<any_wall_time>);
static_assert(duration(any_duration(5ms)) == 5ms, "conversions are constant expressions");
static_assert(time_point(any_time_point(point<std::chrono::seconds>(5s))) == time_point(5s));
static_assert(wall_time(any_wall_time(std::chrono::sys_seconds(5s))) == wall_time(5s));
static_assert(std::is_same_v<wall_time::period, std::nano>, "whatever the standard library's clock has");

TEST_CASE("an any_duration takes durations, types that convert to rondo::duration, and nothing else") {
  CHECK(is_duration<duration>);
  CHECK(is_duration<const duration&>);
  CHECK(is_duration<std::chrono::hours>);
  CHECK(is_duration<std::chrono::duration<short, std::milli>>);
  CHECK(is_duration<std::chrono::duration<float>>);
  CHECK(is_duration<any_duration&>);
  CHECK(is_duration<timeout>);
  CHECK(is_duration<converts_to<duration>>);
  CHECK(is_duration<converts_if_not_const&>);
  CHECK(is_duration<converts_if_temporary>);
  CHECK(is_duration<std::atomic<duration>&>);
  CHECK(is_duration<std::reference_wrapper<const duration>>);

  CHECK(!is_duration<int>);
  CHECK(!is_duration<double>);
  CHECK(!is_duration<std::nullptr_t>);
  CHECK(!is_duration<std::string>);
  CHECK(!is_duration<time_point>);
  CHECK(!is_duration<any_time_point>);
  CHECK(!is_duration<const converts_if_not_const&>);
  CHECK(!is_duration<converts_if_temporary&>);
  CHECK(!is_duration<converts_explicitly>);
  CHECK(!is_duration<converts_to<std::chrono::seconds>>);
  CHECK(!is_duration<converts_to<time_point>>);
}

TEST_CASE(
    "an any_time_point takes time points of the steady clock, types that convert to them, and nothing else") {
  CHECK(is_time_point<time_point>);
  CHECK(is_time_point<const time_point&>);
  CHECK(is_time_point<point<std::chrono::hours>>);
  CHECK(is_time_point<point<std::chrono::duration<double>>>);
  CHECK(is_time_point<any_time_point&>);
  CHECK(is_time_point<wake_up>);
  CHECK(is_time_point<converts_to<time_point>>);
  CHECK(is_time_point<std::atomic<time_point>&>);

  CHECK(!is_time_point<std::chrono::system_clock::time_point>);
  CHECK(!is_time_point<duration>);
  CHECK(!is_time_point<any_duration>);
  CHECK(!is_time_point<int>);
  CHECK(!is_time_point<std::nullptr_t>);
  CHECK(!is_time_point<converts_to<duration>>);
}

TEST_CASE(
    "an any_wall_time takes time points of the wall clock, types that convert to them, and nothing else") {
  CHECK(is_wall_time<wall_time>);
  CHECK(is_wall_time<const wall_time&>);
  CHECK(is_wall_time<std::chrono::system_clock::time_point>);
  CHECK(is_wall_time<std::chrono::sys_days>);
  CHECK(is_wall_time<wall_point<std::chrono::microseconds>>);
  CHECK(is_wall_time<wall_point<picoseconds>>);
  CHECK(is_wall_time<wall_point<std::chrono::duration<double>>>);
  CHECK(is_wall_time<any_wall_time&>);
  CHECK(is_wall_time<converts_to<wall_time>>);
  CHECK(is_wall_time<std::atomic<wall_time>&>);

  CHECK(!is_wall_time<time_point>);
  CHECK(!is_wall_time<any_time_point>);
  CHECK(!is_wall_time<duration>);
  CHECK(!is_wall_time<any_duration>);
  CHECK(!is_wall_time<int>);
  CHECK(!is_wall_time<std::nullptr_t>);
  CHECK(!is_wall_time<converts_to<duration>>);
}

TEST_CASE("any_duration holds the result of saturate() for a duration") {
  CHECK(taken(5ms) == 5ms);
  CHECK(taken(-5h) == -5h);
  CHECK(taken(std::chrono::duration<double>(0.25)) == 250ms);
  CHECK(taken(picoseconds(1)) == 1ns);
  CHECK(taken(duration::max()) == duration::max());
  CHECK(taken(std::chrono::hours::max()) == duration::max());
  CHECK(taken(std::chrono::hours::min()) == duration::min());
  CHECK(taken(timeout(std::chrono::seconds::max().count())) == duration::max());
  CHECK(taken(timeout(7)) == 7s);
  CHECK_THROWS_AS(taken(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())),
                  std::invalid_argument);
}

TEST_CASE("any_time_point holds the result of saturate() for a time point") {
  CHECK(taken_at(time_point(5ns)) == time_point(5ns));
  CHECK(taken_at(point<std::chrono::seconds>(5s)) == time_point(5s));
  CHECK(taken_at(point<std::chrono::duration<double>>(0.25s)) == time_point(250ms));
  CHECK(taken_at(point<std::chrono::hours>::max()) == time_point::max());
  CHECK(taken_at(wake_up(std::chrono::seconds::max())) == time_point::max());
  CHECK(taken_at(wake_up(7s)) == time_point(7s));
  const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(taken_at(point<std::chrono::duration<double>>(nan)), std::invalid_argument);
}

TEST_CASE("any_wall_time holds the result of saturate() for a time point") {
  CHECK(taken_by_the_wall_clock(wall_time(5ns)) == wall_time(5ns));
  CHECK(taken_by_the_wall_clock(std::chrono::sys_days(std::chrono::days(2))) == wall_time(48h));
  CHECK(taken_by_the_wall_clock(wall_point<picoseconds>(picoseconds(1))) == wall_time(1ns));
  CHECK(taken_by_the_wall_clock(wall_point<picoseconds>(picoseconds(-1))) == wall_time(0ns));
  CHECK(taken_by_the_wall_clock(wall_point<std::chrono::duration<double>>(0.25s)) == wall_time(250ms));
  CHECK(taken_by_the_wall_clock(std::chrono::sys_days::max()) == wall_time::max());
  CHECK(taken_by_the_wall_clock(wall_point<std::chrono::hours>::min()) == wall_time::min());
  const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(taken_by_the_wall_clock(wall_point<std::chrono::duration<double>>(nan)),
                  std::invalid_argument);
}

TEST_CASE("braces initialise the parameters as they initialise a duration and a time point") {
  CHECK(taken({}) == 0ns);
  CHECK(taken({5ms}) == 5ms);
  CHECK(taken_at({}) == time_point{});
  CHECK(taken_at({point<std::chrono::seconds>(5s)}) == time_point(5s));
  CHECK(taken_by_the_wall_clock({}) == wall_time{});
  CHECK(taken_by_the_wall_clock({std::chrono::sys_seconds(5s)}) == wall_time(5s));
}

TEST_CASE("a type that converts to a duration or a time point is converted by its own operator") {
  converts_if_not_const changing;
  CHECK(taken(changing) == 3ms);
  CHECK(taken(converts_if_temporary()) == 3ms);
  CHECK(taken(converts_to<duration>{2ns}) == 2ns);
  CHECK(taken_at(converts_to<time_point>{time_point(2ns)}) == time_point(2ns));
  const std::atomic<duration> shared(7ms);
  CHECK(taken(shared) == 7ms);
  const duration elsewhere = 9ms;
  CHECK(taken(std::cref(elsewhere)) == 9ms);
}

}  // namespace values_any_duration
