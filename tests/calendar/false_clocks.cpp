// Clocks that do not report their steps, or report them late, or whose listeners fail; and what manual_wall_clock
// promises.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calendar/almanac.hpp"

namespace calendar_false_clocks {

using namespace calendar_test;

/// Shows the time of another clock, and does not report steps.
class silent_clock final : public wall_clock {
 public:
  explicit silent_clock(wall_clock& real) : real_(real) {}
  wall_time now() const noexcept override { return real_.now(); }
  std::shared_ptr<void> on_step(std::function<void()>) override { return nullptr; }

 private:
  wall_clock& real_;
};

TEST_CASE("a clock that does not report its steps is checked every second") {
  place p("2026-05-01 12:00:00");
  silent_clock silent(p.wall);
  p.timers.emplace(p.time, silent);
  p.timers->schedule_at(utc("2026-05-01 13:00:00"), p.noting("a"));
  CHECK(p.timers->pending() == 1);
  p.time.advance(10s + 500ms);
  p.wall.set(utc("2026-05-01 12:59:50"));
  p.time.advance(9s);
  CHECK(p.ran.take() == "");
  p.time.advance(1s);
  CHECK(p.ran.take() == "a@2026-05-01 13:00");
  // Set past a deadline: the timer runs after the next check.
  p.timers->schedule_at(utc("2026-05-01 14:00:00"), p.noting("b"));
  p.time.advance(700ms);
  p.wall.set(utc("2026-05-01 14:30:00"));
  p.time.advance(1s);
  CHECK(p.ran.take() == "b@2026-05-01 14:30+800000000ns");
  // Set back: the timer never runs early.
  p.timers->schedule_at(utc("2026-05-01 14:30:10"), p.noting("c"));
  p.time.advance(8s + 900ms);
  p.wall.set(utc("2026-05-01 14:30:00"));
  p.time.advance(10s - 1ms);
  CHECK(p.ran.take() == "");
  p.time.advance(1ms);
  CHECK(p.ran.take() == "c@2026-05-01 14:30+10000000000ns");
}

TEST_CASE("a clock that is set back far without a report makes a calendar start over within a second") {
  place p("2026-05-01 12:00:00");
  silent_clock silent(p.wall);
  p.timers.emplace(p.time, silent);
  p.timers->schedule(cron("10 * * * *", "UTC"), p.noting("a"));
  p.time.advance(10s + 500ms);
  p.wall.set(utc("2026-04-01 12:00:00"));
  p.time.advance(1s);
  CHECK(text(p.timers->next_due()) == "2026-04-01 12:10");
}

/// Calls `at_next_reading`, once, at the next reading.
class meddling_clock final : public wall_clock {
 public:
  explicit meddling_clock(wall_clock& real) : real_(real) {}
  wall_time now() const noexcept override {
    if (const auto act = std::exchange(at_next_reading, nullptr)) act();
    return real_.now();
  }
  std::shared_ptr<void> on_step(std::function<void()> told) override {
    return real_.on_step(std::move(told));
  }

  mutable std::function<void()> at_next_reading;

