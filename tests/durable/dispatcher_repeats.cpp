// How dispatchers run repeated tasks.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef RONDO_DURABLE_CALENDAR
#include "calendar/zone_files.hpp"
#endif
#include "durable/workplace.hpp"

namespace durable_dispatcher_repeats {

using namespace durable_test;
namespace durable = rondo::durable;
using fault = line_to_the_database::fault;

constexpr auto start = workplace::beginning;

repeated each(rondo::any_duration period, missed_points missed = missed_points::run_once) {
  return {.key = "k", .when = schedule::every(period), .missed = missed};
}

/// The points of the runs, in seconds since the beginning.
std::vector<double> points(const diary& d) {
  std::vector<double> all;
  for (const auto& e : d.entries())
    all.push_back(std::chrono::duration<double>(e.what.point.value_or(start) - start).count());
  return all;
}

std::vector<double> multiples(double period, std::size_t count, double first) {
  std::vector<double> all;
  for (std::size_t n = 0; n != count; ++n) all.push_back(first + period * static_cast<double>(n));
  return all;
}

TEST_CASE("a repeated task runs at each of its points, on time, once") {
  for (const missed_points missed : {missed_points::run_once, missed_points::run_all, missed_points::skip}) {
    workplace w;
    diary d(w);
    const auto id = w.tasks->repeat(each(2s, missed));
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    w.pass(21s, {&runs});
    CHECK(points(d) == multiples(2, 10, 2));
    for (const auto& e : d.entries()) {
      CHECK(e.what.id == id);
      CHECK(e.what.attempt == 1);
      CHECK(e.what.due == *e.what.point);
      CHECK(e.at >= *e.what.point);
      CHECK(e.at <= *e.what.point + 110ms);
    }
    CHECK(runs.stats().completed == 10);
    CHECK(runs.stats().fired == 10);
    CHECK(w.ask("SELECT count(*) FROM rondo_task") == "1");
    CHECK(w.errors().empty());
  }
}

TEST_CASE("a period shorter than the time between two claims is kept") {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(100ms));
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(10s, {&runs}, 20ms);
  const auto ran = points(d);
  CHECK(ran.size() >= 98);
  CHECK(std::ranges::is_sorted(ran));
  CHECK(std::ranges::adjacent_find(ran) == ran.end());
  for (const auto& e : d.entries()) CHECK(e.at <= *e.what.point + 40ms);
}

/// The points that run when nobody has been there from second 0 to second 95, and the period is 10 s.
std::vector<double> after_a_gap(missed_points missed) {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(10s, missed));
  w.time.advance(95s);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(16s, {&runs});
  for (const auto& e : d.entries()) CHECK(e.what.due == *e.what.point);
  CHECK(runs.stats().completed == d.size());
  CHECK(w.errors().empty());
  return points(d);
}

TEST_CASE("points that went by while nobody was there are handled as the task says") {
  CHECK(after_a_gap(missed_points::run_once) == std::vector<double>{90, 100, 110});
  CHECK(after_a_gap(missed_points::run_all) == multiples(10, 11, 10));
  CHECK(after_a_gap(missed_points::skip) == std::vector<double>{90, 100, 110});
}

TEST_CASE("skip does not run a point that is later than a window, and waits for the next one") {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(10s, missed_points::skip));
  w.time.advance(96s);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(3s, {&runs});
  CHECK(d.size() == 0);
  CHECK(w.tasks->find("default", "k")->point == start + 100s);
  CHECK(w.tasks->find("default", "k")->attempt == 0);
  w.pass(12s, {&runs});
  CHECK(points(d) == std::vector<double>{100, 110});
  CHECK(runs.stats().withdrawn == 0);
  CHECK(w.errors().empty());
}

/// The points that run when the run for second 10 takes until second 45, and the period is 10 s.
std::vector<double> during_a_run(missed_points missed) {
  workplace w;
  diary d(w);
  gate begun, may_end;
  std::atomic<int> at_once{0}, most{0};
  w.tasks->repeat(each(10s, missed));
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        most = std::max<int>(most, ++at_once);
        d.write(t);
        if (d.size() == 1) {
          begun.open();
          may_end.wait();
        }
        --at_once;
      },
      w.options());
  w.pass(9900ms, {&runs});
  w.time.advance(100ms);
  REQUIRE(begun.wait());
  for (int i = 0; i != 70; ++i) {
    w.time.advance(500ms);
    REQUIRE(w.rests());
  }
  CHECK(d.size() == 1);
  may_end.open();
  w.pass(16s, {&runs});
  CHECK(most == 1);
  CHECK(runs.stats().leases_lost == 0);
  return points(d);
}

