// Days, weekdays and times of day, and what happens to them when a zone's clocks are set.
#include <chrono>
#include <stdexcept>
#include <string>

#include "calendar/almanac.hpp"

namespace calendar_days {

using namespace calendar_test;
using namespace std::chrono;

TEST_CASE("a daily time is in the zone's local time") {
  CHECK(points(daily(6h + 30min, "Europe/Berlin"), "2026-03-01 00:00:00", 3) ==
        "2026-03-01 05:30, 2026-03-02 05:30, 2026-03-03 05:30");
  CHECK(points(daily(6h + 30min, "Asia/Kolkata"), "2026-03-01 01:00:00", 2) ==
        "2026-03-02 01:00, 2026-03-03 01:00");
  CHECK(points(daily(0s, "UTC"), "2026-12-31 00:00:00", 2) == "2027-01-01 00:00, 2027-01-02 00:00");
}

TEST_CASE("the next point is later than the given time, to the nanosecond") {
  const auto c = daily(6h, "UTC");
  const auto six = utc("2026-05-01 06:00:00");
  CHECK(c.next(six - 1ns) == six);
  CHECK(c.next(six) == six + 24h);
  CHECK(c.next(six + 1ns) == six + 24h);
  const auto quarters = cron("*/15 * * * *", "UTC");
  CHECK(quarters.next(six - 1ns) == six);
  CHECK(quarters.next(six) == six + 15min);
  CHECK(quarters.next(six + 1ns) == six + 15min);
}

TEST_CASE("a time of day may have seconds and fractions of a second") {
  const auto c = daily(23h + 59min + 59s + 999999999ns, "UTC");
  const auto midnight = utc("2026-05-02 00:00:00");
  CHECK(c.next(midnight - 2ns) == midnight - 1ns);
  CHECK(c.next(midnight - 1ns) == midnight - 1ns + 24h);
  CHECK(points(daily(2h + 30min + 15s, "Europe/Berlin"), "2026-10-24 12:00:00", 2) ==
        "2026-10-25 00:30+15000000000ns, 2026-10-26 01:30+15000000000ns");
}

TEST_CASE("times in the hour that is skipped count at the moment when the clocks are set") {
  // In Berlin 02:00 became 03:00 on 29 March 2026, at 01:00 UTC.
  CHECK(points(daily(1h + 59min, "Europe/Berlin"), "2026-03-28 12:00:00", 2) ==
        "2026-03-29 00:59, 2026-03-29 23:59");
  CHECK(points(daily(2h, "Europe/Berlin"), "2026-03-28 12:00:00", 2) == "2026-03-29 01:00, 2026-03-30 00:00");
  CHECK(points(daily(2h + 30min, "Europe/Berlin"), "2026-03-27 12:00:00", 3) ==
        "2026-03-28 01:30, 2026-03-29 01:00, 2026-03-30 00:30");
  CHECK(points(daily(2h + 59min + 59s, "Europe/Berlin"), "2026-03-28 12:00:00", 1) == "2026-03-29 01:00");
  CHECK(points(daily(3h, "Europe/Berlin"), "2026-03-28 12:00:00", 2) == "2026-03-29 01:00, 2026-03-30 01:00");
  CHECK(points(daily(3h + 1min, "Europe/Berlin"), "2026-03-28 12:00:00", 1) == "2026-03-29 01:01");
}

TEST_CASE("times in the hour that occurs twice count the first time") {
  // In Berlin 03:00 became 02:00 on 25 October 2026, at 01:00 UTC.
  CHECK(points(daily(2h, "Europe/Berlin"), "2026-10-24 12:00:00", 2) == "2026-10-25 00:00, 2026-10-26 01:00");
  CHECK(points(daily(2h + 30min, "Europe/Berlin"), "2026-10-23 12:00:00", 3) ==
        "2026-10-24 00:30, 2026-10-25 00:30, 2026-10-26 01:30");
  // The same when the search starts within the repeated hour.
  CHECK(points(daily(2h + 30min, "Europe/Berlin"), "2026-10-25 01:10:00", 1) == "2026-10-26 01:30");
  CHECK(points(daily(3h, "Europe/Berlin"), "2026-10-24 12:00:00", 1) == "2026-10-25 02:00");
}

TEST_CASE("the zone's clocks are set at midnight, by half an hour, or by a day") {
  // In Havana 00:00 became 01:00 on 8 March 2026, at 05:00 UTC.
  CHECK(points(daily(0s, "America/Havana"), "2026-03-07 12:00:00", 2) ==
        "2026-03-08 05:00, 2026-03-09 04:00");
  CHECK(points(daily(15min, "America/Havana"), "2026-03-07 12:00:00", 2) ==
        "2026-03-08 05:00, 2026-03-09 04:15");
  // On Lord Howe Island 02:00 became 01:30 on 5 April 2026, at 15:00 UTC of the day before.
  CHECK(points(daily(1h + 45min, "Australia/Lord_Howe"), "2026-04-03 16:00:00", 3) ==
        "2026-04-04 14:45, 2026-04-05 15:15, 2026-04-06 15:15");
  // Apia had no 30 December 2011.
  CHECK(points(daily(12h, "Pacific/Apia"), "2011-12-29 00:00:00", 3) ==
        "2011-12-29 22:00, 2011-12-30 10:00, 2011-12-30 22:00");
  CHECK(points(daily(0s, "Pacific/Apia"), "2011-12-29 00:00:00", 3) ==
        "2011-12-29 10:00, 2011-12-30 10:00, 2011-12-31 10:00");
}

TEST_CASE("weekdays are in the zone's local time") {
  // 2026-05-01 is a Friday.
  CHECK(points(on_weekdays(9h, "UTC"), "2026-04-30 12:00:00", 3) ==
        "2026-05-01 09:00, 2026-05-04 09:00, 2026-05-05 09:00");
  // Monday, 08:00 in Tokyo is Sunday, 23:00 UTC.
  CHECK(points(on_weekdays(8h, "Asia/Tokyo"), "2026-05-01 12:00:00", 2) ==
        "2026-05-03 23:00, 2026-05-04 23:00");
  CHECK(points(weekly({Sunday, Saturday}, 9h, "UTC"), "2026-04-30 12:00:00", 3) ==
        "2026-05-02 09:00, 2026-05-03 09:00, 2026-05-09 09:00");
  CHECK(points(weekly({weekday(7)}, 9h, "UTC"), "2026-04-30 12:00:00", 1) == "2026-05-03 09:00");
}

TEST_CASE("times of day and days that do not exist are refused with a message") {
  CHECK(refusal([] { daily(-1ns, "UTC"); }) ==
        "rondo: a time of day must be at least 0 and less than 24 hours, not -1ns");
  CHECK(refusal([] { daily(24h, "UTC"); }) ==
        "rondo: a time of day must be at least 0 and less than 24 hours, not 86400000000000ns");
  CHECK(refusal([] { on_weekdays(hours::max(), "UTC"); }) ==
        "rondo: a time of day must be at least 0 and less than 24 hours, not 9223372036854775807ns");
  CHECK(refusal([] { weekly({}, 1h, "UTC"); }) == "rondo: weekly() needs a day of the week");
  CHECK(refusal([] { weekly({Monday, weekday(8)}, 1h, "UTC"); }) == "rondo: 8 is not a day of the week");
  CHECK(refusal([] { daily(24h - 1ns, "UTC"); }) == "accepted");
}

TEST_CASE("the ends of the clock") {
  const auto c = daily(12h, "UTC");
  CHECK(c.next(wall_time::max()) == std::nullopt);
  CHECK(c.next(wall_time::max() - 1ns) == std::nullopt);
  CHECK(text(c.next(utc("2262-04-11 13:00:00"))) == "none");  // the clock ends on the 11th, at 23:47
  CHECK(text(c.next(utc("2262-04-11 11:00:00"))) == "2262-04-11 12:00");
  const auto first = c.next(wall_time::min());
  REQUIRE(first);
  CHECK(*first - wall_time::min() <= 72h);
  const auto hourly = cron("0 * * * *", "Pacific/Auckland");
  CHECK(hourly.next(wall_time::max()) == std::nullopt);
  REQUIRE(hourly.next(wall_time::min()));
  CHECK(text(cron("0 * * * *", "UTC").next(utc("2262-04-11 22:00:00"))) == "2262-04-11 23:00");
  CHECK(text(cron("0 * * * *", "UTC").next(utc("2262-04-11 23:00:00"))) == "none");
  // The clock begins 43 s after 0:12, which is not one of its times.
  const auto within_first_minute = daily(12min, "UTC").next(wall_time::min());
  REQUIRE(within_first_minute);
  CHECK(*within_first_minute < wall_time::min() + 72h);
  const auto west = daily(12h, "Pacific/Honolulu");
  CHECK(west.next(wall_time::max()) == std::nullopt);
  CHECK(west.next(wall_time::min()).has_value());
}

}  // namespace calendar_days
