// Calendars with points of the user's own: calendar_of().
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "calendar/almanac.hpp"

namespace calendar_given {

using namespace calendar_test;

/// On the hour, up to `last`.
calendar hours_until(const std::string& last) {
  return calendar_of([last = utc(last)](wall_time after) -> std::optional<wall_time> {
    const wall_time next = std::chrono::floor<std::chrono::hours>(after) + 1h;
    return next <= last ? std::optional(next) : std::nullopt;
  });
}

/// Notes what on_error gets.
rondo::options noting_errors(journal& j) {
  rondo::options o;
  o.on_error = [&j](std::exception_ptr what, const firing&) {
    try {
      std::rethrow_exception(what);
    } catch (const std::exception& e) {
      j.add(e.what());
    } catch (const char* text) {
      j.add(text);
    }
  };
  return o;
}

TEST_CASE("next() asks the function") {
  CHECK(points(hours_until("2026-05-01 14:00:00"), "2026-05-01 12:30:00", 3) ==
        "2026-05-01 13:00, 2026-05-01 14:00, none");
  const calendar copied = hours_until("2026-05-01 14:00:00");
  CHECK(text(calendar(copied).next(utc("2026-05-01 12:00:00"))) == "2026-05-01 13:00");
}

TEST_CASE("an empty function is refused") {
  CHECK(refusal([] { calendar_of({}); }) == "rondo: calendar_of() takes a function, not an empty one");
}

TEST_CASE("next() throws what the function throws, and refuses a point that is not later") {
  const wall_time t = utc("2026-05-01 12:00:00");
  const auto thrower = calendar_of([](wall_time) -> std::optional<wall_time> { throw "no file"; });
  CHECK_THROWS_AS(thrower.next(t), const char*);
  const auto still = calendar_of([](wall_time after) { return std::optional(after); });
  CHECK_THROWS_WITH_AS(still.next(wall_time(5ns)),
                       "rondo: the function of calendar_of() returned a point, 5ns after 1970, that is not "
                       "later than 5ns",
                       std::logic_error);
}

TEST_CASE("a timer runs at each of the points, and ends with the last one") {
  place p("2026-05-01 12:30:00");
  const auto id = p.timers->schedule(hours_until("2026-05-01 15:00:00"), p.noting("a"));
  p.advance_to("2026-05-01 14:10:00");
  CHECK(p.ran.take() == "a@2026-05-01 13:00 a@2026-05-01 14:00");
  CHECK(text(p.timers->due(id)) == "2026-05-01 15:00");
  p.advance_to("2026-05-02 12:00:00");
  CHECK(p.ran.take() == "a@2026-05-01 15:00");
  CHECK(p.time.pending() == 0);
  REQUIRE(p.runs.size() == 3);
  CHECK(p.runs[1].left == std::nullopt);
  CHECK(p.runs[2].left == 0);
}

TEST_CASE("a function that takes long makes no timer late, and a run says so if it was late by that") {
  place p("2026-05-01 12:00:00");
  duration takes = 10s;
  p.timers->schedule(calendar_of([&](wall_time after) -> std::optional<wall_time> {
                       p.time.elapse(takes);
                       return std::chrono::floor<std::chrono::hours>(after) + 1h;
                     }),
                     p.noting("r"));
  takes = 0s;
  p.advance_to("2026-05-01 13:00:00");
  CHECK(p.ran.take() == "r@2026-05-01 13:00");
  takes = 7s;
  p.advance_to("2026-05-01 14:00:00");
  CHECK(p.ran.take() == "r@2026-05-01 14:00+7000000000ns");
  REQUIRE(p.runs.size() == 2);
  CHECK(p.runs[0].lateness == 0s);
  CHECK(p.runs[1].lateness == 7s);
  takes = 0s;
  p.advance_to("2026-05-01 15:00:00");
  CHECK(p.ran.take() == "r@2026-05-01 15:00");
}

TEST_CASE("points that have passed become one run") {
  place p("2026-05-01 12:30:00");
  p.timers->schedule(hours_until("2026-05-01 20:00:00"), p.noting("a"));
  p.wall.set(utc("2026-05-01 15:30:00"));
  p.advance_to("2026-05-01 16:00:00");
  CHECK(p.ran.take() == "a@2026-05-01 15:30 a@2026-05-01 16:00");
  CHECK(p.runs[0].missed == 2);
}

TEST_CASE("a calendar without any point waits forever, and so does one whose point is the clock's last") {
  place p("2026-05-01 12:30:00");
  const auto none = p.timers->schedule(hours_until("2026-05-01 12:00:00"), p.noting("a"));
  const auto never = p.timers->schedule(
      calendar_of([](wall_time) { return std::optional(wall_time::max()); }), p.noting("b"));
  CHECK(text(p.timers->due(none)) == "never");
  CHECK(text(p.timers->due(never)) == "never");
  CHECK(p.time.next_due() == std::nullopt);
}

TEST_CASE(
    "a function that fails during a run ends the timer after that run, and on_error gets what it threw") {
  journal errors;
  place p("2026-05-01 12:30:00", noting_errors(errors));
  int asked = 0;
  const auto id = p.timers->schedule(calendar_of([&](wall_time after) -> std::optional<wall_time> {
                                       if (++asked == 3) throw "no file";
                                       return after + 1h;
                                     }),
                                     p.noting("a"));
  p.advance_to("2026-05-01 13:30:00");
  CHECK(errors.take() == "");
  p.advance_to("2026-05-01 14:30:00");
  CHECK(p.ran.take() == "a@2026-05-01 13:30 a@2026-05-01 14:30");
  CHECK(errors.take() == "no file");
  CHECK_FALSE(p.timers->pending(id));
  CHECK(p.time.pending() == 0);
  p.time.advance(24h);
  CHECK(asked == 3);
  CHECK(p.time.stats().failed == 1);
  CHECK(adds_up(p.time.stats()));
}

TEST_CASE("a point that is not later ends the timer, and on_error gets a std::logic_error") {
  journal errors;
  place p("2026-05-01 12:30:00", noting_errors(errors));
  const wall_time only = utc("2026-05-01 13:00:00");
  p.timers->schedule(calendar_of([=](wall_time) { return std::optional(only); }), p.noting("a"));
  p.time.advance(24h);
  CHECK(p.ran.take() == "a@2026-05-01 13:00");
  CHECK(errors.take().starts_with("rondo: the function of calendar_of() returned a point, "));
  CHECK(p.time.pending() == 0);
}

TEST_CASE("a function that fails for the first point ends the timer in the next pass") {
  journal errors;
  place p("2026-05-01 12:30:00", noting_errors(errors));
  const auto id = p.timers->schedule(
      calendar_of([](wall_time) -> std::optional<wall_time> { throw "no file"; }), p.noting("a"));
  CHECK(p.timers->pending(id));
  CHECK(p.time.next_due() == p.time.now());
  p.time.advance(0s);
  CHECK(errors.take() == "no file");
  CHECK_FALSE(p.timers->pending(id));
  CHECK(p.timers->cancel(id) == cancel_result::gone);
  CHECK(p.ran.take() == "");
}

TEST_CASE("a timer whose function has failed can be cancelled before it is reported") {
  journal errors;
  place p("2026-05-01 12:30:00", noting_errors(errors));
  const auto id = p.timers->schedule(
      calendar_of([](wall_time) -> std::optional<wall_time> { throw "no file"; }), p.noting("a"));
  CHECK(p.timers->cancel(id) == cancel_result::cancelled);
  p.time.advance(24h);
  CHECK(errors.take() == "");
}

TEST_CASE("when the clock is set back far, the function is asked again, and may fail then") {
  journal errors;
  place p("2026-05-01 12:30:00", noting_errors(errors));
  bool fails = false;
  const auto each_hour = calendar_of([&](wall_time after) -> std::optional<wall_time> {
    if (fails) throw "no file";
    return after + 1h;
  });
  p.timers->schedule(each_hour, p.noting("a"));
  p.wall.set(utc("2026-05-01 02:00:00"));
  p.advance_to("2026-05-01 03:00:00");
  CHECK(p.ran.take() == "a@2026-05-01 03:00");
  fails = true;
  p.wall.set(utc("2026-04-01 00:00:00"));
  CHECK(errors.take() == "");  // the driver reports it, never the call that sets the clock
  fails = false;
  p.wall.set(utc("2026-03-01 00:00:00"));  // it has failed, and is not asked again
  p.time.advance(0s);
  CHECK(errors.take() == "no file");
  CHECK(p.ran.take() == "");
  CHECK(p.time.pending() == 0);
}

TEST_CASE("no lock is held while the function runs: it may use the timers") {
  place p("2026-05-01 12:30:00");
  std::vector<std::string> due;
  timer_id id;
  const auto asking = calendar_of([&](wall_time after) -> std::optional<wall_time> {
    due.push_back(text(p.timers->next_due()));
    p.timers->pending(id);
    return after + 1h;
  });
  id = p.timers->schedule(asking, p.noting("a"));
  p.wall.set(utc("2026-05-01 02:00:00"));
  p.advance_to("2026-05-01 03:00:00");
  CHECK(p.ran.take() == "a@2026-05-01 03:00");
  CHECK(due.size() == 3);
}

}  // namespace calendar_given
