// Zones by name, and the points around their changes compared with a simpler calculation.
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "calendar/almanac.hpp"
#include "calendar/zone_data.hpp"
#include "calendar/zone_files.hpp"

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

TEST_CASE("the text of the database says what has replaced an old name") {
  const auto newer = [](const std::string& old) {
    std::istringstream text(
        "# version 2026f\nR E 1996 o - O lastSun 1u 0 -\nZ Europe/London -0:1:15 - LMT 1847 D\n0 G GB%sT\n"
        "L Europe/London GB\nL Europe/London GB-Eire\nZ GB/X L Y\nL  Asia/Kolkata\tAsia/Calcutta\nL "
        "Etc/UTC\n");
    return rondo::detail::newer_name(text, old);
  };
  CHECK(newer("GB") == "Europe/London");
  CHECK(newer("GB-Eire") == "Europe/London");
  CHECK(newer("Asia/Calcutta") == "Asia/Kolkata");
  for (const char* none :
       {"Europe/London", "GB-", "B", "", "L", "Y", "LMT", "L Europe/London GB", "Etc/UTC"}) {
    CAPTURE(none);
    CHECK(newer(none) == "");
  }
}

TEST_CASE(
    "each old name is known or, since Debian 13, refused with the newer one and the package to install") {
  std::ifstream text("/usr/share/zoneinfo/tzdata.zi");
  if (!text) {
    MESSAGE("this system has no text of the database");
    return;
  }
  int old_names = 0;
  for (std::string kind, newer, old, line; std::getline(text, line);) {
    std::istringstream fields(line);
    if (!(fields >> kind >> newer >> old) || kind != "L") continue;
    ++old_names;
    CAPTURE(old);
    const std::string refused = refusal([&] { daily(1h, old); });
    if (refused == "accepted") continue;
    CHECK(refused == "rondo: the time zone \"" + old + "\" is unknown; it is an old name of \"" + newer +
                         "\", which Debian has in the package tzdata-legacy, since Debian 13");
    CHECK_NOTHROW(daily(1h, newer));
  }
  CHECK(old_names > 100);
}

TEST_CASE("the text of the database says its version") {
  const auto version = [](const char* in) {
    std::istringstream text(in);
    return rondo::detail::version_in(text);
  };
  CHECK(version("# version 2026f\nR E 1996 o\n") == "2026f");
  for (const char* none : {"", "#", "# redo\n", "R E 1996 o", "# versions 2026f"}) CHECK(version(none) == "");
  const std::string here = zone_data_version();
  if (std::ifstream("/usr/share/zoneinfo/tzdata.zi")) CHECK(here.starts_with("20"));
}

TEST_CASE("TZ names a zone in several ways, and other values are refused") {
  using rondo::detail::zone_in;
  CHECK(zone_in("Europe/Berlin") == "Europe/Berlin");
  CHECK(zone_in(":Europe/Berlin") == "Europe/Berlin");
  CHECK(zone_in(":/usr/share/zoneinfo/Europe/Berlin") == "Europe/Berlin");
  CHECK(zone_in("") == "UTC");
  CHECK(zone_in("UTC") == "UTC");
  for (const char* none : {"CET-1CEST", "Nowhere", "/etc/nothing"}) {
    CAPTURE(none);
    CHECK_THROWS_WITH_AS(zone_in(none),
                         ("rondo: the environment variable TZ is \"" + std::string(none) +
                          "\", which is no zone of the database")
                             .c_str(),
                         std::runtime_error);
  }
}

TEST_CASE("the machine's zone is one for calendars") {
  try {
    CHECK_NOTHROW(daily(1h, current_zone()));
  } catch (const std::runtime_error& e) {
    MESSAGE(e.what());  // not every machine says
  }
}

TEST_CASE("UTC needs no data, and is as the zone of that name") {
  CHECK(&rondo::detail::find_zone("UTC") == &rondo::detail::utc());
  for (const char* expression : {"30 2 * * *", "*/20 * * * *", "0 0 29 2 *"})
    for (const char* from : {"1969-12-31 23:59:59", "2026-03-29 00:30:00", "2261-12-31 00:00:00"})
      CHECK(points(cron(expression, "UTC"), from, 5) == points(cron(expression, "Etc/UTC"), from, 5));
}

