// Zones by name, and the points around their changes compared with a simpler calculation.
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <date/tz.h>

#include "calendar/almanac.hpp"

namespace calendar_zones {

using namespace calendar_test;

TEST_CASE("an unknown zone is refused by name") {
  CHECK(refusal([] { daily(1h, "Europe/Bielefeld"); }) ==
        "rondo: the time zone \"Europe/Bielefeld\" is unknown");
  CHECK(refusal([] { daily(1h, ""); }) == "rondo: the time zone \"\" is unknown");
  CHECK(refusal([] { cron("0 0 * * *", "../../etc/passwd"); }) ==
        "rondo: the time zone \"../../etc/passwd\" is unknown");
  CHECK(refusal([] { daily(1h, std::string("UTC\0\n\xff", 6)); }) ==
        "rondo: the time zone \"UTC\\x00\\x0a\\xff\" is unknown");
  CHECK(refusal([] { daily(1h, std::string(1000, 'x')); }) ==
        "rondo: the time zone \"" + std::string(100, 'x') + "\"... is unknown");
}

/// The minutes at which the zone's clock first reaches a time of day: the points of daily(`time_of_day`), found the
/// slow way, by trying every minute of some days.
std::vector<wall_time> slowly(const date::time_zone& zone, std::chrono::minutes time_of_day, wall_time from,
                              wall_time to) {
  const auto shown = [&](wall_time t) {
    const auto s = std::chrono::floor<std::chrono::seconds>(t);
    return s.time_since_epoch() + zone.get_info(s).offset;
  };
  std::vector<wall_time> result;
  auto furthest = shown(from - 48h);
  for (wall_time t = from - 48h; t <= to; t += 1min) {
    const auto now = shown(t);
    if (now <= furthest && t != from - 48h) continue;
    // Whether some day's time lies in (furthest, now].
    const auto day = std::chrono::floor<date::days>(now - time_of_day);
    if (t > from && day + time_of_day > furthest) result.push_back(t);
    furthest = now;
  }
  return result;
}

TEST_CASE(
    "around each change of some zones, each half hour counts once, when the clock reaches or passes it") {
  for (const char* const name :
       {"Europe/Berlin", "America/New_York", "America/Havana", "Australia/Lord_Howe", "Africa/Casablanca",
        "America/Santiago", "Antarctica/Troll", "Asia/Kathmandu"}) {
    const std::string zone_name = name;
    CAPTURE(zone_name);
    const date::time_zone& zone = *date::locate_zone(name);
    for (auto t = utc("2026-01-01 00:00:00"); t < utc("2027-01-01 00:00:00");) {
      const auto info = zone.get_info(std::chrono::floor<std::chrono::seconds>(t));
      if (info.end > std::chrono::floor<std::chrono::seconds>(utc("2027-01-01 00:00:00"))) break;
      const wall_time change = info.end;
      for (std::chrono::minutes of_day = 0min; of_day != 24h; of_day += 30min) {
        CAPTURE(of_day.count());
        const auto c = daily(of_day, name);
        const auto expected = slowly(zone, of_day, change - 30h, change + 30h);
        std::vector<wall_time> found;
        for (auto p = c.next(change - 30h); p && *p <= change + 30h; p = c.next(*p)) found.push_back(*p);
        REQUIRE(found == expected);
      }
      t = change;
    }
  }
}

}  // namespace calendar_zones
