// What checked builds report about a scheduler whose state is broken.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "scheduler/record.hpp"
#include "scheduler/shard.hpp"
#include "scheduler/shown.hpp"
#include "scheduler/timer_group.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_faults {

using namespace rondo::detail;
using namespace rondo::test;

using record = rondo::detail::record;

/// A timer that waits for its only run.
struct one_shot_record : record {
  one_shot_record() {
    state = life::live;
    where = waits_in::wheel;
  }
};

/// A periodic timer that waits for its first run.
struct periodic_record : record {
  explicit periodic_record(const rondo::recurrence& when = rondo::every(1ms)) {
    with_extra().repeats = std::make_unique<periodic_part>(periodic_part{{when, when.first(at(0s), 0)}, {}});
    kind = timer_kind::periodic;
    state = life::live;
    where = waits_in::wheel;
  }
  /// The run of the point that it waits for begins.
  void begin() {
    repeats().next.point_came({at(1ms), at(1ms)}, in_progress(), false);
    note_begin();
  }
};

TEST_CASE("a record in any state of a timer's life has no fault") {
  one_shot_record once;
  CHECK(once.fault() == "");
  once.where = waits_in::never_due;
  CHECK(once.fault() == "");
  once.where = waits_in::nowhere;
  once.submit(1);
  CHECK(once.fault() == "");
  REQUIRE(once.redeem(1));
  once.note_begin();
  once.state = life::completed;
  CHECK(once.fault() == "");

  periodic_record often;
  often.begin();
  CHECK(often.fault() == "");
  often.submit({7, 1, {}});
  CHECK(often.fault() == "");
}

TEST_CASE("a timer that is pending and waits for nothing is found") {
  periodic_record often;
  often.where = waits_in::nowhere;
  CHECK(often.fault() == "it is pending, but waits for nothing");
  one_shot_record once;
  once.where = waits_in::nowhere;
  CHECK(once.fault() == "it is pending, but waits for nothing");
}

TEST_CASE("contradictions in a record are found") {
  one_shot_record once;
  once.where = waits_in::nowhere;
  SUBCASE("it is cancelled, and its job would start") {
    once.state = life::ended;
    once.submit(1);
    CHECK(once.fault() == "it is over, but its runs in the executor would start");
  }
  SUBCASE("it is over, and it waits") {
    once.state = life::completed;
    once.where = waits_in::never_due;
    CHECK(once.fault() == "it is over, but waits for a run");
  }
  SUBCASE("its only run is in progress, and it is still pending") {
    once.note_begin();
    CHECK(once.fault() == "it runs once and is running, but is still pending");
  }
  SUBCASE("its only run is submitted, and it still waits") {
    once.submit(1);
    once.where = waits_in::never_due;
    CHECK(once.fault() == "it runs once, but waits although it is submitted");
  }
  SUBCASE("its only run is submitted, and it is still in the wheel") {
    wheel_core all(8);
    all.schedule(once, 1);
    once.submit(1);
    CHECK(once.fault() == "it waits for nothing in the wheel, but its node is in one");
  }
  SUBCASE("it is never due, and it is still in the wheel") {
    wheel_core all(8);
    all.schedule(once, 1);
    once.where = waits_in::never_due;
    CHECK(once.fault() == "it waits for nothing in the wheel, but its node is in one");
  }
  SUBCASE("it waits for memory, and it is still in the wheel") {
    wheel_core all(8);
    all.schedule(once, 1);
    once.where = waits_in::no_memory;
    CHECK(once.fault() == "it waits for nothing in the wheel, but its node is in one");
  }
  SUBCASE("it runs once, and has a recurrence") {
    periodic_record often;
    often.kind = timer_kind::one_shot;
    CHECK(often.fault() == "its kind does not match what it has");
  }
  SUBCASE("it is periodic, and has no recurrence") {
    once.kind = timer_kind::periodic;
    CHECK(once.fault() == "its kind does not match what it has");
  }
  SUBCASE("it is plain, and has options") {
    once.keep({.name = "report"});
    CHECK(once.name() == "report");
    once.kind = timer_kind::plain;
    CHECK(once.fault() == "its kind does not match what it has");
  }
  SUBCASE("it is plain, and in a group") {
    struct group : timer_group {
      std::shared_ptr<void> self() noexcept override { return nullptr; }
    } all;
    all.join(once, all.take_place(), [] {});
    CHECK(once.fault() == "its kind does not match what it has");
    once.kind = timer_kind::owned;
    once.where = waits_in::wheel;
    CHECK(once.fault() == "");
  }
  SUBCASE("it has an owner, and has none") {
    once.kind = timer_kind::owned;
    CHECK(once.fault() == "its kind does not match what it has");
  }
  SUBCASE("it has an unknown ticket") {
    periodic_record often;
    often.is_submitted = true;
    CHECK(often.fault() == "the executor has runs of it, but 0 are known");
  }
  SUBCASE("it has a ticket that is not valid") {
    periodic_record often;
    often.begin();
    often.submit({1, 0, {}});
    often.is_submitted = false;
    CHECK(often.fault() == "the executor has no runs of it, but 1 are known");
  }
  SUBCASE("a run is submitted that has not begun") {
    periodic_record often;
    often.submit({1, 0, {}});
    CHECK(often.fault() == "more of its runs are submitted than have begun");
  }
  SUBCASE("its last run is over") {
    periodic_record often(rondo::every(1ms).times(1));
    often.begin();
    CHECK(often.fault() == "no run of it is to come, but it is still pending");
  }
}

TEST_CASE("counters and places that do not add up are found and reported with the figures") {
  const counters sums{.scheduled = 10, .ended = 6, .completed = 3, .cancelled = 2, .returned = 1};
  const census found{.in_wheel = 2, .never_due = 1, .with_executor = 1, .slots = 64, .free = 60};
  CHECK(fault_of(sums, found) == "");

  counters lost = sums;
  ++lost.ended;
  CHECK(fault_of(lost, found) ==
        "7 timers ceased to be pending, but 3 completed + 2 cancelled + 1 returned are counted");
  census missing = found;
  --missing.in_wheel;
  CHECK(fault_of(sums, missing).find("4 timers are pending, but 1 in the wheel + 0 in the pass") == 0);
  census leaked = found;
  --leaked.free;
  CHECK(fault_of(sums, leaked) == "of 64 records 59 are free, but 4 timers are pending");
}

}  // namespace scheduler_faults
