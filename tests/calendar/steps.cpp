// When the wall clock is set, deadlines move with it.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "calendar/almanac.hpp"

namespace calendar_steps {

using namespace calendar_test;

TEST_CASE("when the clock is set forward, timers run earlier") {
  place p("2026-05-01 12:00:00");
  const auto id = p.timers->schedule_at(utc("2026-05-01 18:00:00"), p.noting("a"));
  p.time.advance(1h);
  p.wall.set(utc("2026-05-01 17:00:00"));
  CHECK(text(p.timers->due(id)) == "2026-05-01 18:00");
  CHECK(p.time.next_due() == at(2h));
  p.time.advance(1h - 1ms);
  CHECK(p.ran.take() == "");
  p.time.advance(1ms);
  CHECK(p.ran.take() == "a@2026-05-01 18:00");
  CHECK(p.runs[0].lateness == 0s);
  CHECK(p.runs[0].due == at(2h));
}

TEST_CASE("when the clock is set back, timers run later") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule_at(utc("2026-05-01 13:00:00"), p.noting("a"));
  p.time.advance(59min);
  p.wall.set(utc("2026-05-01 12:00:00"));
  CHECK(p.time.next_due() == at(1h + 59min));
  p.time.advance(59min);
  CHECK(p.ran.take() == "");
  p.time.advance(1min);
  CHECK(p.ran.take() == "a@2026-05-01 13:00");
}

TEST_CASE(
    "when the clock is set forward past deadlines, they run at once, in order, late by the wall clock") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule_at(utc("2026-05-01 15:00:00"), p.noting("b"));
  p.timers->schedule_at(utc("2026-05-01 14:00:00"), p.noting("a"));
  p.timers->schedule_at(utc("2026-05-01 17:00:00"), p.noting("c"));
  p.time.advance(1h);
  p.wall.set(utc("2026-05-01 16:00:00"));
  CHECK(p.ran.take() == "");  // the driver runs them, never the call that sets the clock
  p.time.advance(0s);
  CHECK(p.ran.take() == "a@2026-05-01 16:00 b@2026-05-01 16:00");
  CHECK(p.runs[0].lateness == 2h);
  CHECK(p.runs[0].due == at(-1h));
  CHECK(p.runs[1].lateness == 1h);
  p.time.advance(1h);
  CHECK(p.ran.take() == "c@2026-05-01 17:00");
}

TEST_CASE("a calendar whose clock is set forward past several points runs once, and continues") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule(daily(13h, "UTC"), p.noting("a"));
  p.wall.set(utc("2026-05-05 12:00:00"));
  p.time.advance(2h);
  CHECK(p.ran.take() == "a@2026-05-05 12:00 a@2026-05-05 13:00");
  CHECK(text(p.runs[0].wall_due) == "2026-05-01 13:00");
  CHECK(p.runs[0].missed == 3);
  CHECK(p.runs[0].lateness == 4 * 24h - 1h);
  CHECK(p.runs[1].missed == 0);
}

TEST_CASE("when the clock is set back a little, a point that has run does not run again") {
  for (const auto back : {rondo::duration(1ns), rondo::duration(1min), rondo::duration(3h)}) {
    CAPTURE(back);
    place p("2026-05-01 12:00:00", {.tick = 1ns});
    p.timers->schedule(daily(13h, "UTC"), p.noting("a"));
    p.time.advance(1h);
    CHECK(p.ran.take() == "a@2026-05-01 13:00");
    p.wall.set(p.wall.now() - back);
    p.time.advance(24h + back - 1ns);
    CHECK(p.ran.take() == "");
    p.time.advance(1ns);
    CHECK(p.ran.take() == "a@2026-05-02 13:00");
  }
}

TEST_CASE("when the clock is set back far, a calendar starts again") {
  place p("2036-05-01 12:00:00");
  const auto id = p.timers->schedule(daily(13h, "UTC"), p.noting("a"));
  const auto once = p.timers->schedule_at(utc("2036-05-01 13:00:00"), p.noting("once"));
  p.wall.set(utc("2026-01-01 12:30:00"));  // the earlier time was wrong
  CHECK(text(p.timers->due(id)) == "2026-01-01 13:00");
  CHECK(text(p.timers->due(once)) == "2036-05-01 13:00");
  p.time.advance(30min);
  CHECK(p.ran.take() == "a@2026-01-01 13:00");
  // If the clock is set back by more than three hours, counted from the last run and not from the scheduling call, the
  // point occurs again.
  p.time.advance(1h);
  p.wall.set(utc("2026-01-01 10:00:00"));
  CHECK(text(p.timers->due(id)) == "2026-01-02 13:00");
  p.wall.set(utc("2026-01-01 09:59:59"));
  CHECK(text(p.timers->due(id)) == "2026-01-01 13:00");
  p.time.advance(4h);
  CHECK(p.ran.take() == "a@2026-01-01 13:00");
  CHECK(p.runs[1].run == 2);
}

