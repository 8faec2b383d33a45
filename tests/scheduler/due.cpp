// due(id): the moment that a timer waits for.
#include "scheduler/virtual_time.hpp"

namespace scheduler_due {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("due() is the exact deadline, not its tick") {
  manual_timer time;
  CHECK(time.due(time.schedule_after(1'300us, doing_nothing())) == at(1'300us));
  CHECK(time.due(time.schedule_at(at(-2'700us), doing_nothing())) == at(-2'700us));
  CHECK(time.due(time.schedule_after(1000h, doing_nothing())) == at(1000h));
  CHECK(time.due(time.schedule_every(2'500us, doing_nothing())) == at(2'500us));
}

TEST_CASE("due() of a timer that is never due is the end of the clock") {
  manual_timer time;
  const auto id = time.schedule_after(std::chrono::hours::max(), doing_nothing());
  CHECK(time.due(id) == time_point::max());
  time.reschedule_after(id, 1s);
  CHECK(time.due(id) == at(1s));
  time.reschedule_at(id, time_point::max());
  CHECK(time.due(id) == time_point::max());
}

TEST_CASE("due() of a timer within the clock's last tick, which never begins, is the end of the clock") {
  manual_timer time;
  const auto id = time.schedule_at(time_point::max() - 1ns, doing_nothing());
  CHECK(time.due(id) == time_point::max());
  time.reschedule_after(id, 1s);
  time.reschedule_at(id, time_point::max() - 2ns);
  CHECK(time.due(id) == time_point::max());
}

TEST_CASE("due() is empty for a timer that is not pending") {
  manual_timer time;
  manual_timer other;
  const auto id = time.schedule_after(1s, doing_nothing());
  CHECK(time.due(timer_id()) == std::nullopt);
  CHECK(other.due(id) == std::nullopt);
  SUBCASE("cancelled") { time.cancel(id); }
  SUBCASE("run") { time.advance(1s); }
  SUBCASE("stopped") { time.stop(); }
  SUBCASE("and its record is used by another timer") {
    time.cancel(id);
    time.schedule_after(2s, doing_nothing());
  }
  SUBCASE("and its record is used by a timer that is never due") {
    time.cancel(id);
    time.schedule_after(duration::max(), doing_nothing());
  }
  CHECK(time.due(id) == std::nullopt);
}

TEST_CASE("due() does not change while a due timer has not run") {
  manual_timer time;
  const auto id = time.schedule_after(1s, doing_nothing());
  time.elapse(1h);
  CHECK(time.due(id) == at(1s));
}

TEST_CASE("due() is right for timers of the pass in progress") {
  manual_timer time;
  timer_id second;
  std::optional<time_point> seen, own;
  time.schedule_after(1s, [&](const firing& f) {
    seen = time.due(second);
    own = time.due(f.id);
  });
  second = time.schedule_after(1s, doing_nothing());
  time.advance(1s);
  CHECK(seen == at(1s));
  CHECK(own == std::nullopt);  // its only run is in progress
}

TEST_CASE("due() of a periodic timer is that of its next run, even inside its own run") {
  manual_timer time;
  std::optional<time_point> inside;
  const auto id = time.schedule_every(1s, [&](const firing& f) { inside = time.due(f.id); });
  time.advance(1s);
  CHECK(inside == at(2s));
  CHECK(time.due(id) == at(2s));
  time.reschedule_at(id, at(1'500ms));
  CHECK(time.due(id) == at(1'500ms));
}

TEST_CASE("due() is empty for a timer that waits for the end of a run") {
  manual_timer time;
  std::optional<time_point> inside = at(0s);
  const auto id = time.schedule(after_completion(1s), [&](const firing& f) { inside = time.due(f.id); });
  time.advance(1s);
  CHECK(inside == std::nullopt);
  CHECK(time.due(id) == at(2s));
}

TEST_CASE("due() is empty for a timer whose only run an executor has") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto once = time.schedule_after(1s, doing_nothing());
  const auto often = time.schedule_every(1s, doing_nothing());
  time.advance(1s);
  CHECK(time.pending(once));
  CHECK(time.due(once) == std::nullopt);
  CHECK(time.due(often) == at(2s));
  time.reschedule_at(once, at(5s));  // taken back
  CHECK(time.due(once) == at(5s));
}

TEST_CASE("due() of a timer with jitter includes the jitter") {
  manual_timer time;
  std::vector<firing> runs;
  const auto id = time.schedule(every(1s).jitter(0.5, 7), recording(runs));
  for (int i = 0; i != 5; ++i) {
    const auto due = time.due(id);
    time.advance_to_next();
    REQUIRE(runs.size() == static_cast<std::size_t>(i + 1));
    CHECK(due == runs.back().due);
  }
}

}  // namespace scheduler_due