TEST_CASE("points that go by during a run are handled as the task says, and runs do not overlap") {
  CHECK(during_a_run(missed_points::run_once) == std::vector<double>{10, 40, 50, 60});
  CHECK(during_a_run(missed_points::run_all) == std::vector<double>{10, 20, 30, 40, 50, 60});
  CHECK(during_a_run(missed_points::skip) == std::vector<double>{10, 40, 50, 60});
}

TEST_CASE("a failed attempt is tried again for the same point; then the schedule goes on") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.first_retry = o.longest_retry = 3s;
  w.tasks->repeat(each(60s));
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        if (t.attempt < 3) throw std::runtime_error("x");
      },
      o);
  w.pass(130s, {&runs});
  CHECK(points(d) == std::vector<double>{60, 60, 60, 120, 120, 120});
  for (std::size_t n = 0; n != d.size(); ++n)
    CHECK(d.entries()[n].what.attempt == static_cast<int>(n % 3) + 1);
  CHECK(runs.stats().retried == 4);
  CHECK(runs.stats().completed == 2);
  CHECK(runs.stats().dead == 0);
}

TEST_CASE("after its last attempt a point is given up, which is reported, and the schedule goes on") {
  for (const bool at_once : {false, true}) {
    workplace w;
    diary d(w);
    std::mutex mutex;
    std::vector<std::pair<task, std::string>> given_up;
    auto o = w.options();
    o.max_attempts = 2;
    o.first_retry = o.longest_retry = 1s;
    o.on_dead = [&](const task& t, const std::string& reason) {
      const std::lock_guard hold(mutex);
      given_up.emplace_back(t, reason);
    };
    const auto id = w.tasks->repeat({.key = "k", .payload = "p", .when = schedule::every(60s)});
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task& t) {
          d.write(t);
          if (*t.point != start + 60s) return outcome::done();
          if (at_once) return outcome::dead("no use");
          throw std::runtime_error("it failed");
        },
        o);
    w.pass(100s, {&runs});
    const std::string reason = at_once ? "no use" : "it failed";
    CHECK(w.tasks->list("default").at(0).reason == reason);
    CHECK(w.tasks->list("default").at(0).state == task_state::waiting);
    w.pass(100s, {&runs});
    CHECK(points(d) == (at_once ? std::vector<double>{60, 120, 180} : std::vector<double>{60, 60, 120, 180}));
    CHECK(runs.stats().dead == 1);
    CHECK(runs.stats().completed == 2);
    const std::string attempts = at_once ? "1" : "2";
    CHECK(w.was_told("task " + std::to_string(id) +
                     " of queue 'default' goes on with its next point, after " + attempts +
                     " attempts: " + reason));
    CHECK(w.tasks->list("default").at(0).reason.empty());
    const std::lock_guard hold(mutex);
    REQUIRE(given_up.size() == 1);
    CHECK(given_up[0].first.id == id);
    CHECK(given_up[0].first.point == start + 60s);
    CHECK(given_up[0].first.payload == "p");
    CHECK(given_up[0].second == reason);
  }
}

TEST_CASE("a snoozed run is for the same point, however late, and does not count") {
  for (const missed_points missed : {missed_points::run_once, missed_points::run_all, missed_points::skip}) {
    workplace w;
    diary d(w);
    w.tasks->repeat(each(15s, missed));
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task& t) {
          d.write(t);
          return d.size() < 3 ? outcome::snooze(6s) : outcome::done();
        },
        w.options());
    w.pass(35s, {&runs});
    CHECK(points(d) == std::vector<double>{15, 15, 15, 30});
    for (const auto& e : d.entries()) CHECK(e.what.attempt == 1);
    CHECK(runs.stats().snoozed == 2);
  }
}

TEST_CASE("a point that is moved is run at that time, and the schedule stays") {
  workplace w;
  diary d(w);
  const auto id = w.tasks->repeat(each(60s));
  w.tasks->reschedule_after(id, 5s);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(10s, {&runs});
  REQUIRE(d.size() == 1);
  CHECK(d.entries()[0].what.point == start + 60s);
  CHECK(d.entries()[0].what.due == start + 5s);
  CHECK(w.tasks->find(id)->point == start + 120s);
  w.tasks->reschedule_after(id, 200s);  // second 210
  w.pass(240s, {&runs});
  CHECK(points(d) == std::vector<double>{60, 120, 180, 240});
}

