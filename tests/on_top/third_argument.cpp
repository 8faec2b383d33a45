// The third argument of the scheduling calls: timer_options, rondo::on or none. The compiler refuses everything else.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <type_traits>

#include <rondo/executor.hpp>
#include <rondo/keyed_timers.hpp>
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

template <class Scheduler, class... Rest>
concept by_recurrence = requires(Scheduler& s, const recurrence& when, void (*work)(), Rest... rest) {
  s.schedule(when, work, rest...);
};

template <class... Rest>
concept set_after = requires(keyed_timers<int>& k, void (*work)(), Rest... rest) {
  k.set_after(1, 1ms, work, rest...);
};
template <class... Rest>
concept set_at = requires(keyed_timers<int>& k, time_point due, void (*work)(), Rest... rest) {
  k.set_at(1, due, work, rest...);
};
template <class... Rest>
concept set = requires(keyed_timers<int>& k, const recurrence& when, void (*work)(), Rest... rest) {
  k.set(1, when, work, rest...);
};
template <class... Rest>
concept try_set_after = requires(keyed_timers<int>& k, void (*work)(), Rest... rest) {
  k.try_set_after(1, 1ms, work, rest...);
};

template <class Duration>
using point = std::chrono::time_point<rondo::scheduler::clock, Duration>;

/// How many of the calls compile, for durations of several types.
template <class Scheduler, class... Rest>
constexpr int takers() {
  const auto of = []<class Duration>(Duration) {
    return int{after<Scheduler, Duration, Rest...>} + int{at<Scheduler, point<Duration>, Rest...>} +
           int{every<Scheduler, Duration, Rest...>};
  };
  return of(rondo::duration()) + of(1ms) + of(1h) + of(std::chrono::duration<double>()) +
         of(std::chrono::duration<short, std::milli>()) + int{by_recurrence<Scheduler, Rest...>};
}

/// The same number for the scheduler, the scope and keyed_timers.
template <class... Rest>
constexpr int takers_of_all() {
  return takers<rondo::scheduler, Rest...>() + takers<rondo::timer_scope, Rest...>() +
         int{set_after<Rest...>} + int{set_at<Rest...>} + int{set<Rest...>} + int{try_set_after<Rest...>};
}

template <class... Rest>
constexpr bool taken = takers_of_all<Rest...>() == 36;

template <class... Rest>
constexpr bool refused = takers_of_all<Rest...>() == 0;

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
