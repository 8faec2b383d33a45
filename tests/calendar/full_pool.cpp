// Timers whose runs an executor drops.
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calendar/almanac.hpp"
#include "calendar/zone_files.hpp"

namespace calendar_full_pool {

using namespace calendar_test;

/// A place whose executor runs jobs at once, or drops them while it is full, or keeps them. Notes rejected runs as
/// "due#run+lateness".
struct full_place {
  explicit full_place(const std::string& start) {
    rondo::options o;
    o.run_on = [this](job j) {
      if (keeps)
        kept.push_back(std::move(j));
      else if (!full)
        j();
    };
    o.on_rejected = [this](const firing& f) {
      const wall_time due = p->wall.now() - (p->time.now() - f.due);
      rejected.add(text(due) + '#' + std::to_string(f.run) + "+" + std::to_string(f.lateness / 1s) + 's');
      if (at_rejection) at_rejection();
    };
    p.emplace(start, std::move(o));
  }

  bool full = true;
  bool keeps = false;
  std::vector<job> kept;
  journal rejected;
  std::function<void()> at_rejection;
  std::optional<place> p;
};

TEST_CASE("each point whose run a full pool drops is reported once, and the oldest runs when there is room") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"), {.name = "minutes"});
  p.advance_to("2026-05-01 12:03:30");
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+0s 2026-05-01 12:02#1+0s 2026-05-01 12:03#1+0s");
  CHECK(p.time.stats().rejected == 3);
  CHECK(p.ran.take() == "");
  full.full = false;
  p.time.advance(1s);
  CHECK(p.ran.take() == "a@2026-05-01 12:03+31000000000ns");
  CHECK(text(p.runs.at(0).wall_due) == "2026-05-01 12:01");
  CHECK(p.runs.at(0).missed == 2);
  CHECK(p.runs.at(0).run == 1);
  p.advance_to("2026-05-01 12:04:10");
  CHECK(p.ran.take() == "a@2026-05-01 12:04");
  CHECK(p.time.stats().rejected == 3);
  full.full = true;
  p.advance_to("2026-05-01 12:05:10");
  CHECK(full.rejected.take() == "2026-05-01 12:05#3+0s");
}

TEST_CASE("the run at a deadline that a full pool drops is reported once, and runs when there is room") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  p.timers->schedule_at(utc("2026-05-01 12:01:00"), p.noting("a"));
  p.time.advance(10min);
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+0s");
  CHECK(p.timers->pending() == 1);
  full.full = false;
  p.time.advance(1s);
  CHECK(p.ran.take() == "a@2026-05-01 12:10+1000000000ns");
  CHECK(p.timers->pending() == 0);
  CHECK(p.time.stats().rejected == 1);
}

TEST_CASE("a check of the clock that a full pool drops is not reported") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  p.timers->schedule_at(utc("2026-05-01 12:10:00"), p.noting("a"));
  p.time.advance(9min);
  p.wall.set_silently(utc("2026-05-01 12:00:00"));
  p.time.advance(5min);
  CHECK(full.rejected.take() == "");
  CHECK(p.time.stats().rejected == 0);
  p.time.advance(6min);
  CHECK(full.rejected.take() == "2026-05-01 12:10#1+0s");
}

TEST_CASE("a point that is reported while late says by how much") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  p.timers->schedule(cron("0 * * * *", "UTC"), p.noting("a"));
  p.wall.set(utc("2026-05-01 14:30:00"));
  p.time.advance(10s);
  CHECK(full.rejected.take() == "2026-05-01 13:00#1+5400s 2026-05-01 14:00#1+1800s");
}

TEST_CASE(
    "a job that is dropped late is reported with the due times of its points, and how late it was "
    "submitted") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  full.keeps = true;
  p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
  p.wall.set(utc("2026-05-01 12:01:07"));
  p.time.advance(30s);
  full.kept.clear();
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+7s");
  p.time.advance(150s);  // the job that is submitted at 12:01:38 is dropped at 12:04:07
  full.kept.clear();
  CHECK(full.rejected.take() == "2026-05-01 12:02#1+0s 2026-05-01 12:03#1+0s 2026-05-01 12:04#1+0s");
  CHECK(p.time.stats().rejected == 4);
}

TEST_CASE("of the points that a clock passes at once, as many are reported as a run counts") {
  full_place full("1970-01-01 00:00:00");
  place& p = *full.p;
  p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
  p.wall.set(utc("2026-05-01 12:00:30"));
  p.time.advance(10s);
  CHECK(p.time.stats().rejected == 1001);
  full.rejected.take();
  p.time.advance(60s);
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+0s");
  full.full = false;
  p.time.advance(1s);
  CHECK(p.runs.at(0).missed == 1000);
}

