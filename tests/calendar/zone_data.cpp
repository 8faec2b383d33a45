// Updates of the zone data while a process runs.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "calendar/almanac.hpp"
#include "calendar/calendar_access.hpp"
#include "calendar/zone_files.hpp"
#include "calendar/zone_data.hpp"

namespace calendar_zone_data {

using namespace calendar_test;

/// A zone's data before and after an update.
struct update {
  const char* before;
  const char* after;
};
constexpr update an_hour_back{.before = "AAA-1",
                              .after = "AAA0"};  // 09:00 is at 08:00 UTC, and then at 09:00
constexpr update an_hour_on{.before = "AAA0", .after = "AAA-1"};

/// The runs of a timer of "Test/City", scheduled at midnight of 1 May, if the data are updated at that time.
std::string runs_of(const std::string& expression, const update& rules, const std::string& refreshed,
                    const std::string& until) {
  zone_folder folder;
  folder.add("Test/City", rules.before);
  refresh_zone_data();
  place p("2026-05-01 00:00:00");
  p.timers->schedule(cron(expression, "Test/City"), p.noting("r"));
  p.advance_to(refreshed);
  folder.add("Test/City", rules.after);
  CHECK(refresh_zone_data());
  p.advance_to(until);
  return p.ran.take();
}

TEST_CASE("a timer that waits follows new rules, and each of its points is run once") {
  const auto runs = [](const update& rules, const std::string& refreshed) {
    return runs_of("0 9 * * *", rules, refreshed, "2026-05-02 12:00:00");
  };
  CHECK(runs(an_hour_back, "2026-05-01 07:30:00") == "r@2026-05-01 09:00 r@2026-05-02 09:00");
  // It has run at the old time: not again at the new one.
  CHECK(runs(an_hour_back, "2026-05-01 08:30:00") == "r@2026-05-01 08:00 r@2026-05-02 09:00");
  CHECK(runs(an_hour_back, "2026-05-01 09:30:00") == "r@2026-05-01 08:00 r@2026-05-02 09:00");
  CHECK(runs(an_hour_on, "2026-05-01 07:30:00") == "r@2026-05-01 08:00 r@2026-05-02 08:00");
  // The new time has passed, and the old one has not come: at once.
  CHECK(runs(an_hour_on, "2026-05-01 08:30:00") == "r@2026-05-01 08:30 r@2026-05-02 08:00");
  CHECK(runs(an_hour_on, "2026-05-01 09:30:00") == "r@2026-05-01 09:00 r@2026-05-02 08:00");
}

TEST_CASE("a point that is kept with its local time is at that time by the new rules, as in rondo-durable") {
  using detail::calendar_access;
  using detail::zoned_point;
  zone_folder folder;
  const auto use = [&](const char* rule) {
    folder.add("Test/City", rule);
    refresh_zone_data();
  };
  const auto next = [](const calendar& c, const char* after) {
    return *calendar_access::next(c, utc(after));
  };
  use("AAA-1BBB,M3.5.0,M10.5.0/3");
  const calendar nightly = cron("30 2 * * *", "Test/City");
  const zoned_point summer{utc("2026-05-02 00:30:00"), 2h};
  CHECK(next(nightly, "2026-05-01 12:00:00") == summer);
  CHECK(calendar_access::present(nightly, summer) == summer);
  const zoned_point skipped{utc("2026-03-29 01:00:00"), 90min};
  CHECK(next(nightly, "2026-03-28 12:00:00") == skipped);
  CHECK(calendar_access::present(nightly, skipped) == skipped);
  const zoned_point first_pass{utc("2026-10-25 00:30:00"), 2h};
  CHECK(next(nightly, "2026-10-24 12:00:00") == first_pass);
  CHECK(calendar_access::present(nightly, {utc("2026-10-25 01:30:00"), 1h}) == first_pass);
  const calendar precise = daily(2h + 1ms, "Test/City");
  const zoned_point at_1ms{utc("2026-05-02 00:00:00") + 1ms, 2h};
  CHECK(next(precise, "2026-05-01 12:00:00") == at_1ms);
  const calendar skipped_1ms = daily(2h + 30min + 1ms, "Test/City");
  CHECK(next(skipped_1ms, "2026-03-28 12:00:00") == skipped);
  CHECK(calendar_access::present(skipped_1ms, skipped) == skipped);

  use("AAA-1");
  CHECK(calendar_access::present(nightly, summer) == zoned_point{utc("2026-05-02 01:30:00"), 1h});
  CHECK(calendar_access::present(nightly, skipped) == zoned_point{utc("2026-03-29 01:30:00"), 1h});
  CHECK(calendar_access::present(precise, at_1ms) == zoned_point{utc("2026-05-02 01:00:00") + 1ms, 1h});
  const zoned_point no_more{utc("2026-03-29 01:30:00") + 1ms, 1h};
  CHECK(calendar_access::present(skipped_1ms, skipped) == no_more);
  CHECK(*skipped_1ms.next(no_more.at) == utc("2026-03-30 01:30:00") + 1ms);
}

TEST_CASE("elapsed time, and points of one's own, have no local times that could be kept") {
  using detail::calendar_access;
  const wall_time noon = utc("2026-05-01 12:00:00");
  const calendar hourly = cron("0 * * * *", "UTC");
  const calendar own = calendar_of([](wall_time after) { return after + 1h; });
  for (const calendar& c : {hourly, own}) {
    CHECK(calendar_access::next(c, noon) == detail::zoned_point{noon + 1h});
    CHECK(calendar_access::present(c, {noon + 1h}) == detail::zoned_point{noon + 1h});
  }
}

TEST_CASE("points that an update moves over others are neither lost nor repeated") {
  // 10:00 of the old rules is 09:00 of the new ones, which has been run.
  CHECK(runs_of("0 9,10 * * *", an_hour_back, "2026-05-01 08:30:00", "2026-05-01 12:00:00") ==
        "r@2026-05-01 08:00 r@2026-05-01 10:00");
  // 09:00 has passed, and 10:00 is when it was to be.
  CHECK(runs_of("0 9,10 * * *", an_hour_on, "2026-05-01 08:30:00", "2026-05-01 12:00:00") ==
        "r@2026-05-01 08:30 r@2026-05-01 09:00");
}

TEST_CASE("an expression of elapsed time neither pauses nor runs twice at an update") {
  for (const update& rules : {an_hour_back, an_hour_on})
    CHECK(runs_of("*/30 * * * *", rules, "2026-05-01 00:45:00", "2026-05-01 02:00:00") ==
          "r@2026-05-01 00:30 r@2026-05-01 01:00 r@2026-05-01 01:30 r@2026-05-01 02:00");
}

TEST_CASE("an expression of elapsed time goes on from the update, and its points do not count again") {
  // The hour from 09:00 has been run, and by the new rules it begins again.
  CHECK(runs_of("*/20 9 * * *", an_hour_back, "2026-05-01 10:30:00", "2026-05-01 12:00:00") ==
        "r@2026-05-01 08:00 r@2026-05-01 08:20 r@2026-05-01 08:40");
  const update half_an_hour{.before = "AAA0", .after = "AAA-0:30"};
  CHECK(runs_of("0 * * * *", half_an_hour, "2026-05-01 01:45:00", "2026-05-01 03:00:00") ==
        "r@2026-05-01 01:00 r@2026-05-01 02:30");
}

TEST_CASE(
    "a clock that is set back a little beside an update repeats no point of an expression of elapsed time") {
  const update same_offset{.before = "AAA0", .after = "BBB0"};
  const auto runs = [&](const char* expression, const char* first, const char* then, bool set_first) {
    zone_folder folder;
    folder.add("Test/City", same_offset.before);
    refresh_zone_data();
    place p("2026-05-01 11:00:00");
    p.timers->schedule(cron(expression, "Test/City"), p.noting("r"));
    p.advance_to(first);
    folder.add("Test/City", same_offset.after);
    if (set_first) p.wall.set(utc(then));
    CHECK(refresh_zone_data());
    if (!set_first) p.wall.set(utc(then));
    p.advance_to("2026-05-01 13:30:00");
    return p.ran.take();
  };
  CHECK(runs("0 * * * *", "2026-05-01 12:05:00", "2026-05-01 10:05:00", true) ==
        "r@2026-05-01 12:00 r@2026-05-01 13:00");
  CHECK(runs("0 */12 * * *", "2026-05-01 14:00:00", "2026-05-01 10:30:00", false) == "r@2026-05-01 12:00");
}

TEST_CASE("a timer that has not run yet runs at a point that is new after an update") {
  zone_folder folder;
  folder.add("Test/City", an_hour_back.before);
  refresh_zone_data();
  place p("2026-05-01 08:30:00");
  p.timers->schedule(daily(9h, "Test/City"), p.noting("r"));
  p.time.advance(10min);
  folder.add("Test/City", an_hour_back.after);
  refresh_zone_data();
  p.advance_to("2026-05-02 12:00:00");
  CHECK(p.ran.take() == "r@2026-05-01 09:00 r@2026-05-02 09:00");
}

TEST_CASE("updates one after another take effect from the last run on, each of its own") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  refresh_zone_data();
  place p("2026-05-01 00:00:00");
  p.timers->schedule(daily(9h, "Test/City"), p.noting("r"));
  p.advance_to("2026-05-01 08:10:00");
  for (const char* rule : {"AAA0", "AAA2", "AAA-3", "AAA-1"}) {
    folder.add("Test/City", rule);
    CHECK(refresh_zone_data());
    p.time.advance(10min);
  }
  p.advance_to("2026-05-02 12:00:00");
  CHECK(p.ran.take() == "r@2026-05-01 08:00 r@2026-05-02 08:00");
}