 private:
  wall_clock& real_;
};

TEST_CASE("a timer cancelled while it checks the clock does not run") {
  place p("2026-05-01 12:00:00");
  meddling_clock clock(p.wall);
  p.timers.emplace(p.time, clock);
  timer_id id;
  SUBCASE("before its deadline") {
    id = p.timers->schedule_at(utc("2026-05-01 13:00:00"), p.noting("a"));
    p.time.reschedule_after(id, 1s);  // the scheduler allows it, though nobody should do it
  }
  SUBCASE("at its deadline") { id = p.timers->schedule_at(utc("2026-05-01 12:00:01"), p.noting("a")); }
  SUBCASE("of a calendar") {
    id = p.timers->schedule(cron("* * * * *", "UTC"), p.noting("a"));
    p.time.reschedule_after(id, 1s);
  }
  std::vector<cancel_result> results;
  clock.at_next_reading = [&] {
    results.push_back(p.timers->cancel_and_wait(id));
    results.push_back(p.timers->cancel(id));
  };
  p.time.advance(1s);
  CHECK(results == std::vector{cancel_result::cancelled, cancel_result::gone});
  CHECK(p.timers->pending() == 0);
  p.time.advance(2h);
  CHECK(p.ran.take() == "");
  CHECK(p.timers->cancel(id) == cancel_result::gone);
}

TEST_CASE("a timer cancelled while it is being scheduled loses its callable at once") {
  place p("2026-05-01 12:00:00");
  meddling_clock clock(p.wall);
  p.timers.emplace(p.time, clock);
  auto token = std::make_shared<int>(0);
  const std::weak_ptr<int> callable = token;
  bool is_gone = false;
  const auto cancel = [&] {
    const auto list = p.time.list();
    REQUIRE(list.size() == 1);
    CHECK(p.timers->cancel(list[0].id) == cancel_result::cancelled);
    is_gone = callable.expired();
  };
  clock.at_next_reading = [&] {
    p.wall.set(utc("2026-05-01 12:30:00"));
    clock.at_next_reading = cancel;  // because of the step, the timer is moved before the call returns
  };
  p.timers->schedule_at(utc("2026-05-01 13:00:00"), [kept = std::move(token)] {});
  CHECK(is_gone);
  CHECK(p.timers->pending() == 0);
}

TEST_CASE("small differences between two clocks add up to a step") {
  place p("2026-05-01 12:00:00");
  silent_clock silent(p.wall);
  p.timers.emplace(p.time, silent);
  p.timers->schedule_at(utc("2026-05-01 12:01:00"), p.noting("a"));
  p.time.advance(5s);
  p.wall.set(p.wall.now() + 400us);
  p.time.advance(1s);
  for (int i = 0; i != 40; ++i) {
    p.wall.set(p.wall.now() + 400us);
    p.time.advance(1s);
  }
  p.time.advance(utc("2026-05-01 12:01:00") - p.wall.now());
  p.time.advance(2ms);  // a difference too small for a step, and a tick
  CHECK(p.ran.take().starts_with("a@2026-05-01 12:01"));
  CHECK(p.runs.at(0).lateness <= 2ms);
}

TEST_CASE("the checks of the clock end with the calendar_timers, and count for max_pending") {
  place p("2026-05-01 12:00:00", {.max_pending = 1});
  silent_clock silent(p.wall);
  p.timers.emplace(p.time, silent);
  CHECK(p.time.pending() == 1);
  CHECK(p.timers->pending() == 0);
  CHECK_THROWS_AS(calendar_timers(p.time, silent), capacity_error);
  p.timers.reset();
  CHECK(p.time.pending() == 0);
  CHECK_NOTHROW(calendar_timers(p.time, silent));
}

TEST_CASE("the checks of the clock end when a task destroys the calendar_timers") {
  place p("2026-05-01 12:00:00");
  silent_clock silent(p.wall);
  p.timers.emplace(p.time, silent);
  std::size_t left = 99;
  p.timers->schedule_at(utc("2026-05-01 12:00:01"), [&] {
    p.timers.reset();
    left = p.time.pending();
  });
  p.time.advance(1s);
  CHECK(left == 0);
}

TEST_CASE("a task never starts early, even if the notice of a step is late") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule_at(utc("2026-05-01 12:10:00"), p.noting("a"));
  p.timers->schedule(cron("10 * * * *", "UTC"), p.noting("b"));
  p.time.advance(9min);
  p.wall.set_silently(utc("2026-05-01 12:00:00"));
  p.time.advance(9min + 59s);
  CHECK(p.ran.take() == "");
  p.time.advance(1s);
  CHECK(p.ran.take() == "a@2026-05-01 12:10 b@2026-05-01 12:10");
  // Set back far: the calendar gets another point.
  p.time.advance(59min);
  p.wall.set_silently(utc("2026-05-01 03:00:00"));
  p.time.advance(1min);
  CHECK(p.ran.take() == "");
  CHECK(text(p.timers->next_due()) == "2026-05-01 03:10");
  p.time.advance(9min);
  CHECK(p.ran.take() == "b@2026-05-01 03:10");
}