TEST_CASE("a cancelled task runs no more; during a run, its stop token is requested and it is the last") {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(10s));
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(15s, {&runs});
  CHECK(w.tasks->cancel("default", "k"));
  w.pass(30s, {&runs});
  CHECK(d.size() == 1);
  runs.stop();
  w.watched->rests.clear();

  gate begun;
  w.tasks->repeat(each(10s));
  std::atomic<bool> was_asked{false};
  dispatcher stoppable(
      w.time, *w.tasks,
      [&](const task&, const std::stop_token& s) {
        begun.open();
        was_asked = eventually([&] { return s.stop_requested(); });
      },
      w.options());
  w.pass(9900ms, {&stoppable});
  w.time.advance(100ms);
  REQUIRE(begun.wait());
  CHECK_FALSE(w.tasks->cancel("default", "k"));
  w.rest().notify();
  CHECK(eventually([&] { return stoppable.stats().completed == 1; }));
  CHECK(was_asked);
  CHECK(w.ask("SELECT count(*) FROM rondo_task") == "0");
}

TEST_CASE("a task that is declared anew goes on with the new schedule") {
  workplace w;
  diary d(w);
  const auto id = w.tasks->repeat(each(10s));
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(15s, {&runs});
  CHECK(w.tasks->repeat({.key = "k", .payload = "new", .when = schedule::every(20s)}) == id);
  w.pass(60s, {&runs});
  CHECK(points(d) == std::vector<double>{10, 35, 55, 75});
  CHECK(d.entries()[1].what.payload == "new");
}

TEST_CASE("a run during which its task is declared anew is the last of the old one, also if it fails") {
  for (const bool fails : {false, true}) {
    workplace w;
    diary d(w);
    auto o = w.options();
    o.first_retry = o.longest_retry = 1s;
    w.tasks->repeat(each(10s));
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task& t) {
          d.write(t);
          if (d.size() != 1) return;
          w.tasks->repeat({.key = "k", .payload = "new", .when = schedule::every(20s)});
          if (fails) throw std::runtime_error("x");
        },
        o);
    w.pass(55s, {&runs});
    CHECK(points(d) == std::vector<double>{10, 30, 50});
    CHECK(d.entries()[1].what.payload == "new");
    CHECK(d.entries()[1].what.attempt == 1);
    CHECK(runs.stats().leases_lost == 0);
  }
}

TEST_CASE("several dispatchers run each point once, and runs do not overlap") {
  workplace w;
  diary d(w);
  std::atomic<int> at_once{0};
  const auto handler = [&](const task& t) {
    CHECK(++at_once == 1);
    d.write(t);
    std::this_thread::yield();
    --at_once;
  };
  w.tasks->repeat(each(1s));
  dispatcher a(w.time, *w.tasks, handler, w.options()), b(w.time, *w.tasks, handler, w.options()),
      c(w.time, *w.tasks, handler, w.options());
  w.pass(30500ms, {&a, &b, &c}, 500ms);
  CHECK(points(d) == multiples(1, 30, 1));
}

TEST_CASE("a point whose run was cut short by the death of its process is run again, and then the next") {
  for (const missed_points missed : {missed_points::run_once, missed_points::run_all, missed_points::skip}) {
    workplace w;
    diary d(w);
    w.tasks->repeat(each(60s, missed));
    {
      const auto vanishing = w.watched->plain(
          "vanishing", {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 3});
      w.time.advance(60s);
      const auto claimed = vanishing->take({.claim_up_to = 1}).claimed;
      REQUIRE(claimed.size() == 1);
      REQUIRE(vanishing->take({.begun = {{claimed[0].what.id, claimed[0].what.fence}}}).begun.size() == 1);
    }
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    w.pass(65s, {&runs});
    CHECK(points(d) == std::vector<double>{60, 120});
    CHECK(d.entries()[0].what.attempt == 2);
  }
}

TEST_CASE("a point whose last attempt lost its lease is given up and reported, and the schedule goes on") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.max_attempts = 1;
  std::atomic<int> told{0};
  o.on_dead = [&](const task& t, const std::string& reason) {
    ++told;
    CHECK(reason == "lease ran out");
    CHECK(t.point == start + 60s);
  };
  const auto id = w.tasks->repeat(each(60s));
  {
    const auto vanishing =
        w.watched->plain("vanishing", {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 1});
    w.time.advance(60s);
    const auto claimed = vanishing->take({.claim_up_to = 1}).claimed;
    REQUIRE(vanishing->take({.begun = {{id, claimed.at(0).what.fence}}}).begun.size() == 1);
  }
  dispatcher runs(w.time, *w.tasks, d.handler(), o);
  w.pass(65s, {&runs});
  CHECK(points(d) == std::vector<double>{120});
  CHECK(d.entries()[0].what.attempt == 1);
  CHECK(told == 1);
  CHECK(runs.stats().dead == 1);
  CHECK(runs.stats().withdrawn == 0);
  CHECK(w.was_told("goes on with its next point, after 1 attempts: lease ran out"));
}