TEST_CASE("a run between two updates counts with the rules that it had") {
  zone_folder folder;
  folder.add("Test/City", "AAA0");
  refresh_zone_data();
  place p("2026-05-01 00:00:00");
  p.timers->schedule(daily(9h, "Test/City"), p.noting("r"));
  folder.add("Test/City", "AAA-1");
  refresh_zone_data();
  p.advance_to("2026-05-01 08:30:00");
  folder.add("Test/City", "AAA0");
  refresh_zone_data();
  p.advance_to("2026-05-02 12:00:00");
  CHECK(p.ran.take() == "r@2026-05-01 08:00 r@2026-05-02 09:00");
}

TEST_CASE("an update during a run counts from that run") {
  zone_folder folder;
  folder.add("Test/City", an_hour_back.before);
  refresh_zone_data();
  place p("2026-05-01 00:00:00");
  bool updated = false;
  p.timers->schedule(daily(9h, "Test/City"), [&](const wall_firing& f) {
    if (!std::exchange(updated, true)) {
      folder.add("Test/City", an_hour_back.after);
      CHECK(refresh_zone_data());
    }
    p.ran.add(text(f.wall_due));
  });
  p.advance_to("2026-05-02 12:00:00");
  CHECK(p.ran.take() == "2026-05-01 08:00 2026-05-02 09:00");
}