TEST_CASE(
    "a timer that fires early waits for its deadline, not for a full second, and that does not count as a "
    "run") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule_at(utc("2026-05-01 12:10:00"), p.noting("a"));
  p.time.advance(9min);
  p.wall.set_silently(utc("2026-05-01 12:00:00.5"));
  p.time.advance(9min + 59s + 500ms);
  CHECK(p.ran.take() == "a@2026-05-01 12:10");
  CHECK(p.runs.at(0).run == 1);
}

TEST_CASE("due is as long before the start as the deadline is, even if a step was not reported") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule_at(utc("2026-05-01 12:10:00"), p.noting("a"));
  p.time.advance(5min);
  p.wall.set_silently(utc("2026-05-01 12:30:00"));
  p.time.advance(5min);
  CHECK(p.ran.take() == "a@2026-05-01 12:35");
  CHECK(p.runs.at(0).lateness == 25min);
  CHECK(p.runs.at(0).due == at(-15min));
}

TEST_CASE("a timer scheduled after an unreported step runs on time") {
  place p("2026-05-01 12:00:00");
  p.wall.set_silently(utc("2026-06-01 12:00:00"));
  p.timers->schedule_at(utc("2026-06-01 12:00:01"), p.noting("a"));
  p.time.advance(1s);
  CHECK(p.ran.take() == "a@2026-06-01 12:00+1000000000ns");
}

TEST_CASE("a clock that is set while a timer is being scheduled") {
  /// Sets the real clock just after a reading.
  class set_when_read final : public wall_clock {
   public:
    explicit set_when_read(manual_wall_clock& real) : real_(real) {}
    wall_time now() const noexcept override {
      const wall_time shown = real_.now();
      if (const auto t = std::exchange(next_, std::nullopt)) real_.set(*t);
      return shown;
    }
    std::shared_ptr<void> on_step(std::function<void()> f) override { return real_.on_step(std::move(f)); }
    mutable std::optional<wall_time> next_;

   private:
    manual_wall_clock& real_;
  };
  place p("2026-05-01 12:00:00");
  set_when_read clock(p.wall);
  p.timers.emplace(p.time, clock);
  SUBCASE("") {
    clock.next_ = utc("2026-05-01 17:00:00");
    p.timers->schedule_at(utc("2026-05-01 18:00:00"), p.noting("a"));
    CHECK(p.time.next_due() == at(1h));
  }
  SUBCASE("or moved") {
    p.timers->schedule_at(utc("2026-05-01 18:00:00"), p.noting("a"));
    clock.next_ = utc("2026-05-01 17:00:00");
    p.wall.set(utc("2026-05-01 16:00:00"));  // the time read for this step is outdated at once
    CHECK(p.time.next_due() == at(1h));
  }
  SUBCASE("or fires early") {
    p.timers->schedule_at(utc("2026-05-01 12:30:00"), p.noting("early"));
    p.timers->schedule_at(utc("2026-05-01 18:00:00"), p.noting("a"));
    p.wall.set_silently(utc("2026-05-01 11:00:00"));
    clock.next_ = utc("2026-05-01 17:00:00");
    p.time.advance(30min);
    CHECK(p.ran.take() == "early@2026-05-01 17:00");
    p.time.advance(30min);
  }
  p.time.advance(30min);
  p.time.advance(30min);
  CHECK(p.ran.take() == "a@2026-05-01 18:00");
}

