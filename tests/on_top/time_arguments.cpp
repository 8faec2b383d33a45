// Every call with a delay or a deadline takes all units; the compiler refuses everything else.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>

#include <rondo/coroutine.hpp>
#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/timer_scope.hpp>

namespace on_top_time_arguments {

using namespace std::chrono_literals;
using keyed = rondo::keyed_timers<int>;

template <class Duration>
using point = std::chrono::time_point<rondo::scheduler::clock, Duration>;

struct timeout {
  operator rondo::duration() const { return 5ms; }
};

struct wake_up {
  operator rondo::time_point() const { return rondo::time_point(5ms); }
};

constexpr auto work = [] {};

template <class Scheduler, class D>
concept schedules_after = requires(Scheduler& s, D d, rondo::timer_id id, const rondo::on& where) {
  s.schedule_after(d, work);
  s.schedule_after(d, work, where);
  s.schedule_every(d, work);
  s.schedule_every(d, work, where);
  s.reschedule_after(id, d);
};

template <class Scheduler, class T>
concept schedules_at = requires(Scheduler& s, T t, rondo::timer_id id, const rondo::on& where) {
  s.schedule_at(t, work);
  s.schedule_at(t, work, where);
  s.reschedule_at(id, t);
};

template <class D>
concept delay = schedules_after<rondo::scheduler, D> && schedules_after<rondo::timer_scope, D> &&
    requires(rondo::manual_timer& s, keyed& k, rondo::recurrence r, D d) {
  s.drain(d);
  s.advance(d);
  s.elapse(d);
  k.set_after(1, d, work);
  k.try_set_after(1, d, work);
  k.reschedule_after(1, d);
  rondo::every(d);
  rondo::after_completion(d);
  rondo::backoff(d, 2, d);
  r.first_after(d);
  sleep_for(s, d);
};

template <class T>
concept deadline = schedules_at<rondo::scheduler, T> && schedules_at<rondo::timer_scope, T> &&
    requires(rondo::manual_timer& s, keyed& k, rondo::recurrence r, T t) {
  k.set_at(1, t, work);
  r.first_at(t);
  rondo::manual_timer({}, t);
  sleep_until(s, t);
};

template <class Scheduler, class D>
concept takes_delay = requires(Scheduler& s, D d) {
  s.schedule_after(d, work);
};

template <class Scheduler, class T>
concept takes_deadline = requires(Scheduler& s, T t) {
  s.schedule_at(t, work);
};

template <class D>
concept period = requires(D d) {
  rondo::every(d);
};

template <class T>
concept sleeps_until = requires(rondo::scheduler& s, T t) {
  sleep_until(s, t);
};

template <class D>
constexpr bool no_delay =
    !takes_delay<rondo::scheduler, D> && !takes_delay<rondo::timer_scope, D> && !period<D>;

template <class T>
constexpr bool no_deadline =
    !takes_deadline<rondo::scheduler, T> && !takes_deadline<rondo::timer_scope, T> && !sleeps_until<T>;

static_assert(delay<rondo::duration> && delay<std::chrono::hours> && delay<std::chrono::duration<double>>);
static_assert(delay<std::chrono::duration<short, std::milli>> && delay<timeout>);
static_assert(no_delay<int> && no_delay<double> && no_delay<std::nullptr_t>);
static_assert(no_delay<rondo::time_point> && no_delay<wake_up>);

static_assert(deadline<rondo::time_point> && deadline<point<std::chrono::hours>>);
static_assert(deadline<point<std::chrono::duration<double>>> && deadline<wake_up>);
static_assert(no_deadline<int> && no_deadline<std::nullptr_t>);
static_assert(no_deadline<rondo::duration> && no_deadline<timeout>);
static_assert(no_deadline<std::chrono::system_clock::time_point>);

TEST_CASE("braces, and types that convert to a duration or a time point, are valid delays and deadlines") {
  rondo::manual_timer time({}, wake_up());
  CHECK(time.now() == rondo::time_point(5ms));
  int runs = 0;
  const auto count = [&] { ++runs; };
  time.schedule_after({}, count);
  time.schedule_at({}, count);
  CHECK(time.advance({}) == 2);
  time.schedule_after(timeout(), count);
  time.schedule_after({5ms}, count);
  time.schedule_at({rondo::time_point(10ms)}, count);
  CHECK(time.advance(timeout()) == 3);
  CHECK(runs == 5);
}

TEST_CASE("a function can return a manual timer by its constructor arguments") {
  const auto made = [](rondo::time_point start) -> rondo::manual_timer {
    return {rondo::options{.tick = 1us}, std::chrono::time_point_cast<std::chrono::milliseconds>(start)};
  };
  CHECK(made(rondo::time_point(3ms)).now() == rondo::time_point(3ms));
}

}  // namespace on_top_time_arguments