TEST_CASE("before a refresh, each zone has the state of the first request") {
  zone_folder folder;
  folder.add("Test/Asked", "AAA-1");
  folder.add("Test/Not_asked", "AAA-1");
  CHECK(refresh_zone_data());
  const calendar asked = daily(9h, "Test/Asked");
  folder.add("Test/Asked", "AAA0");
  folder.add("Test/Not_asked", "AAA0");
  folder.add("Test/New", "AAA0");
  const std::string midnight = "2026-05-01 00:00:00";
  CHECK(points(asked, midnight, 1) == "2026-05-01 08:00");
  CHECK(points(daily(9h, "Test/Not_asked"), midnight, 1) == "2026-05-01 08:00");
  CHECK(refusal([] { daily(9h, "Test/New"); }) == "rondo: the time zone \"Test/New\" is unknown");
  CHECK(refresh_zone_data());
  CHECK(points(asked, midnight, 1) == "2026-05-01 09:00");
  CHECK(points(daily(9h, "Test/Not_asked"), midnight, 1) == "2026-05-01 09:00");
  CHECK(points(daily(9h, "Test/New"), midnight, 1) == "2026-05-01 09:00");
  CHECK_FALSE(refresh_zone_data());
}

TEST_CASE("the version is that of the data in use") {
  zone_folder folder;
  CHECK(zone_data_version() == "");
  folder.write("tzdata.zi", "# version 2026f\n");
  folder.add("Test/City", "AAA0");
  CHECK(zone_data_version() == "");
  CHECK(refresh_zone_data());
  CHECK(zone_data_version() == "2026f");
  folder.write("tzdata.zi", "# version 2026g\n");
  CHECK_FALSE(refresh_zone_data());  // no zone has changed
  CHECK(zone_data_version() == "2026g");
}

TEST_CASE("a file that cannot be read concerns only its zone") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  std::filesystem::create_symlink(".", folder.path() / "itself");
  folder.write("Test/Unreadable", "TZif2");
  CHECK(refresh_zone_data());
  CHECK_NOTHROW(daily(9h, "Test/City"));
  CHECK_THROWS_WITH_AS(daily(9h, "Test/Unreadable"),
                       "rondo: the time zone \"Test/Unreadable\" cannot be read: its file ends too early",
                       std::runtime_error);
}

TEST_CASE("a file whose reading fails, as from a broken disk, concerns only its zone") {
  if (!std::filesystem::exists("/proc/self/mem")) {  // nothing is at its first address
    MESSAGE("this system has no file whose reading fails");
    return;
  }
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  std::filesystem::create_symlink("/proc/self/mem", folder.path() / "Test/Broken");
  CHECK(refresh_zone_data());
  CHECK_NOTHROW(daily(9h, "Test/City"));
  CHECK_THROWS_WITH_AS(daily(9h, "Test/Broken"),
                       "rondo: the time zone \"Test/Broken\" cannot be read: its file is empty or unreadable",
                       std::runtime_error);
}