TEST_CASE("whichever turn fails, before or after it took effect, each point is run and reported once") {
  for (const auto how : {fault::before, fault::after}) {
    for (std::size_t n = 0; n != 16; ++n) {
      CAPTURE(n);
      workplace w;
      diary d(w);
      auto o = w.options();
      o.max_attempts = 2;
      o.first_retry = o.longest_retry = 200ms;
      std::atomic<int> told{0};
      o.on_dead = [&](const task&, const std::string&) { ++told; };
      std::size_t made = 0;
      w.line().on_turn([&](const turn&) {
        if (made++ == n) w.line().fail(1, how);
      });
      w.tasks->repeat(each(2s, missed_points::run_all));
      dispatcher runs(
          w.time, *w.tasks,
          [&](const task& t) {
            d.write(t);
            if (*t.point == start + 4s) throw std::runtime_error("x");
          },
          o);
      w.pass(9s, {&runs});
      CHECK(points(d) == std::vector<double>{2, 4, 4, 6, 8});
      CHECK(told == 1);
      const auto s = runs.stats();
      CHECK(s.dead == 1);
      CHECK(s.completed == 3);
      CHECK(s.leases_lost == 0);
    }
  }
}

TEST_CASE("whichever turn fails, a point that went by is passed over once") {
  for (const auto how : {fault::before, fault::after}) {
    for (std::size_t n = 0; n != 6; ++n) {
      CAPTURE(n);
      workplace w;
      diary d(w);
      std::size_t made = 0;
      w.line().on_turn([&](const turn&) {
        if (made++ == n) w.line().fail(1, how);
      });
      w.tasks->repeat(each(10s, missed_points::skip));
      w.time.advance(16s);
      dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
      w.pass(5s, {&runs});
      CHECK(points(d) == std::vector<double>{20});
      CHECK(runs.stats().withdrawn == 0);
      CHECK(runs.stats().leases_lost == 0);
    }
  }
}

TEST_CASE("a point that is passed over has not begun, also if the turn that says so fails") {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(10s, missed_points::skip));
  w.time.advance(96s);
  std::atomic<bool> fails{true};
  w.line().on_turn([&](const turn& t) {
    if (!t.passed.empty() && fails.exchange(false)) w.line().fail(1);
  });
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(3s, {&runs});
  CHECK(runs.stats().failures == 1);
  for (const turn& t : w.line().turns()) CHECK(t.begun.empty());
  CHECK(w.tasks->find("default", "k")->point == start + 100s);
}

TEST_CASE("a schedule that cannot be read here is left to others, and reported") {
  workplace w;
  diary d(w);
  const auto id = w.tasks->repeat(each(10s));
  w.ask("UPDATE rondo_task SET schedule = 'at full moon'");
  const auto other = w.tasks->submit_after(12s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(30s, {&runs});
  CHECK(d.ids() == std::vector{other});
  CHECK(w.was_told("task " + std::to_string(id) +
                   " of queue 'default' is given back: rondo: there is no schedule"));
  CHECK(w.errors().size() == 1);  // it is not claimed again
  CHECK(w.tasks->find(id)->attempt == 0);
  w.ask("UPDATE rondo_task SET schedule = 'every 10s'");
  w.pass(15s, {&runs});
  CHECK(points(d).back() == 40);
}

TEST_CASE(
    "as many tasks with schedules that cannot be read as can be held do not keep others from being claimed") {
  workplace w;
  diary d(w);
  for (const char* key : {"a", "b", "c", "d", "e"})
    w.tasks->repeat({.key = key, .when = schedule::every(1s)});
  w.ask("UPDATE rondo_task SET schedule = 'at the moon''s phase ' || (id % 3)");
  const auto first = w.tasks->submit_after(4s, {}), second = w.tasks->submit_after(5s, {});
  auto o = w.options();
  o.max_held = 2;
  dispatcher runs(w.time, *w.tasks, d.handler(), o);
  w.pass(10s, {&runs});
  CHECK(d.ids() == std::vector{first, second});
  CHECK(d.entries()[0].at < start + 4s + 100ms);
}

TEST_CASE("the tasks of a repeated task's lane and its own runs come one at a time") {
  workplace w;
  diary d(w);
  w.tasks->repeat({.key = "k", .when = schedule::every(10s), .lane = "l"});
  w.tasks->submit_after(9s, {.payload = "snoozes", .lane = "l"});
  w.tasks->submit_after(25s, {.lane = "l"});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        return t.payload == "snoozes" && d.size() == 1 ? outcome::snooze(4s) : outcome::done();
      },
      w.options());
  w.pass(31s, {&runs});
  CHECK(points(d) == std::vector<double>{0, 0, 10, 20, 0, 30});
  CHECK(d.entries()[2].at >= start + 13s);
}

