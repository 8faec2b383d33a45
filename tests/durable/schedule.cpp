// Schedules of repeated tasks: their texts, their points, and what is done about points that went by.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#ifdef RONDO_DURABLE_CALENDAR
#include "calendar/zone_files.hpp"
#endif
#include "durable/schedule_access.hpp"

namespace durable_schedule {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using detail::zoned_point;
using rondo::durable::missed_points;
using rondo::durable::schedule;
using rondo::durable::wall_time;

constexpr wall_time start = std::chrono::sys_days(std::chrono::year(2026) / 7 / 1);

std::optional<wall_time> time_of(const std::optional<zoned_point>& p) {
  return p ? std::optional(p->at) : std::nullopt;
}
std::optional<wall_time> first(const schedule& s, wall_time now) {
  return time_of(detail::first_point(s, now));
}
std::optional<wall_time> next(const schedule& s, wall_time point) {
  return time_of(detail::next_point(s, {point}));
}
std::optional<wall_time> to_run(const schedule& s, missed_points missed, wall_time point, wall_time now) {
  return time_of(detail::point_to_run(s, missed, {point}, now, 5s));
}

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
  CHECK(first(each, start) == start + 10s);
  CHECK(next(each, start) == start + 10s);
  const auto& rule = detail::schedule_access::rule_of(each);
  CHECK(time_of(rule.next(start, start + 9s)) == start + 10s);
  CHECK(time_of(rule.next(start, start + 10s - 1ns)) == start + 10s);
  CHECK(time_of(rule.next(start, start + 10s)) == start + 20s);
  CHECK(time_of(rule.next(start, start + 1'000'000'007s)) == start + 1'000'000'010s);
}

TEST_CASE("a schedule whose next point is after the end of the clock has none") {
  CHECK(first(schedule::every(rondo::duration::max()), start) == std::nullopt);
  const auto last = std::chrono::floor<std::chrono::microseconds>(wall_time::max());
  CHECK(next(schedule::every(1us), last) == std::nullopt);
  CHECK(next(schedule::every(1us), last - 1us) == last);
}

/// What is run if `late` has passed since the point `start`, of a period of 10 s, with a window of 5 s.
std::optional<wall_time> with(missed_points missed, rondo::duration late) {
  return to_run(schedule::every(10s), missed, start, start + late);
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
  CHECK(to_run(schedule::every(1s), missed_points::skip, start, start + 100s) == start + 95s);
}

TEST_CASE("a point that an operator has written, however extreme, is handled") {
  const auto each = schedule::every(10s);
  for (const missed_points missed : {missed_points::run_once, missed_points::skip}) {
    CHECK(to_run(each, missed, wall_time::min(), start).has_value());
    CHECK(to_run(each, missed, wall_time::max(), start) == wall_time::max());
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
  while (all.size() != count) all.push_back(*(all.empty() ? first(s, after) : next(s, all.back())));
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
    return to_run(each, missed_points::run_once, *first(each, start), now);
  };
  const wall_time later = start + 24h * 3650;  // 28 June 2036
  CHECK(newest("* * * * * *", later + 17s) == later + 17s);
  CHECK(newest("0 3 * * *", later + 17h) == later + 3h);
  CHECK(newest("* * 3 * * *", later + 17h) == later + 4h - 1s);
  CHECK(newest("0 0 29 2 *", later) == wall_time(std::chrono::sys_days(std::chrono::year(2036) / 2 / 29)));
}

/// A schedule of Test/City, whose zone has a rule and gets another one.
struct updated_schedule {
  updated_schedule(const char* expression, const char* before) {
    update(before);
    is.emplace(schedule::cron(expression, "Test/City"));
  }
  void update(const char* rule) {
    folder.add("Test/City", rule);
    rondo::refresh_zone_data();
  }
  /// What is run at that time if the row has that point.
  std::optional<zoned_point> to_run(const zoned_point& row, wall_time now) const {
    return detail::point_to_run(*is, missed_points::run_once, row, now, 5s);
  }
  /// The local times, from `from` on, that are run by a dispatcher which is never late.
  std::vector<wall_time> runs(missed_points missed, wall_time from, wall_time updated, const char* after,
                              std::size_t count) {
    std::vector<wall_time> all;
    bool is_updated = false;
    std::optional<zoned_point> row = detail::first_point(*is, from - 24h);
    for (wall_time now = row->at; all.size() != count;) {
      now = std::max(now, row->at);
      if (now >= updated && !std::exchange(is_updated, true)) update(after);
      const auto point = detail::point_to_run(*is, missed, *row, now, 5s);
      const bool is_run = point->at <= now;
      const wall_time local = point->at + point->offset.value_or(0s);
      if (is_run && local >= from) all.push_back(local);
      row = is_run ? detail::next_point(*is, *point) : point;
    }
    return all;
  }

  calendar_test::zone_folder folder;
  std::optional<schedule> is;
};

struct zone_update {
  const char *before, *after;
};
// On these days, the clocks of Europe are set.
constexpr wall_time spring = std::chrono::sys_days(std::chrono::year(2026) / 3 / 29);
constexpr wall_time autumn = std::chrono::sys_days(std::chrono::year(2026) / 10 / 25);

/// Checks that each local time of an expression is run once, whenever the zone data are updated.
void check_runs(missed_points missed, const char* expression, const std::vector<std::chrono::minutes>& times,
                const zone_update& zone) {
  updated_schedule x(expression, zone.before);
  for (const wall_time day : {spring, autumn})
    for (auto updated = day - 25h; updated <= day + 25h; updated += 170min) {
      std::vector<wall_time> expected;
      for (const auto each : {-48h, -24h, 0h, 24h, 48h, 72h})
        for (const auto time : times) expected.push_back(day + each + time);
      x.update(zone.before);
      const auto ran = x.runs(missed, expected[0], updated, zone.after, expected.size());
      CAPTURE(expression);
      CAPTURE(zone.before);
      CAPTURE(zone.after);
      CAPTURE((updated - day) / 1min);
      CHECK((ran == expected));
    }
}

constexpr zone_update shifts[] = {
    {"AAA0", "AAA-1"}, {"AAA-1", "AAA0"}, {"AAA0", "AAA-0:20"}, {"AAA0", "AAA0:20"}};

TEST_CASE("run_all runs each local time once, whenever the zone data are updated") {
  constexpr const char* europe = "AAA-1BBB,M3.5.0,M10.5.0/3";
  constexpr zone_update others[] = {{"AAA0", "AAA-3"},
                                    {"AAA-3", "AAA0"},
                                    {"AAA-14", "AAA10"},
                                    {"AAA10", "AAA-14"},
                                    {"AAA-1", europe},
                                    {europe, "AAA-1"},
                                    {europe, "AAA-1BBB,M3.5.0/3,M10.5.0/2"}};
  const auto check = [](const zone_update& zone) {
    check_runs(missed_points::run_all, "0 9,10 * * *", {9h, 10h}, zone);
    check_runs(missed_points::run_all, "30 2,23 * * *", {2h + 30min, 23h + 30min}, zone);
  };
  for (const zone_update& zone : shifts) check(zone);
  for (const zone_update& zone : others) check(zone);
}

TEST_CASE("skip takes no point that an update of the zone data has moved for a missed one") {
  for (const zone_update& zone : shifts) check_runs(missed_points::skip, "0 9,10 * * *", {9h, 10h}, zone);
}

TEST_CASE("run_once makes one run of the points that an update of the zone data moves to before now") {
  updated_schedule x("0 9,10 * * *", "AAA0");
  const auto nine = detail::first_point(*x.is, start);
  x.update("AAA-1");
  CHECK(x.to_run(*nine, start + 9h) == zoned_point{start + 9h, 1h});  // the same moment, but for 10:00
  CHECK(detail::next_point(*x.is, {start + 9h, 1h})->at == start + 32h);
  CHECK(detail::next_point(*x.is, *nine) == zoned_point{start + 9h, 1h});
  CHECK(x.to_run(*nine, start + 9h - 1ns)->at == start + 8h);
}

TEST_CASE("a point of a skipped hour keeps its local time, which may exist after an update") {
  updated_schedule x("0,30 2 * * *", "AAA-1BBB,M3.5.0,M10.5.0/3");
  const auto row = detail::first_point(*x.is, spring);
  CHECK(row == zoned_point{spring + 1h, 1h});  // for both times
  CHECK(detail::next_point(*x.is, *row)->at == spring + 24h);
  x.update("AAA-1");
  CHECK(x.to_run(*row, spring + 1h) == row);
  CHECK(detail::next_point(*x.is, *row) == zoned_point{spring + 1h + 30min, 1h});
  x.update("AAA-1BBB,M3.5.0,M10.5.0/3");  // one point again, which has been run for 02:00
  CHECK(detail::next_point(*x.is, *row)->at == spring + 24h);
}

TEST_CASE("a point of elapsed time, or whose offset is unknown, stays when the zone data are updated") {
  updated_schedule quarters("*/15 * * * *", "AAA-1");
  quarters.update("AAA0");
  CHECK(detail::first_point(*quarters.is, start) == zoned_point{start + 15min});
  CHECK(quarters.to_run({start + 15min}, start + 15min) == zoned_point{start + 15min});
  CHECK(detail::next_point(*quarters.is, {start + 15min})->at == start + 30min);
  updated_schedule hours("0 * * * *", "AAA-1");
  hours.update("AAA-1:20");
  CHECK(hours.to_run({start + 1h}, start + 1h) == zoned_point{start + 1h});
  CHECK(detail::next_point(*hours.is, {start + 1h})->at == start + 1h + 40min);
  updated_schedule daily("0 9 * * *", "AAA0");
  daily.update("AAA-1");
  CHECK(daily.to_run({start + 9h}, start + 9h) == zoned_point{start + 9h});
  CHECK(detail::next_point(*daily.is, {start + 9h}) == zoned_point{start + 32h, 1h});
}

TEST_CASE("a point of a calendar that an operator has written, however extreme, is handled") {
  const auto each = schedule::cron("30 6 * * *", "Europe/Berlin");
  using std::chrono::seconds;
  for (const wall_time at : {wall_time::min(), start, wall_time::max()})
    for (const seconds offset : {seconds::min(), seconds(-172'799), seconds(172'799), seconds::max()}) {
      const zoned_point row{at, offset};
      const bool is_known = offset > -48h && offset < 48h;
      const auto point = detail::point_to_run(each, missed_points::run_all, row, start, 5s);
      CHECK((point != row) == (is_known && (at == start || (at > start && offset < 0s))));
      CHECK((detail::next_point(each, row) || at == wall_time::max()));
    }
}

#else

TEST_CASE("without rondo-calendar, cron is refused with the reason") {
  CHECK_THROWS_WITH_AS(schedule::cron("30  6 * * *", "Europe/Berlin"),
                       "rondo: the schedule cron \"30 6 * * *\" needs rondo-calendar, without which this "
                       "rondo-durable was built (Meson: calendar=enabled)",
                       rondo::durable::store_error);
  CHECK_THROWS_AS(detail::schedule_of("cron 30 6 * * * UTC"), rondo::durable::store_error);
}

#endif

}  // namespace durable_schedule
