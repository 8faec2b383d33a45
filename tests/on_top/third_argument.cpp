// The third argument of the scheduling calls: timer_options, rondo::on or none. The compiler refuses everything else.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <type_traits>

#include <rondo/executor.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/timer_scope.hpp>

namespace on_top_third_argument {

using namespace std::chrono_literals;
using namespace rondo;

template <class Scheduler, class Delay, class... Rest>
concept after = requires(Scheduler& s, Delay delay, void (*work)(), Rest... rest) {
  s.schedule_after(delay, work, rest...);
};

template <class Scheduler, class Due, class... Rest>
concept at = requires(Scheduler& s, Due due, void (*work)(), Rest... rest) {
  s.schedule_at(due, work, rest...);
};

template <class Scheduler, class Period, class... Rest>
concept every = requires(Scheduler& s, Period period, void (*work)(), Rest... rest) {
  s.schedule_every(period, work, rest...);
};

template <class Duration>
using point = std::chrono::time_point<rondo::scheduler::clock, Duration>;

/// How many of the three calls compile, for durations of several types.
template <class Scheduler, class... Rest>
constexpr int takers() {
  const auto of = []<class Duration>(Duration) {
    return int{after<Scheduler, Duration, Rest...>} + int{at<Scheduler, point<Duration>, Rest...>} +
           int{every<Scheduler, Duration, Rest...>};
  };
  return of(rondo::duration()) + of(1ms) + of(1h) + of(std::chrono::duration<double>()) +
         of(std::chrono::duration<short, std::milli>());
}

/// The same number for the scheduler and the scope, with five types of durations each.
template <class... Rest>
constexpr int takers_of_both() {
  return takers<rondo::scheduler, Rest...>() + takers<rondo::timer_scope, Rest...>();
}

template <class... Rest>
constexpr bool taken = takers_of_both<Rest...>() == 30;

template <class... Rest>
constexpr bool refused = takers_of_both<Rest...>() == 0;

constexpr auto accepts_job = [](rondo::job j) { j(); };

struct derived_from_on : on {
  using on::on;
};

TEST_CASE("the scheduling calls take timer_options, an executor as rondo::on, or none") {
  CHECK(taken<>);
  CHECK(taken<timer_options>);
  CHECK(taken<const timer_options&>);
  CHECK(taken<on>);
  CHECK(taken<const on&>);
  CHECK(taken<derived_from_on>);
}

TEST_CASE("any other third argument of a scheduling call is refused by the compiler") {
  CHECK(refused<std::remove_const_t<decltype(accepts_job)>>);
  CHECK(refused<rondo::executor>);
  CHECK(refused<std::nullptr_t>);
  CHECK(refused<int>);
  CHECK(refused<const char*>);
  CHECK(refused<std::string>);
  CHECK(refused<rondo::firing>);
  CHECK(refused<on, on>);
  CHECK(refused<rondo::options>);
}

TEST_CASE("a type that derives from rondo::on is used as a rondo::on") {
  rondo::manual_timer time;
  rondo::timer_scope scope(time);
  int jobs = 0;
  const derived_from_on counted([&](rondo::job j) {
    ++jobs;
    j();
  });
  time.schedule_after(
      1ms, [] {}, counted);
  scope.schedule_after(
      1ms, [] {}, counted);
  CHECK(time.advance(1ms) == 2);
  CHECK(jobs == 2);
}

}  // namespace on_top_third_argument