TEST_CASE("a point is reported once, though the clock is set back and the zone data are updated") {
  zone_folder folder;
  folder.add("Test/City", "AAA0");
  refresh_zone_data();
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  p.timers->schedule(cron("0,1,2,3 12 * * *", "Test/City"), p.noting("a"));
  p.advance_to("2026-05-01 12:02:30");
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+0s 2026-05-01 12:02#1+0s");
  SUBCASE("an update that changes no point of this day") {
    folder.add("Test/City", "AAA0BBB,M7.1.0,M8.1.0");
    CHECK(refresh_zone_data());
  }
  SUBCASE("a clock that is set back") { p.wall.set(utc("2026-05-01 11:59:00")); }
  SUBCASE("and a run") {
    p.wall.set(utc("2026-05-01 12:01:10"));
    full.full = false;
    p.time.advance(1s);
    CHECK(p.ran.take() == "a@2026-05-01 12:01+10000000000ns");
    full.full = true;
  }
  p.advance_to("2026-05-01 12:02:50");
  CHECK(full.rejected.take() == "");
  p.advance_to("2026-05-01 12:03:10");
  CHECK(full.rejected.take().substr(0, 16) == "2026-05-01 12:03");
  CHECK(p.time.stats().rejected == 3);
}

TEST_CASE("points that repeat, because the clock was set back far, are reported again") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  p.timers->schedule(cron("0 * * * *", "UTC"), p.noting("a"));
  p.wall.set(utc("2026-05-01 14:30:00"));
  const auto set_back = [&] { p.wall.set(utc("2026-05-01 08:30:00")); };
  SUBCASE("later") {
    p.time.advance(1s);
    set_back();
    CHECK(full.rejected.take() == "2026-05-01 13:00#1+5400s 2026-05-01 14:00#1+1800s");
  }
  SUBCASE("where one is reported: of the others, none before it comes") {
    full.at_rejection = set_back;
    p.time.advance(1s);
    full.at_rejection = nullptr;
    CHECK(full.rejected.take() == "2026-05-01 13:00#1+5400s");
  }
  p.time.advance(10min);
  CHECK(full.rejected.take() == "");
  p.advance_to("2026-05-01 09:10:00");
  CHECK(full.rejected.take() == "2026-05-01 09:00#1+0s");
}

TEST_CASE("a run that begins where a rejected run is reported counts the other points as missed") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  full.keeps = true;
  p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
  p.wall.set(utc("2026-05-01 12:03:10"));
  p.time.advance(1s);
  full.keeps = full.full = false;
  full.at_rejection = [&p] { std::thread([&p] { p.time.advance(1s); }).join(); };
  full.kept.clear();
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+130s");
  CHECK(p.runs.at(0).missed == 2);
}

TEST_CASE("the scheduler may be destroyed where a rejected run is reported") {
  full_place full("2026-05-01 12:00:00");
  full.keeps = true;
  full.p->timers->schedule(cron("* * * * *", "UTC"), [] {});
  full.p->wall.set(utc("2026-05-01 12:03:10"));
  full.p->time.advance(1s);
  full.at_rejection = [&full] { full.p.reset(); };
  full.kept.clear();
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+130s");
}

TEST_CASE("a timer may end where a rejected run is reported, which is then the last") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  const timer_id id = p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
  SUBCASE("it is cancelled") {
    full.at_rejection = [&p, id] { CHECK(p.timers->cancel(id) == cancel_result::cancelled); };
  }
  SUBCASE("its calendar_timers end") {
    full.at_rejection = [&p] { p.timers.reset(); };
  }
  SUBCASE("the scheduler stops") {
    full.at_rejection = [&p] { CHECK(p.time.stop().size() == 1); };
  }
  p.wall.set(utc("2026-05-01 12:03:10"));
  p.time.advance(1s);
  p.time.advance(1h);
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+130s");
  CHECK(p.time.stats().rejected == 1);
  CHECK(p.time.pending() == 0);
}

TEST_CASE("an update of the zone data makes no point be reported again, whether it moves points or not") {
  zone_folder folder;
  folder.add("Test/City", "AAA-1");
  refresh_zone_data();
  full_place full("2026-05-01 00:00:00");
  place& p = *full.p;
  p.timers->schedule(cron("0 9,10 * * *", "Test/City"), p.noting("a"));
  p.advance_to("2026-05-01 08:30:00");
  CHECK(full.rejected.take() == "2026-05-01 08:00#1+0s");
  folder.add("Test/City", "BBB-1");
  CHECK(refresh_zone_data());
  p.time.advance(10s);
  folder.add("Test/City", "AAA0");
  CHECK(refresh_zone_data());
  p.advance_to("2026-05-01 11:00:00");
  CHECK(full.rejected.take() == "2026-05-01 10:00#1+0s");
  CHECK(p.time.stats().rejected == 2);
}

TEST_CASE("a calendar that fails is not lost in a full pool") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  bool fails = false;
  p.timers->schedule(calendar_of([&](wall_time after) -> std::optional<wall_time> {
                       if (std::exchange(fails, true)) throw std::runtime_error("no tides");
                       return after + 1min;
                     }),
                     p.noting("a"));
  p.time.advance(90s);
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+0s");
  full.full = false;
  p.time.advance(1s);
  CHECK(p.ran.take() == "a@2026-05-01 12:01+31000000000ns");
  p.time.advance(1s);
  CHECK(p.time.stats().failed == 1);
}

}  // namespace calendar_full_pool
