// Timers whose runs an executor drops.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calendar/almanac.hpp"

namespace calendar_full_pool {

using namespace calendar_test;

/// A place whose executor runs jobs at once, or drops them while it is full. Notes rejected runs as "due@when, lateness".
struct full_place {
  explicit full_place(const std::string& start) {
    rondo::options o;
    o.run_on = [this](job j) {
      if (!full) j();
    };
    o.on_rejected = [this](const firing& f) {
      const wall_time due = p->wall.now() - (p->time.now() - f.due);
      rejected.add(text(due) + '#' + std::to_string(f.run) + "+" + std::to_string(f.lateness / 1s) + 's');
      if (at_rejection) at_rejection();
    };
    p.emplace(start, std::move(o));
  }

  bool full = true;
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

TEST_CASE("a timer may end, and its calendar_timers too, where a rejected run is reported") {
  full_place full("2026-05-01 12:00:00");
  place& p = *full.p;
  SUBCASE("the timer") {
    const timer_id id = p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
    full.at_rejection = [&p, id] { CHECK(p.timers->cancel(id) == cancel_result::cancelled); };
  }
  SUBCASE("all") {
    p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
    full.at_rejection = [&p] { p.timers.reset(); };
  }
  p.wall.set(utc("2026-05-01 12:01:10"));
  p.time.advance(1s);
  p.time.advance(1h);
  CHECK(full.rejected.take() == "2026-05-01 12:01#1+10s");
  CHECK(p.time.pending() == 0);
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