TEST_CASE("a paused repeated task goes on, once resumed, as its missed points say") {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(10s));
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(15s, {&runs});
  w.tasks->pause("default");
  w.pass(50s, {&runs});
  w.tasks->resume("default");
  w.pass(10s, {&runs});
  CHECK(points(d) == std::vector<double>{10, 60, 70});
}

TEST_CASE(
    "if the engine's clock is set back before a run begins, the point waits until the clock shows it again") {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(10s));
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(8s, {&runs});
  w.step_clock(-60s);
  w.pass(50s, {&runs});
  CHECK(d.size() == 0);
  w.pass(15s, {&runs});
  CHECK(points(d) == std::vector<double>{10});
  for (const auto& e : d.entries()) CHECK(e.at >= *e.what.point);
}

TEST_CASE("a dispatcher that stops hands a repeated task back, and another goes on") {
  workplace w;
  diary d(w);
  w.tasks->repeat(each(10s));
  {
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    w.pass(18s, {&runs});
    runs.stop();
    CHECK(runs.stats().handed_back == 1);
  }
  dispatcher next(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(eventually([&] { return w.rest(1).at_rest().has_value(); }));
  w.time.advance(2s);
  CHECK(eventually([&] { return d.size() == 2; }));
  CHECK(points(d) == std::vector<double>{10, 20});
}

#ifdef RONDO_DURABLE_CALENDAR
TEST_CASE("a task that is repeated by a calendar runs at the local times that it names") {
  using std::chrono::sys_days;
  using std::chrono::year;
  workplace w;
  const sys_days before = year(2020) / 3 / 28;  // the clocks are set forward on the 29th
  w.time.advance(before - start);
  diary d(w);
  const auto& tasks = w.tasks;
  tasks->repeat(
      {.queue = "reports", .key = "nightly", .when = durable::schedule::cron("30 2 * * *", "Europe/Berlin")});
  auto o = w.options();
  o.queues = {"reports"};
  dispatcher runs(w.time, *tasks, d.handler(), o);
  w.pass(49h, {&runs}, 30min);
  std::vector<wall_time> ran;
  for (const auto& e : d.entries()) ran.push_back(*e.what.point);
  CHECK(ran == std::vector<wall_time>{before + 90min, before + 25h, before + 48h + 30min});
}

TEST_CASE("a dispatcher runs each local time once, also on the day on which the zone data are updated") {
  calendar_test::zone_folder folder;
  for (const char* after : {"AAA-1", "AAA1"})
    for (const auto updated : {30min, 570min, 630min}) {  // before, between and after 09:00 and 10:00
      CAPTURE(after);
      CAPTURE(updated.count());
      workplace w;
      folder.add("Test/City", "AAA0");
      rondo::refresh_zone_data();
      const wall_time day = std::chrono::ceil<std::chrono::days>(start);
      w.time.advance(day - start);
      diary d(w);
      w.tasks->repeat({.queue = "reports",
                       .key = "k",
                       .when = durable::schedule::cron("0 9,10 * * *", "Test/City"),
                       .missed = durable::missed_points::run_all});
      auto o = w.options();
      o.queues = {"reports"};
      dispatcher runs(w.time, *w.tasks, d.handler(), o);
      w.pass(updated, {&runs}, 10min);
      folder.add("Test/City", after);
      rondo::refresh_zone_data();
      w.pass(48h - updated, {&runs}, 10min);
      std::vector<std::chrono::minutes> ran;
      for (const auto& e : d.entries())
        ran.push_back(std::chrono::floor<std::chrono::minutes>(*e.what.point - day));
      const auto moved = after == std::string("AAA1") ? 60min : -60min;
      const auto of_day = [&](std::chrono::minutes time) { return updated < time ? time + moved : time; };
      CHECK(ran == std::vector<std::chrono::minutes>{of_day(540min), of_day(600min), 1980min + moved,
                                                     2040min + moved});
    }
}
#endif

}  // namespace durable_dispatcher_repeats