TEST_CASE("after a run due to a wrong time far ahead, the calendar still runs at its points") {
  place p("2026-05-01 12:00:00");
  const auto id = p.timers->schedule(daily(13h, "UTC"), p.noting("a"));
  p.wall.set(utc("2056-05-01 12:00:00"));
  p.time.advance(1min);
  CHECK(p.ran.take() == "a@2056-05-01 12:00");
  CHECK(p.runs[0].missed == 1000);
  CHECK(text(p.timers->due(id)) == "2056-05-01 13:00");
  p.wall.set(utc("2026-05-01 12:02:00"));
  CHECK(text(p.timers->due(id)) == "2026-05-01 13:00");
  p.time.advance(58min);
  CHECK(p.ran.take() == "a@2026-05-01 13:00");
}

TEST_CASE("a clock that is set from inside a task") {
  place p("2026-05-01 12:00:30");
  p.timers->schedule(cron("* * * * *", "UTC"), [&](const wall_firing& f) {
    p.noting("a")(f);
    if (f.run == 1) p.wall.set(utc("2026-05-01 12:10:00"));
    if (f.run == 3) p.wall.set(utc("2026-05-01 12:10:30"));
  });
  p.time.advance(30s);
  CHECK(p.ran.take() == "a@2026-05-01 12:01 a@2026-05-01 12:10");
  CHECK(p.runs[1].missed == 8);
  CHECK(text(p.runs[1].wall_due) == "2026-05-01 12:02");
  p.time.advance(2min + 30s);
  CHECK(p.ran.take() == "a@2026-05-01 12:11 a@2026-05-01 12:12");
  p.timers->schedule_at(utc("2026-05-01 12:30:15"), [&] {
    p.noting("once")({});
    p.wall.set(utc("2026-05-01 12:30:00"));  // the run is in progress, so there is no second one
  });
  p.time.advance(18min);
  p.ran.take();
  p.time.advance(15s);
  CHECK(p.ran.take() == "once@2026-05-01 12:30+15000000000ns");
  p.time.advance(1min);
  CHECK(p.ran.take() == "a@2026-05-01 12:31");
}

TEST_CASE("a run that an executor has not begun is taken back if the clock is set to before its deadline") {
  std::vector<job> jobs;
  place p("2026-05-01 12:00:00", {.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  p.timers->schedule_at(utc("2026-05-01 12:30:00"), p.noting("a"));
  p.time.advance(30min);
  REQUIRE(jobs.size() == 1);
  p.wall.set(utc("2026-05-01 12:00:00"));
  jobs[0]();
  CHECK(p.ran.take() == "");
  p.time.advance(30min);
  REQUIRE(jobs.size() == 2);
  jobs[1]();
  CHECK(p.ran.take() == "a@2026-05-01 12:30");
}

TEST_CASE("several calendar_timers follow one clock independently until they end") {
  place p("2026-05-01 12:00:00");
  auto second = std::make_unique<calendar_timers>(p.time, p.wall);
  p.timers->schedule_at(utc("2026-05-01 18:00:00"), p.noting("a"));
  second->schedule_at(utc("2026-05-01 18:00:00"), p.noting("b"));
  p.wall.set(utc("2026-05-01 17:00:00"));
  p.time.advance(30min);
  second.reset();
  p.wall.set(utc("2026-05-01 17:59:00"));
  p.time.advance(1h);
  CHECK(p.ran.take() == "a@2026-05-01 18:00");
}

TEST_CASE(
    "with many timers and a random clock, each runs once, at the first moment not before its deadline") {
  // The model checks the clock's time every second.
  std::uint32_t state = 20260501;
  const auto random = [&](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  place p("2026-05-01 12:00:00");
  const auto start = p.wall.now();
  struct expected {
    wall_time due;
    std::optional<rondo::time_point> ran;
    int runs = 0;
  };
  std::vector<expected> all(50);
  for (auto& e : all) {
    e.due = start + std::chrono::seconds(random(2000));
    p.timers->schedule_at(e.due, [&] {
      ++e.runs;
      e.ran = p.time.now();
    });
  }
  for (int second = 0; second != 3000; ++second) {
    if (random(40) == 0)
      p.wall.set(start + std::chrono::seconds(random(2500)));
    else if (random(40) == 0)
      p.wall.set(p.wall.now() - std::chrono::seconds(random(60)));
    std::vector<bool> had_run;
    for (const auto& e : all) had_run.push_back(e.runs != 0);
    p.time.advance(0s);
    for (std::size_t i = 0; i != all.size(); ++i) {
      CAPTURE(second);
      CAPTURE(i);
      REQUIRE(all[i].runs == (had_run[i] || all[i].due <= p.wall.now() ? 1 : 0));
    }
    p.time.advance(1s);
    for (auto& e : all)
      if (e.due <= p.wall.now()) REQUIRE(e.runs == 1);
  }
}

}  // namespace calendar_steps
