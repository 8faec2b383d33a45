// Timers of a wall clock that nobody sets: when they run, what their tasks receive, how they end.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include <rondo/errors.hpp>

#include <version>
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include "calendar/almanac.hpp"

namespace calendar_runs {

using namespace calendar_test;

TEST_CASE("a deadline of the wall clock") {
  place p("2026-05-01 12:00:00");
  const auto id = p.timers->schedule_at(utc("2026-05-01 12:00:01"), p.noting("a"));
  CHECK(p.timers->pending(id));
  CHECK(p.timers->pending() == 1);
  CHECK(text(p.timers->due(id)) == "2026-05-01 12:00+1000000000ns");
  CHECK(p.timers->due(id) == p.timers->next_due());
  p.time.advance(1s - 1ms);
  CHECK(p.ran.take() == "");
  p.time.advance(1ms);
  CHECK(p.ran.take() == "a@2026-05-01 12:00+1000000000ns");
  CHECK_FALSE(p.timers->pending(id));
  CHECK(p.timers->pending() == 0);
  CHECK(p.timers->due(id) == std::nullopt);
  CHECK(p.timers->next_due() == std::nullopt);
  CHECK(p.timers->cancel(id) == cancel_result::gone);
  CHECK(p.time.pending() == 0);
  p.time.advance(24h);
  CHECK(p.runs.size() == 1);
}

TEST_CASE("a task receives its run's times by the wall clock") {
  place p("2026-05-01 12:00:00");
  const auto id = p.timers->schedule(daily(13h, "UTC"), p.noting("a"));
  p.time.advance(1h);
  p.time.elapse(24h + 5s);  // like a stalled driver
  p.time.advance(0s);
  REQUIRE(p.runs.size() == 2);
  CHECK(p.runs[0].id == id);
  CHECK(p.runs[0].due == at(1h));
  CHECK(p.runs[0].lateness == 0s);
  CHECK(p.runs[0].run == 1);
  CHECK(p.runs[0].missed == 0);
  CHECK(text(p.runs[0].wall_due) == "2026-05-01 13:00");
  CHECK(p.runs[1].id == id);
  CHECK(p.runs[1].due == at(25h));
  CHECK(p.runs[1].lateness == 5s);
  CHECK(p.runs[1].run == 2);
  CHECK(text(p.runs[1].wall_due) == "2026-05-02 13:00");
}

TEST_CASE("tasks that take a wall_firing, a firing, or nothing") {
  place p("2026-05-01 12:00:00");
  const auto soon = p.wall.now() + 1s;
  int runs = 0;
  p.timers->schedule_at(soon, [&] { ++runs; });
  p.timers->schedule_at(soon, [&](const firing& f) { runs += f.run == 1 ? 10 : 0; });
  p.timers->schedule_at(soon, [&](const wall_firing& f) { runs += f.wall_due == soon ? 100 : 0; });
  p.timers->schedule_at(soon, rondo::task([&] { runs += 1000; }));
  p.timers->schedule_at(soon,
                        std::function<void(const wall_firing&)>([&](const wall_firing&) { runs += 10000; }));
  p.timers->schedule_at(soon, [&runs, only = std::make_unique<int>(100000)] { runs += *only; });
  p.time.advance(1s);
  CHECK(runs == 111111);
}

TEST_CASE("next_due() is the earliest deadline") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule_at(utc("2026-05-01 12:30:00"), p.noting("c"));
  const timer_id a = p.timers->schedule_at(utc("2026-05-01 12:10:00"), p.noting("a"));
  p.timers->schedule_at(utc("2026-05-01 12:20:00"), p.noting("b"));
  CHECK(text(p.timers->next_due()) == "2026-05-01 12:10");
  p.timers->cancel(a);
  CHECK(text(p.timers->next_due()) == "2026-05-01 12:20");
}