TEST_CASE("(in a process of its own) a zone is refused for lack of data" * doctest::skip()) {
  try {
    daily(1h, "UTC");
  } catch (const std::runtime_error&) {
    std::cout << "runtime_error <for UTC>" << std::endl;
    return;
  }
  try {
    daily(1h, "Europe/Berlin");
  } catch (const std::runtime_error& e) {
    std::cout << "runtime_error <" << e.what() << '>' << std::endl;
  }
}

TEST_CASE("missing and empty data are reported in one line") {
  // Hides a folder from a process that has not read the data.
  const auto refused_without = [](const std::string& folder) {
    const std::string command = "unshare --mount --map-root-user sh -c 'mount -t tmpfs none " + folder +
                                " && exec \"$0\" --no-skip \"-tc=(in a process of its own) a zone*\"' '" +
                                std::filesystem::read_symlink("/proc/self/exe").string() + "' 2>&1";
    std::string printed;
    FILE* const child = ::popen(command.c_str(), "r");
    REQUIRE(child != nullptr);
    for (std::array<char, 4096> part; std::fgets(part.data(), part.size(), child) != nullptr;)
      printed += part.data();
    if (::pclose(child) != 0) {
      MESSAGE("data cannot be hidden here: " << printed);
      return std::string();
    }
    const auto begin = printed.find("runtime_error <"), end = printed.find('>', begin);
    return printed.substr(begin, end == std::string::npos ? end : end + 1 - begin);
  };
  const std::string missing = refused_without("/usr/share");
  if (missing.empty()) return;
  CAPTURE(missing);
  CHECK(missing.starts_with("runtime_error <rondo: the time zone database cannot be read: "));
  CHECK(missing.ends_with(" (Debian has it in the package tzdata)>"));
  CHECK(missing.find('\n') == std::string::npos);
  CHECK(refused_without("/usr/share/zoneinfo") ==
        "runtime_error <rondo: the time zone database is empty (Debian has it in the package tzdata)>");
}

TEST_CASE("the next point is later, also where a clock is set back twice within an hour") {
  zone_folder folder;
  // At 10:00 UTC from 10:00 to 09:00, and at 11:30 from 10:30 to 09:45.
  const auto at = [](const char* t) {
    return std::chrono::floor<std::chrono::seconds>(utc(t)).time_since_epoch().count();
  };
  folder.write("Test/Twice",
               zone_file{.types = {0, -3600, -6300},
                         .changes = {{at("2026-05-01 10:00:00"), 1}, {at("2026-05-01 11:30:00"), 2}},
                         .rule = "AAA1:45"}
                   .bytes());
  refresh_zone_data();
  for (const char* time : {"15 10 * * *", "15,50 9,10 * * *", "0 10 * * *"}) {
    const auto c = cron(time, "Test/Twice");
    for (wall_time t = utc("2026-05-01 08:00:00"); t < utc("2026-05-01 14:00:00"); t += 5min) {
      CAPTURE(text(t));
      CHECK(*c.next(t) > t);
    }
  }
}

/// The minutes at which the zone's clock first reaches a time of day: the points of daily(`time_of_day`), found the
/// slow way, by trying every minute of some days.
std::vector<wall_time> slowly(const rondo::detail::zone_offsets& zone, std::chrono::minutes time_of_day,
                              wall_time from, wall_time to) {
  const auto shown = [&](wall_time t) {
    const auto s = std::chrono::floor<std::chrono::seconds>(t);
    return s.time_since_epoch() + zone.at(s).offset;
  };
  std::vector<wall_time> result;
  auto furthest = shown(from - 48h);
  for (wall_time t = from - 48h; t <= to; t += 1min) {
    const auto now = shown(t);
    if (now <= furthest && t != from - 48h) continue;
    // Whether some day's time lies in (furthest, now].
    const auto day = std::chrono::floor<std::chrono::days>(now - time_of_day);
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
    const rondo::detail::zone_offsets& zone = rondo::detail::find_zone(zone_name).offsets();
    for (auto t = utc("2026-01-01 00:00:00"); t < utc("2027-01-01 00:00:00");) {
      const auto info = zone.at(std::chrono::floor<std::chrono::seconds>(t));
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
