// How a periodic timer proceeds from one run to the next, without a scheduler.
#include "scheduler/repetition.hpp"

#include <optional>

#include <doctest/doctest.h>

#include "scheduler/virtual_time.hpp"

namespace scheduler_repetition {

using namespace rondo;
using namespace rondo::test;
using rondo::detail::repetition;

constexpr bool idle = false, busy = true;
constexpr bool inline_runs = false, submits = true;

repetition of(const recurrence& when) { return {when, when.first(at(0s), 0)}; }

/// A pass at `now`, in a tick that has just begun.
repetition::moment pass_at(duration now) { return {at(now), at(now)}; }

TEST_CASE("each point begins a run, and the timer waits for the next one") {
  repetition timer = of(every(10ms));
  const auto first = timer.point_came(pass_at(10ms), idle, inline_runs);
  REQUIRE(first.run);
  CHECK(first.run->run == 1);
  CHECK(first.run->due == at(10ms));
  CHECK(first.wait_for == at(20ms));
  CHECK_FALSE(first.is_late);
  CHECK(timer.run_ended(at(12ms), true) == std::nullopt);

  const auto late = timer.point_came(pass_at(45ms), idle, inline_runs);
  REQUIRE(late.run);
  CHECK(late.run->run == 2);
  CHECK(late.missed == 2);
  CHECK(late.wait_for == at(50ms));
  CHECK(timer.runs() == 2);
  CHECK_FALSE(timer.over());
}

TEST_CASE("after its last run has begun, a timer waits for nothing") {
  repetition timer = of(every(10ms).times(2));
  CHECK(timer.point_came(pass_at(10ms), idle, inline_runs).wait_for == at(20ms));
  const auto last = timer.point_came(pass_at(20ms), idle, inline_runs);
  CHECK(last.run);
  CHECK(last.wait_for == std::nullopt);
  CHECK(timer.over());
}

TEST_CASE("a point that overlaps a run is dropped") {
  repetition timer = of(every(10ms));
  timer.point_came(pass_at(10ms), idle, submits);
  const auto next = timer.point_came(pass_at(20ms), busy, submits);
  CHECK_FALSE(next.run);
  CHECK(next.overlapped == 1);
  CHECK(next.wait_for == at(30ms));
  CHECK(timer.runs() == 1);
}

TEST_CASE("runs may overlap if overlapping is allowed") {
  repetition timer = of(every(10ms).on_overlap(overlapping_runs::allow));
  timer.point_came(pass_at(10ms), idle, submits);
  const auto next = timer.point_came(pass_at(20ms), busy, submits);
  REQUIRE(next.run);
  CHECK(next.run->run == 2);
  CHECK(next.overlapped == 0);
}

TEST_CASE("the last point of a list that overlaps a run ends the timer") {
  repetition timer = of(intervals({10ms, 10ms}));
  timer.point_came(pass_at(10ms), idle, submits);
  const auto last = timer.point_came(pass_at(20ms), busy, submits);
  CHECK_FALSE(last.run);
  CHECK(last.overlapped == 1);
  CHECK(last.wait_for == std::nullopt);
  CHECK(timer.over());
}

TEST_CASE("one point is queued behind the run in progress, and later points are dropped") {
  repetition timer = of(every(10ms).on_overlap(overlapping_runs::queue_one).times(3));
  timer.point_came(pass_at(10ms), idle, submits);
  const auto queued = timer.point_came(pass_at(20ms), busy, submits);
  CHECK_FALSE(queued.run);
  CHECK(queued.overlapped == 0);
  CHECK(queued.wait_for == at(30ms));
  CHECK(timer.point_came(pass_at(30ms), busy, submits).overlapped == 1);

  CHECK(timer.run_ended(at(35ms), true) == at(20ms));
  const auto begun = timer.point_came(pass_at(36ms), idle, submits);
  REQUIRE(begun.run);
  CHECK(begun.run->run == 2);
  CHECK(begun.run->due == at(20ms));
  CHECK(begun.wait_for == at(40ms));
  CHECK_FALSE(timer.over());
}

TEST_CASE("if the last run is queued, the timer ends only when that run begins") {
  repetition timer = of(every(10ms).on_overlap(overlapping_runs::queue_one).times(2));
  timer.point_came(pass_at(10ms), idle, submits);
  const auto queued = timer.point_came(pass_at(45ms), busy, submits);
  CHECK(queued.overlapped == 0);
  CHECK(queued.wait_for == std::nullopt);
  CHECK_FALSE(timer.over());
  CHECK(timer.run_ended(at(50ms), false) == at(20ms));
  const auto begun = timer.point_came(pass_at(50ms), idle, submits);
  CHECK(begun.run);
  CHECK(begun.wait_for == std::nullopt);
  CHECK(timer.over());
}

TEST_CASE("inline late runs of a burst follow each other in the same pass") {
  repetition timer = of(every(10ms).on_missed(missed_runs::burst));
  auto next = timer.point_came(pass_at(30ms), idle, inline_runs);
  REQUIRE(next.run);
  CHECK(next.run->due == at(10ms));
  CHECK(next.wait_for == at(20ms));
  CHECK(next.is_late);
  next = timer.point_came(pass_at(30ms), idle, inline_runs);
  CHECK(next.wait_for == at(30ms));
  CHECK(next.is_late);
  next = timer.point_came(pass_at(30ms), idle, inline_runs);
  CHECK(next.wait_for == at(40ms));
  CHECK_FALSE(next.is_late);
}

TEST_CASE("submitted late runs of a burst each wait for the one before to end") {
  repetition timer = of(every(10ms).on_missed(missed_runs::burst));
  auto next = timer.point_came(pass_at(30ms), idle, submits);
  CHECK(next.run);
  CHECK(next.wait_for == std::nullopt);
  CHECK(timer.run_ended(at(31ms), false) == at(20ms));
  next = timer.point_came(pass_at(31ms), idle, submits);
  REQUIRE(next.run);
  CHECK(next.run->run == 2);
  CHECK(next.wait_for == std::nullopt);
  CHECK(timer.run_ended(at(32ms), false) == at(30ms));
  next = timer.point_came(pass_at(32ms), idle, submits);
  CHECK(next.wait_for == at(40ms));
}

TEST_CASE("a burst drops no point while it catches up") {
  repetition timer = of(every(10ms).on_missed(missed_runs::burst));
  timer.point_came(pass_at(35ms), idle, submits);
  CHECK(timer.run_ended(at(36ms), false) == at(20ms));
  timer.point_came(pass_at(36ms), idle, submits);
  CHECK(timer.run_ended(at(37ms), false) == at(30ms));
  CHECK(timer.point_came(pass_at(37ms), idle, submits).wait_for == at(40ms));
  const auto overlapping = timer.point_came(pass_at(40ms), busy, submits);
  CHECK_FALSE(overlapping.run);
  CHECK(overlapping.overlapped == 0);
  CHECK(overlapping.wait_for == std::nullopt);
  CHECK(timer.run_ended(at(41ms), false) == at(40ms));
}

TEST_CASE("a burst drops none of several points that came during a run") {
  repetition timer = of(every(10ms).on_missed(missed_runs::burst));
  timer.point_came(pass_at(10ms), idle, submits);
  const auto overlapping = timer.point_came(pass_at(35ms), busy, submits);
  CHECK(overlapping.overlapped == 0);
  CHECK(overlapping.wait_for == std::nullopt);
  SUBCASE("they follow when the run ends") { CHECK(timer.run_ended(at(36ms), false) == at(20ms)); }
  SUBCASE("they do not follow if the timer is moved") {
    timer.moved_to(at(100ms), 0, nullptr);
    CHECK(timer.run_ended(at(36ms), true) == std::nullopt);
  }
}

TEST_CASE("a point of a burst is late when its tick has begun, not before") {
  repetition timer = of(every(11ms).on_missed(missed_runs::burst));
  const auto next = timer.point_came({at(25ms), at(20ms)}, idle, inline_runs);
  CHECK(next.wait_for == at(22ms));
  CHECK_FALSE(next.is_late);
}

TEST_CASE("a timer whose gaps count from the end waits for the next point when its run has ended") {
  repetition timer = of(after_completion(10ms));
  CHECK(timer.point_came(pass_at(10ms), idle, inline_runs).wait_for == std::nullopt);
  CHECK(timer.run_ended(at(17ms), false) == at(27ms));
  SUBCASE("unless the timer was moved during the run") {
    timer.point_came(pass_at(27ms), idle, submits);
    timer.moved_to(at(50ms), 0, nullptr);
    CHECK(timer.run_ended(at(30ms), true) == std::nullopt);
  }
  SUBCASE("even if it was moved into its own run") {
    timer.point_came(pass_at(27ms), idle, submits);
    timer.moved_to(at(28ms), 0, nullptr);
    const auto overlapping = timer.point_came(pass_at(28ms), busy, submits);
    CHECK(overlapping.overlapped == 1);
    CHECK(overlapping.wait_for == std::nullopt);
    CHECK_FALSE(timer.over());
    CHECK(timer.run_ended(at(30ms), false) == at(40ms));
  }
}

TEST_CASE("a moved timer continues from its new deadline, and a run that was taken back does not count") {
  repetition timer = of(every(10ms).on_overlap(overlapping_runs::queue_one).times(3));
  const auto submitted = timer.point_came(pass_at(10ms), idle, submits);
  timer.point_came(pass_at(20ms), busy, submits);
  SUBCASE("the submitted run is taken back") {
    timer.moved_to(at(100ms), 1, &*submitted.run);
    CHECK(timer.runs() == 0);
    const auto next = timer.point_came(pass_at(100ms), idle, submits);
    REQUIRE(next.run);
    CHECK(next.run->run == 1);
    CHECK(next.wait_for == at(110ms));
  }
  SUBCASE("the submitted run has started: the queued one is moved") {
    timer.moved_to(at(100ms), 0, nullptr);
    CHECK(timer.run_ended(at(30ms), true) == std::nullopt);
    const auto next = timer.point_came(pass_at(100ms), idle, submits);
    REQUIRE(next.run);
    CHECK(next.run->run == 2);
    CHECK(next.wait_for == at(110ms));
  }
}

TEST_CASE("a list continues after the queued run that was moved") {
  repetition timer = of(intervals({10ms, 10ms, 10ms, 50ms}).on_overlap(overlapping_runs::queue_one));
  timer.point_came(pass_at(10ms), idle, submits);
  timer.point_came(pass_at(20ms), busy, submits);
  timer.moved_to(at(100ms), 0, nullptr);
  timer.run_ended(at(30ms), true);
  CHECK(timer.point_came(pass_at(100ms), idle, submits).wait_for == at(110ms));
}

TEST_CASE("a timer with no points left has one more when it is moved") {
  repetition timer = of(every(10ms).times(1));
  const auto last = timer.point_came(pass_at(10ms), idle, submits);
  CHECK(timer.over());
  timer.moved_to(at(30ms), 1, &*last.run);
  CHECK_FALSE(timer.over());
  CHECK(timer.point_came(pass_at(30ms), idle, submits).run);
  CHECK(timer.over());
}

}  // namespace scheduler_repetition