TEST_CASE("an empty task is refused") {
  place p("2026-05-01 12:00:00");
  CHECK_THROWS_AS(p.timers->schedule_at(wall_time{}, rondo::task{}), std::invalid_argument);
  CHECK_THROWS_AS(p.timers->schedule_at(wall_time{}, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(p.timers->schedule_at(wall_time{}, {}), std::invalid_argument);
  CHECK_THROWS_AS(p.timers->schedule_at(wall_time{}, std::function<void(const wall_firing&)>()),
                  std::invalid_argument);
  CHECK_THROWS_AS(p.timers->schedule(daily(0s, "UTC"), static_cast<void (*)()>(nullptr)),
                  std::invalid_argument);
  CHECK(p.time.pending() == 0);
  CHECK(p.timers->next_due() == std::nullopt);
}

TEST_CASE("deadlines of any unit, past ones, and never") {
  place p("2026-05-01 12:00:00");
  using namespace std::chrono;
  p.timers->schedule_at(sys_days(2026y / May / 2), p.noting("day"));
  p.timers->schedule_at(p.wall.now(), p.noting("now"));
  p.timers->schedule_at(wall_time::min(), p.noting("first"));
  p.timers->schedule_at(sys_days(2026y / January / 1), p.noting("past"));
  const auto never = p.timers->schedule_at(system_clock::time_point::max(), p.noting("never"));
  const auto neither = p.timers->schedule_at(
      time_point_cast<hours>(system_clock::now()) + hours(1'000'000'000), p.noting("never"));
  CHECK(p.ran.take() == "");
  p.time.advance(0s);
  CHECK(p.ran.take() == "now@2026-05-01 12:00 first@2026-05-01 12:00 past@2026-05-01 12:00");
  CHECK(p.runs.at(2).lateness == 24h * 120 + 12h);
  p.time.advance(12h);
  CHECK(p.ran.take() == "day@2026-05-02 00:00");
  CHECK(p.timers->pending(never));
  CHECK(p.timers->due(never) == wall_time::max());
  CHECK(p.timers->due(neither) == wall_time::max());
  CHECK(p.timers->next_due() == std::nullopt);
  CHECK(p.time.next_due() == std::nullopt);
}

TEST_CASE("a calendar continues even if its task throws, and ends when it is cancelled") {
  int errors = 0;
  place p("2026-05-01 12:00:00", {.on_error = [&](std::exception_ptr, const firing&) { ++errors; }});
  const auto id = p.timers->schedule(cron("0 */8 * * *", "UTC"), [&](const wall_firing& f) {
    p.noting("a")(f);
    if (f.run == 2) throw std::runtime_error("no");
  });
  CHECK(text(p.timers->due(id)) == "2026-05-01 16:00");
  p.time.advance(24h);
  CHECK(p.ran.take() == "a@2026-05-01 16:00 a@2026-05-02 00:00 a@2026-05-02 08:00");
  CHECK(errors == 1);
  CHECK(text(p.timers->due(id)) == "2026-05-02 16:00");
  CHECK(p.timers->cancel(id) == cancel_result::cancelled);
  CHECK(p.timers->next_due() == std::nullopt);
  p.time.advance(24h);
  CHECK(p.ran.take() == "");
  CHECK(p.time.pending() == 0);
}

TEST_CASE("a calendar without a further point is never due, and a calendar ends with its last point") {
  place p("2260-02-28 12:00:00");
  const auto leap_days = cron("0 0 29 2 *", "UTC");
  const auto id = p.timers->schedule(leap_days, p.noting("a"));
  p.time.advance(24h);
  CHECK(p.ran.take() == "a@2260-02-29 00:00");
  CHECK_FALSE(p.timers->pending(id));
  const auto none = p.timers->schedule(leap_days, p.noting("b"));
  CHECK(p.timers->pending(none));
  CHECK(p.timers->due(none) == wall_time::max());
}

TEST_CASE("several missed points result in one run for the oldest, with the number of the others") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule(cron("0 * * * *", "UTC"), p.noting("a"));
  p.time.elapse(3h + 30min);
  p.time.advance(1h);
  CHECK(p.ran.take() == "a@2026-05-01 15:30 a@2026-05-01 16:00");
  CHECK(text(p.runs[0].wall_due) == "2026-05-01 13:00");
  CHECK(p.runs[0].missed == 2);
  CHECK(p.runs[0].lateness == 2h + 30min);
  CHECK(p.runs[1].missed == 0);
  CHECK(p.runs[1].run == 2);
  p.time.elapse(90min - 1ns);
  p.time.advance(0s);
  CHECK(p.runs.at(2).missed == 0);
  p.time.elapse(1h + 1ns);  // a point at exactly this moment has passed
  p.time.advance(0s);
  CHECK(p.runs.at(3).missed == 1);
}

TEST_CASE("at most a thousand missed points are counted") {
  place p("2026-05-01 00:00:30");
  p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
  p.time.elapse(1000min);
  p.time.advance(0s);
  CHECK(p.runs.at(0).missed == 999);
  p.time.elapse(1001min);
  p.time.advance(0s);
  CHECK(p.runs.at(1).missed == 1000);
  p.time.elapse(100'000min);
  p.time.advance(0s);
  CHECK(p.runs.at(2).missed == 1000);
  p.ran.take();
  p.time.advance(1min);
  CHECK(p.runs.size() == 4);
  CHECK(p.runs.at(3).missed == 0);
  CHECK(p.runs.at(3).lateness == 0s);
}

TEST_CASE("a single point during a run is not missed: it runs late") {
  place p("2026-05-01 12:00:30");
  p.timers->schedule(cron("* * * * *", "UTC"), [&](const wall_firing& f) {
    p.noting("a")(f);
    if (f.run == 1) p.time.elapse(1min + 10s);
  });
  p.time.advance(3min);
  CHECK(p.ran.take() == "a@2026-05-01 12:01 a@2026-05-01 12:02+10000000000ns a@2026-05-01 12:03");
  CHECK(p.runs.at(1).missed == 0);
}

TEST_CASE("of the points during a run, the oldest runs late and the others are missed") {
  place p("2026-05-01 12:00:30");
  p.timers->schedule(cron("* * * * *", "UTC"), [&](const wall_firing& f) {
    p.noting("a")(f);
    if (f.run == 1) p.time.elapse(3min + 10s);
  });
  p.time.advance(5min);
  CHECK(p.ran.take() == "a@2026-05-01 12:01 a@2026-05-01 12:04+10000000000ns a@2026-05-01 12:05");
  CHECK(text(p.runs.at(1).wall_due) == "2026-05-01 12:02");
  CHECK(p.runs.at(1).missed == 2);
}

TEST_CASE("runs go to the scheduler's executor, or the timer's own, and do not overlap") {
  std::vector<job> kept, own;
  place p("2026-05-01 12:00:30", {.run_on = [&](job j) { kept.push_back(std::move(j)); }});
  const auto run_one = [&](std::vector<job>& from) {
    REQUIRE_FALSE(from.empty());
    job j = std::move(from.front());
    from.erase(from.begin());
    j();
  };
  const auto minutely = cron("* * * * *", "UTC");
  p.timers->schedule(minutely, p.noting("a"));
  p.timers->schedule(minutely, p.noting("own"), on([&](job j) { own.push_back(std::move(j)); }));
  p.timers->schedule_at(p.wall.now() + 30s, p.noting("once"),
                        on([&](job j) { own.push_back(std::move(j)); }));
  p.time.advance(2min + 45s);
  CHECK(p.ran.take() == "");
  CHECK(kept.size() == 1);
  CHECK(own.size() == 2);
  run_one(own);
  run_one(own);
  CHECK(p.ran.take() == "own@2026-05-01 12:03+15000000000ns once@2026-05-01 12:03+15000000000ns");
  run_one(kept);
  CHECK(p.runs.at(2).missed == 2);
  p.time.advance(45s);
  CHECK(kept.size() == 1);
  run_one(kept);
  CHECK(p.ran.take() == "a@2026-05-01 12:03+15000000000ns a@2026-05-01 12:04");
  CHECK(p.runs.at(3).missed == 0);
}

TEST_CASE("a run that an executor drops is handed to it again a second later") {
  bool full = true;
  place p("2026-05-01 12:00:00", {.run_on = [&](job j) {
            if (!full) j();
          }});
  p.timers->schedule_at(p.wall.now() + 1s, p.noting("a"));
  p.timers->schedule(daily(12h + 1min, "UTC"), p.noting("b"));
  p.time.advance(63s);
  CHECK(p.ran.take() == "");
  full = false;
  p.time.advance(1s);
  CHECK(p.ran.take() == "b@2026-05-01 12:01+4000000000ns a@2026-05-01 12:01+4000000000ns");
}

TEST_CASE("a timer cancelled from inside its run is no longer pending") {
  place p("2026-05-01 12:00:30");
  const auto minutely = cron("* * * * *", "UTC");
  p.timers->schedule(minutely, [&](const wall_firing& f) {
    p.noting("a")(f);
    CHECK(p.timers->pending(f.id));
    CHECK(p.timers->due(f.id) == std::nullopt);
    CHECK(p.timers->cancel(f.id) == cancel_result::running);
    CHECK_FALSE(p.timers->pending(f.id));
  });
  p.timers->schedule_at(p.wall.now() + 30s, [&](const wall_firing& f) {
    p.noting("once")(f);
    CHECK_FALSE(p.timers->pending(f.id));
    CHECK(p.timers->cancel_and_wait(f.id) == cancel_result::running);
  });
  p.time.advance(1h);
  CHECK(p.ran.take() == "a@2026-05-01 12:01 once@2026-05-01 12:01");
  CHECK(p.time.pending() == 0);
}

TEST_CASE("the scheduler's calls accept the ids") {
  place p("2026-05-01 12:00:00");
  const auto id = p.timers->schedule_at(p.wall.now() + 1h, p.noting("a"));
  const auto other = p.time.schedule_after(1h, doing_nothing());
  CHECK(p.time.pending(id));
  CHECK_FALSE(p.timers->pending(other));
  CHECK(p.timers->cancel(other) == cancel_result::gone);
  CHECK(p.timers->due(other) == std::nullopt);
  // Even when moved to before its deadline, the timer waits for the deadline.
  CHECK(p.time.reschedule_after(id, 1min));
  p.time.advance(59min);
  CHECK(p.ran.take() == "");
  p.time.advance(1min);
  CHECK(p.ran.take() == "a@2026-05-01 13:00");
  CHECK(adds_up(p.time.stats()));
}

TEST_CASE("the task and the scheduler's list show a timer's name") {
  place p("2026-05-01 12:00:00");
  std::string told;
  const auto keeping = [&](const wall_firing& f) { told += f.name; };
  p.timers->schedule_at(p.wall.now() + 30min, keeping, {.name = "once "});
  p.timers->schedule(daily(13h, "UTC"), keeping, {.name = "daily "});
  CHECK(p.time.list().at(0).name == "once ");
  p.time.advance(1h);
  CHECK(told == "once daily ");
}

TEST_CASE("max_pending counts each timer") {
  place p("2026-05-01 12:00:00", {.max_pending = 1});
  const auto id = p.timers->schedule_at(p.wall.now() + 1h, p.noting("a"));
  CHECK_THROWS_AS(p.timers->schedule(daily(0s, "UTC"), p.noting("b")), capacity_error);
  CHECK(p.timers->pending() == 1);
  CHECK(p.timers->next_due() == p.timers->due(id));
  p.time.advance(1h);
  CHECK(p.ran.take() == "a@2026-05-01 13:00");
  p.timers->schedule(daily(0s, "UTC"), p.noting("b"));
}

#ifdef __cpp_lib_jthread
TEST_CASE("a run can be asked to stop, and is not if it is only the last one") {
  place p("2026-05-01 12:00:00");
  bool before = true, after = false;
  timer_id id;
  const auto work = [&](std::stop_token token) {
    before = token.stop_requested();
    CHECK(p.timers->cancel(id) == cancel_result::running);
    after = token.stop_requested();
  };
  SUBCASE("of a calendar") { id = p.timers->schedule(daily(13h, "UTC"), work); }
  SUBCASE("of a single deadline") { id = p.timers->schedule_at(utc("2026-05-01 13:00:00"), work); }
  p.time.advance(1h);
  CHECK_FALSE(before);
  CHECK(after);
}
#endif

}  // namespace calendar_runs
