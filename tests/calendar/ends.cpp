// How wall-clock timers end: with their calendar_timers, also from inside a task, and with their scheduler.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rondo/errors.hpp>

#include "calendar/almanac.hpp"

namespace calendar_ends {

using namespace calendar_test;

/// Notes its destruction.
auto watched(journal& j, const std::string& what) {
  return std::shared_ptr<void>(nullptr, [&j, what](void*) { j.add("~" + what); });
}

TEST_CASE("the destructor cancels the timers and destroys their callables") {
  place p("2026-05-01 12:00:00");
  journal destroyed;
  p.timers->schedule_at(p.wall.now() + 1h, [kept = watched(destroyed, "a")] {});
  p.timers->schedule(daily(0s, "UTC"), [kept = watched(destroyed, "b")](const wall_firing&) {});
  const auto other = p.time.schedule_after(1h, doing_nothing());
  p.timers.reset();
  const std::string both = destroyed.take();
  CHECK((both == "~a ~b" || both == "~b ~a"));
  CHECK(p.time.pending() == 1);
  CHECK(p.time.pending(other));
}

TEST_CASE("cancel destroys the callable at once, and so does the end of a run") {
  place p("2026-05-01 12:00:00");
  journal destroyed;
  const auto id = p.timers->schedule_at(p.wall.now() + 1h, [kept = watched(destroyed, "a")] {});
  CHECK(p.timers->cancel(id) == cancel_result::cancelled);
  CHECK(destroyed.take() == "~a");
  p.timers->schedule_at(p.wall.now() + 1h,
                        [&destroyed, kept = watched(destroyed, "b")] { destroyed.add("b"); });
  p.time.advance(1h);
  CHECK(destroyed.take() == "b ~b");
}

TEST_CASE("a task may destroy its calendar_timers, and the clock with it") {
  manual_timer time;
  struct owner {
    explicit owner(manual_timer& t) : wall(t, utc("2026-05-01 12:00:00")), timers(t, wall) {}
    manual_wall_clock wall;
    calendar_timers timers;
  };
  auto all = std::make_unique<owner>(time);
  journal ran;
  all->timers.schedule(daily(13h, "UTC"), [&] {
    ran.add("a");
    all.reset();
    ran.add("end");
  });
  all->timers.schedule_at(all->wall.now() + 2h, [&] { ran.add("never"); });
  time.advance(48h);
  CHECK(ran.take() == "a end");
  CHECK(time.pending() == 0);
}

TEST_CASE("the destructor of a callable may destroy the calendar_timers") {
  place p("2026-05-01 12:00:00");
  auto timers = std::make_unique<calendar_timers>(p.time, p.wall);
  const std::shared_ptr<void> last(nullptr, [&](void*) { timers.reset(); });
  bool ran = false;
  timers->schedule_at(p.wall.now() + 1h, [&ran, kept = last] { ran = true; });
  const_cast<std::shared_ptr<void>&>(last).reset();
  p.time.advance(1h);
  CHECK(ran);
  CHECK(timers == nullptr);
}

TEST_CASE(
    "what stop() hands back may be run by hand, even after the calendar_timers and the clock are gone") {
  std::vector<unfired> left;
  manual_timer time;
  journal ran;
  {
    manual_wall_clock wall(time, utc("2026-05-01 12:00:00"));
    calendar_timers timers(time, wall);
    const auto noting = [&](const wall_firing& f) { ran.add(text(f.wall_due)); };
    const auto id = timers.schedule_at(utc("2026-05-01 13:00:00"), noting);
    timers.schedule(daily(14h, "UTC"), noting);
    timers.schedule_at(wall_time::max(), noting);
    left = time.stop();
    CHECK(timers.pending() == 0);
    CHECK(timers.next_due() == std::nullopt);
    CHECK(timers.due(id) == std::nullopt);
    CHECK(timers.cancel(id) == cancel_result::gone);
    wall.set(utc("2026-05-02 12:00:00"));
    CHECK_THROWS_AS(timers.schedule_at(wall_time{}, noting), stopped_error);
    left.at(0).work();
  }
  REQUIRE(left.size() == 3);
  CHECK(left[0].due == at(1h));
  for (auto& u : left) u.work();
  CHECK(ran.take() == "2026-05-01 13:00 2026-05-01 13:00 2026-05-01 14:00 never");
}

TEST_CASE("a calendar_timers may outlive its scheduler") {
  journal destroyed;
  auto time = std::make_unique<manual_timer>();
  manual_timer other;
  manual_wall_clock wall(other, utc("2026-05-01 12:00:00"));
  calendar_timers timers(*time, wall);
  const auto id = timers.schedule_at(wall.now() + 1h, [kept = watched(destroyed, "a")] {});
  time.reset();
  CHECK(destroyed.take() == "~a");
  wall.set(utc("2026-05-01 13:00:00"));
  CHECK_FALSE(timers.pending(id));
  CHECK(timers.pending() == 0);
  CHECK(timers.cancel_and_wait(id) == cancel_result::gone);
  CHECK_THROWS_AS(timers.schedule(daily(0s, "UTC"), doing_nothing()), stopped_error);
  CHECK_THROWS_AS(timers.schedule_at(wall_time{}, doing_nothing()), stopped_error);
}

TEST_CASE("drain() ends wall-clock timers as it ends periodic timers") {
  place p("2026-05-01 12:00:00");
  p.timers->schedule_at(p.wall.now() + 1h, p.noting("a"));
  p.timers->schedule(daily(0s, "UTC"), p.noting("b"));
  CHECK(p.time.drain(1h));
  CHECK(p.ran.take() == "");
  CHECK(p.timers->pending() == 0);
  CHECK_THROWS_AS(p.timers->schedule_at(wall_time{}, doing_nothing()), stopped_error);
}

TEST_CASE("another listener may destroy the calendar_timers while the clock reports a step") {
  place p("2026-05-01 12:00:00");
  std::unique_ptr<calendar_timers> timers;
  bool dropped = false;
  timers = std::make_unique<calendar_timers>(p.time, p.wall);
  for (int i = 0; i != 3; ++i) timers->schedule_at(p.wall.now() + 1h, doing_nothing());
  auto listener = p.wall.on_step([&] {
    timers.reset();
    dropped = true;
  });
  p.wall.set(utc("2026-05-01 12:30:00"));
  CHECK(dropped);
  CHECK(p.time.pending() == 0);
}

}  // namespace calendar_ends
