// Schedules of repeated tasks: their texts, their points, and what is done about points that went by.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/durable.hpp>

#ifdef RONDO_DURABLE_CALENDAR
#include "calendar/zone_files.hpp"
#endif
#include "durable/schedule_access.hpp"

namespace durable_schedule {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using rondo::durable::missed_points;
using rondo::durable::schedule;
using rondo::durable::wall_time;

constexpr wall_time start = std::chrono::sys_days(std::chrono::year(2026) / 7 / 1);

TEST_CASE("the text of a period is in the largest unit that divides it") {
  CHECK(schedule::every(90s).text() == "every 90s");
  CHECK(schedule::every(100ms).text() == "every 100ms");
  CHECK(schedule::every(1500us).text() == "every 1500us");
  CHECK(schedule::every(120s).text() == "every 2min");
  CHECK(schedule::every(48h).text() == "every 48h");
  CHECK(schedule::every(1000ms).text() == schedule::every(1s).text());
  CHECK(schedule::every(1ns).text() == "every 1us");
  CHECK(schedule::every(1001ns).text() == "every 2us");
}

TEST_CASE("a period that is not positive is refused, with its value") {
  CHECK_THROWS_WITH_AS(schedule::every(0s), "rondo: a period must be positive, not 0ns",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(schedule::every(-1ns), "rondo: a period must be positive, not -1ns",
                       std::invalid_argument);
  CHECK_THROWS_AS(schedule::every(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())),
                  std::invalid_argument);
}

TEST_CASE("a schedule can be made again from its text") {
  for (const char* text : {"every 90s", "every 100ms", "every 1us", "every 2min", "every 48h"})
    CHECK(detail::schedule_of(text).text() == text);
}

TEST_CASE("a text that is no schedule is refused") {
  for (const std::string text : {"", "every", "every ", "every s", "every 0s", "every -1s", "every 1",
                                 "every 1d", "every 1s ", "every 1.5s", "every 9999999999999999999s",
                                 "every 999999999999999999h", "sometimes", "cron", "cron ", "cron UTC"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(detail::schedule_of(text), std::invalid_argument);
  }
  CHECK_THROWS_WITH(detail::schedule_of("every 1d"), "rondo: there is no schedule \"every 1d\"");
}

TEST_CASE("the points of a period are on a grid, however much later one looks") {
  const auto each = schedule::every(10s);
  CHECK(detail::first_point(each, start) == start + 10s);
  CHECK(detail::next_point(each, start) == start + 10s);
  const auto& rule = detail::schedule_access::rule_of(each);
  CHECK(rule.next(start, start + 9s) == start + 10s);
  CHECK(rule.next(start, start + 10s - 1ns) == start + 10s);
  CHECK(rule.next(start, start + 10s) == start + 20s);
  CHECK(rule.next(start, start + 1'000'000'007s) == start + 1'000'000'010s);
}

TEST_CASE("a schedule whose next point is after the end of the clock has none") {
  CHECK(detail::first_point(schedule::every(rondo::duration::max()), start) == std::nullopt);
  const auto last = std::chrono::floor<std::chrono::microseconds>(wall_time::max());
  CHECK(detail::next_point(schedule::every(1us), last) == std::nullopt);
  CHECK(detail::next_point(schedule::every(1us), last - 1us) == last);
}

/// What is run if `late` has passed since the point `start`, of a period of 10 s, with a window of 5 s.
std::optional<wall_time> with(missed_points missed, rondo::duration late) {
  return detail::point_to_run(schedule::every(10s), missed, start, start + late, 5s);
}

TEST_CASE("of the points that went by, run_once runs the newest") {
  CHECK(with(missed_points::run_once, 0s) == start);
  CHECK(with(missed_points::run_once, 10s - 1ns) == start);
  CHECK(with(missed_points::run_once, 10s) == start + 10s);
  CHECK(with(missed_points::run_once, 25s) == start + 20s);
  CHECK(with(missed_points::run_once, 24h * 365 + 7s) == start + 24h * 365);
  CHECK(with(missed_points::run_once, -1s) == start);  // by a clock that was set back
}

TEST_CASE("run_all runs the point that it has, however late") {
  CHECK(with(missed_points::run_all, 0s) == start);
  CHECK(with(missed_points::run_all, 24h) == start);
}

TEST_CASE("skip runs a point that is at most one window late, and otherwise the first that is") {
  CHECK(with(missed_points::skip, 0s) == start);
  CHECK(with(missed_points::skip, 5s) == start);
  CHECK(with(missed_points::skip, 5s + 1ns) == start + 10s);  // in the future
  CHECK(with(missed_points::skip, 10s) == start + 10s);
  CHECK(with(missed_points::skip, 15s) == start + 10s);
  CHECK(with(missed_points::skip, 15s + 1ns) == start + 20s);
  // Several may be at most one window late: then the first of them.
  CHECK(detail::point_to_run(schedule::every(1s), missed_points::skip, start, start + 100s, 5s) ==
        start + 95s);
}

TEST_CASE("a point that an operator has written, however extreme, is handled") {
  const auto each = schedule::every(10s);
  for (const missed_points missed : {missed_points::run_once, missed_points::skip}) {
    CHECK(detail::point_to_run(each, missed, wall_time::min(), start, 5s).has_value());
    CHECK(detail::point_to_run(each, missed, wall_time::max(), start, 5s) == wall_time::max());
  }
}

#ifdef RONDO_DURABLE_CALENDAR

TEST_CASE("the text of a cron schedule has its expression and its zone, with single blanks") {
  CHECK(schedule::cron(" 30  6 * *\t* ").text() == "cron 30 6 * * * UTC");
  using rondo::cron_syntax;
  CHECK(schedule::cron("30 6 * * *", "UTC", cron_syntax::standard).text() == "cron 30 6 * * * UTC");
  const auto seconds = schedule::cron("*/10 * * * * *", "Europe/Berlin", cron_syntax::seconds_first);
  CHECK(seconds.text() == "cron seconds_first */10 * * * * * Europe/Berlin");
  CHECK(detail::schedule_of(seconds.text()).text() == seconds.text());
  const auto bridge = schedule::cron("cron(0 10 * * ? *)", "UTC", cron_syntax::eventbridge);
  CHECK(bridge.text() == "cron eventbridge 0 10 * * ? * UTC");
  CHECK(detail::schedule_of("cron eventbridge cron(0 10 * * ? *) UTC").text() == bridge.text());
  const std::string quartz = "cron quartz 0 30 6 ? * 2#1 UTC";
  CHECK(detail::schedule_of(quartz).text() == quartz);
  const std::string text = "cron 30 6 * * mon-fri America/New_York";
  CHECK(detail::schedule_of(text).text() == text);
}

TEST_CASE("an expression or a zone that cron refuses is refused") {
  CHECK_THROWS_AS(schedule::cron("61 * * * *"), std::invalid_argument);
  CHECK_THROWS_AS(schedule::cron("0 0 30 2 *"), std::invalid_argument);
  CHECK_THROWS_AS(schedule::cron("* * * * *", "Europe/Nowhere"), std::invalid_argument);
  CHECK_THROWS_AS(schedule::cron("* * * * *", ""), std::invalid_argument);
  CHECK_THROWS_AS(detail::schedule_of("cron 61 * * * * UTC"), std::invalid_argument);
  CHECK_THROWS_AS(detail::schedule_of("cron quartz UTC"), std::invalid_argument);
  CHECK_THROWS_AS(detail::schedule_of("cron croner * * * * * UTC"), std::invalid_argument);
  // As development versions of 0.3 wrote them.
  CHECK_THROWS_WITH_AS(
      detail::schedule_of("cron */10 * * * * * UTC"),
      "rondo: the cron expression \"*/10 * * * * *\" has 6 fields, not 5 as cron_syntax::standard has: "
      "name the syntax that is meant, cron_syntax::seconds_first, quartz, spring, eventbridge or "
      "year_last",
      std::invalid_argument);
}

std::vector<wall_time> points_of(const schedule& s, wall_time after, std::size_t count) {
  std::vector<wall_time> all;
  while (all.size() != count)
    all.push_back(*(all.empty() ? detail::first_point(s, after) : detail::next_point(s, all.back())));
  return all;
}

TEST_CASE(
    "a time that the change to summer time skips counts at the change, one that occurs twice only once") {
  using std::chrono::sys_days;
  using std::chrono::year;
  const auto each = schedule::cron("30 2 * * *", "Europe/Berlin");
  // 02:30 in winter is 01:30 UTC; on 29 March 2026, 02:00 becomes 03:00, which is 01:00 UTC.
  const sys_days spring = year(2026) / 3 / 28;
  CHECK(points_of(each, spring, 3) ==
        std::vector<wall_time>{spring + 1h + 30min, spring + 25h, spring + 48h + 30min});
  const sys_days autumn = year(2026) / 10 / 24;
  CHECK(points_of(each, autumn, 3) ==
        std::vector<wall_time>{autumn + 30min, autumn + 24h + 30min, autumn + 49h + 30min});
}

TEST_CASE("run_once finds the newest point of a calendar at once, whatever its gaps") {
  const auto newest = [](const char* expression, wall_time now) {
    const bool has_seconds = std::ranges::count(std::string_view(expression), ' ') == 5;
    const auto each = schedule::cron(
        expression, "UTC", has_seconds ? rondo::cron_syntax::seconds_first : rondo::cron_syntax::standard);
    return detail::point_to_run(each, missed_points::run_once, *detail::first_point(each, start), now, 5s);
  };
  const wall_time later = start + 24h * 3650;  // 28 June 2036
  CHECK(newest("* * * * * *", later + 17s) == later + 17s);
  CHECK(newest("0 3 * * *", later + 17h) == later + 3h);
  CHECK(newest("* * 3 * * *", later + 17h) == later + 4h - 1s);
  CHECK(newest("0 0 29 2 *", later) == wall_time(std::chrono::sys_days(std::chrono::year(2036) / 2 / 29)));
}

/// A schedule of Test/City whose zone has a rule, and then another one.
struct updated_schedule {
  updated_schedule(const char* expression, const char* before, const char* after) {
    folder.add("Test/City", before);
    rondo::refresh_zone_data();
    is.emplace(schedule::cron(expression, "Test/City"));
    folder.add("Test/City", after);
    rondo::refresh_zone_data();
  }
  /// The point to run if `point` is in the database.
  std::optional<wall_time> to_run(wall_time point, wall_time now) const {
    return detail::point_to_run(*is, missed_points::run_once, point, now, 5s);
  }

  calendar_test::zone_folder folder;
  std::optional<schedule> is;
};

TEST_CASE(
    "after an update of the zone data, a point is run at its new time, and the next one is of the next day") {
  const updated_schedule later("0 9 * * *", "AAA-1", "AAA0");
  CHECK(later.to_run(start + 8h, start + 8h) == start + 9h);
  CHECK(detail::next_point(*later.is, start + 8h) == start + 33h);
  CHECK(later.to_run(start + 9h, start + 9h) == start + 9h);
  const updated_schedule earlier("0 9 * * *", "AAA0", "AAA-1");
  CHECK(earlier.to_run(start + 9h, start + 9h) == start + 8h);
  CHECK(detail::next_point(*earlier.is, start + 9h) == start + 32h);
  const updated_schedule farther("0 9 * * *", "AAA0", "AAA-4");  // by no update of a zone
  CHECK(farther.to_run(start + 9h, start + 9h) == start + 9h);
}

TEST_CASE("an update of the zone data does not move points of elapsed time, or moves them to the nearest") {
  const updated_schedule quarters("*/15 * * * *", "AAA-1", "AAA0");
  CHECK(quarters.to_run(start + 15min, start + 15min) == start + 15min);
  CHECK(detail::next_point(*quarters.is, start + 15min) == start + 30min);
  const updated_schedule hours("0 * * * *", "AAA-1", "AAA-1:20");
  CHECK(hours.to_run(start + 1h, start + 1h) == start + 40min);
  CHECK(detail::next_point(*hours.is, start + 1h) == start + 1h + 40min);
}

#else

TEST_CASE("without rondo-calendar, cron is refused with the reason") {
  CHECK_THROWS_WITH_AS(schedule::cron("30  6 * * *", "Europe/Berlin"),
                       "rondo: the schedule cron \"30 6 * * *\" needs rondo-calendar, without which this "
                       "rondo-durable was built",
                       rondo::durable::store_error);
  CHECK_THROWS_AS(detail::schedule_of("cron 30 6 * * * UTC"), rondo::durable::store_error);
}

#endif

}  // namespace durable_schedule