TEST_CASE("a manual_wall_clock calls all listeners, even if one throws, and none that has ended") {
  manual_timer time;
  manual_wall_clock wall(time, utc("2026-05-01 12:00:00"));
  journal told;
  auto a = wall.on_step([&] {
    told.add("a");
    throw std::runtime_error("a");
  });
  auto b = wall.on_step([&] { told.add("b"); });
  std::shared_ptr<void> c = wall.on_step([&] {
    told.add("c");
    c.reset();  // from inside
  });
  CHECK_THROWS_AS(wall.set(utc("2026-06-01 12:00:00")), std::runtime_error);
  CHECK(told.take() == "a b c");
  CHECK(text(wall.now()) == "2026-06-01 12:00");
  a.reset();
  wall.set(utc("2026-07-01 12:00:00"));
  CHECK(told.take() == "b");
  wall.set_silently(utc("2026-08-01 12:00:00"));
  CHECK(told.take() == "");
  time.advance(1h);
  CHECK(text(wall.now()) == "2026-08-01 13:00");
  wall.set(wall_time::max() - 1ns);
  time.advance(1h);
  CHECK(wall.now() == wall_time::max());
}

TEST_CASE("a listener that another listener ends is no longer called") {
  manual_timer time;
  manual_wall_clock wall(time, utc("2026-05-01 12:00:00"));
  journal told;
  std::shared_ptr<void> b;
  const auto a = wall.on_step([&] {
    told.add("a");
    b.reset();
  });
  b = wall.on_step([&] { told.add("b"); });
  wall.set(utc("2026-06-01 12:00:00"));
  CHECK(told.take() == "a");
}

TEST_CASE("system_wall_clock() shows the system's time") {
  const auto before = std::chrono::system_clock::now();
  const auto shown = system_wall_clock().now();
  CHECK(shown >= before);
  CHECK(shown - before < 1h);
  CHECK(&system_wall_clock() == &system_wall_clock());
}

/// Cancels the timer at the reading of the clock, if there is one, between the end of its run and the destruction of its
/// callable. `end` ends the timer during the run.
std::vector<cancel_result> cancelled_after_the_run(
    const std::function<void(place&, calendar_timers&, timer_id)>& end,
    const std::function<void()>& afterwards = [] {}) {
  place p("2026-05-01 12:00:30");
  meddling_clock clock(p.wall);
  calendar_timers timers(p.time, clock);
  timer_id id;
  std::vector<cancel_result> results;
  const auto cancel = [&] { results.push_back(timers.cancel(id)); };
  const std::shared_ptr<void> last(nullptr, [&](void*) { cancel(); });
  id = timers.schedule(cron("* * * * *", "UTC"), [&, kept = last] {
    end(p, timers, id);
    clock.at_next_reading = cancel;
  });
  const_cast<std::shared_ptr<void>&>(last).reset();
  p.time.advance(30s);
  cancel();
  afterwards();
  return results;
}

TEST_CASE("a timer that has ended during a run is cancelled by nobody after it: it runs until it is gone") {
  std::vector<cancel_result> results;
  SUBCASE("cancelled") {
    results = cancelled_after_the_run([](place&, calendar_timers& timers, timer_id id) {
      CHECK(timers.cancel(id) == cancel_result::running);
    });
  }
  SUBCASE("cancelled by the scheduler's call") {
    results = cancelled_after_the_run(
        [](place& p, calendar_timers&, timer_id id) { CHECK(p.time.cancel(id) == cancel_result::running); });
  }
  SUBCASE("drained") {
    std::thread other;
    results = cancelled_after_the_run(
        [&](place& p, calendar_timers& timers, timer_id id) {
          CHECK(timers.pending(id));
          other = std::thread([&p] { CHECK(p.time.drain(1h)); });  // waits for the run
          const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
          while (timers.pending(id) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
          CHECK(!timers.pending(id));
        },
        [&] { other.join(); });
  }
  REQUIRE(results.size() >= 2);
  CHECK(results.back() == cancel_result::gone);
  results.pop_back();
  for (const cancel_result r : results) CHECK(r == cancel_result::running);
}

TEST_CASE("a timer that is cancelled between two runs, while it looks at the clock, is cancelled once") {
  const auto results = cancelled_after_the_run([](place&, calendar_timers&, timer_id) {});
  REQUIRE(results.size() == 3);
  CHECK(results[0] == cancel_result::cancelled);
  CHECK(results[2] == cancel_result::gone);
}

}  // namespace calendar_false_clocks