TEST_CASE("an update in which the file of a zone in use is none of a zone changes nothing") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  refresh_zone_data();
  const calendar used = daily(9h, "Test/City");
  folder.write("Test/City", "TZ");
  folder.add("Test/Other", "AAA-3");
  CHECK_THROWS_WITH_AS(refresh_zone_data(),
                       "rondo: the time zone \"Test/City\" cannot be read: its file ends too early",
                       std::runtime_error);
  CHECK_NOTHROW(daily(9h, "Test/City"));
  CHECK(points(daily(9h, "Test/Other"), "2026-05-01 00:00:00", 1) == "2026-05-01 09:00");
  folder.add("Test/City", "AAA-2");
  CHECK(refresh_zone_data());
  CHECK(points(used, "2026-05-01 00:00:00", 1) == "2026-05-01 07:00");
}

TEST_CASE("a zone that an update removes goes on where it is in use, and is refused elsewhere") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  refresh_zone_data();
  const calendar used = daily(9h, "Test/City");
  folder.remove("Test/City");
  CHECK(refresh_zone_data());
  CHECK(points(used, "2026-05-01 00:00:00", 1) == "2026-05-01 08:00");
  CHECK(refusal([] { daily(9h, "Test/City"); }) == "rondo: the time zone \"Test/City\" is unknown");
  folder.add("Test/City", "AAA-2");
  CHECK(refresh_zone_data());
  CHECK(points(used, "2026-05-01 00:00:00", 1) == "2026-05-01 07:00");
}

TEST_CASE("an update that cannot be read changes nothing") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  folder.add("Test/Unused", "AAA-1");
  refresh_zone_data();
  const calendar used = daily(9h, "Test/City");
  folder.add("Test/City", "AAA");
  folder.add("Test/Unused", "AAA-2");
  CHECK_THROWS_WITH_AS(refresh_zone_data(),
                       "rondo: the time zone \"Test/City\" cannot be read: its file ends with a rule that is "
                       "none of POSIX",
                       std::runtime_error);
  CHECK(points(used, "2026-05-01 00:00:00", 1) == "2026-05-01 08:00");
  CHECK(points(daily(9h, "Test/Unused"), "2026-05-01 00:00:00", 1) == "2026-05-01 08:00");
  folder.add("Test/City", "AAA-2");
  folder.add("Test/Broken", "AAA");
  CHECK(refresh_zone_data());
  CHECK(points(used, "2026-05-01 00:00:00", 1) == "2026-05-01 07:00");
  CHECK(points(daily(9h, "Test/Unused"), "2026-05-01 00:00:00", 1) == "2026-05-01 07:00");
  CHECK_THROWS_WITH_AS(
      daily(9h, "Test/Broken"),
      "rondo: the time zone \"Test/Broken\" cannot be read: its file ends with a rule that is none "
      "of POSIX",
      std::runtime_error);
}

TEST_CASE("a message about the folder of the zones is one line, whatever the folder's name") {
  zone_folder folder;
  const std::string before = folder.path().string();
  ::setenv("TZDIR", (before + "/no\nwhere").c_str(), 1);
  std::string message;
  try {
    refresh_zone_data();
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  ::setenv("TZDIR", before.c_str(), 1);
  CHECK(message.starts_with("rondo: the time zone database cannot be read: \""));
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("a refresh that runs out of memory while it moves timers is completed by the next one") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  refresh_zone_data();
  int left = 2;
  const auto moving = rondo::detail::on_new_zone_data([&] {
    if (--left > 0) throw std::bad_alloc();
  });
  folder.add("Test/City", "AAA0");
  CHECK_THROWS_AS(refresh_zone_data(), std::bad_alloc);
  CHECK(refresh_zone_data());
  CHECK(left == 0);
  CHECK_FALSE(refresh_zone_data());
  CHECK(left == 0);
}

TEST_CASE("calendars are asked, and timers run, while the data are updated") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  refresh_zone_data();
  const calendar c = daily(9h, "Test/City");
  std::atomic<bool> done = false;
  std::thread asking([&] {
    const wall_time midnight = utc("2026-05-01 00:00:00");
    while (!done) {
      const auto hour = (*c.next(midnight) - midnight) / 1h;
      if (hour != 8 && hour != 7) done = true;
    }
  });
  place p("2026-05-01 00:00:00");
  p.timers->schedule(c, p.noting("r"));
  std::thread running([&] {
    for (int day = 0; day != 60; ++day) {
      const auto before = p.runs.size();
      p.time.advance(24h);
      if (p.runs.size() - before > 2) done = true;
    }
  });
  for (int i = 0; i != 50; ++i) {
    folder.add("Test/City", i % 2 == 0 ? "AAA-2" : "AAA-1");
    CHECK(refresh_zone_data());
  }
  running.join();
  CHECK_FALSE(done.exchange(true));
  asking.join();
  p.time.advance(48h);  // if a day has passed while an update moved the timer, it is late by that
  std::uint64_t points = 0;
  for (const wall_firing& f : p.runs) points += 1 + f.missed;
  CHECK(points == 62);  // each once
}

}  // namespace calendar_zone_data
