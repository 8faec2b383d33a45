// What checked builds say of a scheduler that is not as it must be.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "scheduler/placement.hpp"
#include "scheduler/record_fault.hpp"
#include "scheduler/virtual_time.hpp"
#include "sync/threads.hpp"

namespace {

using namespace rondo::detail;
using namespace rondo::test;

using record = rondo::detail::record<rondo::detail::threads>;

/// One that waits for its first run.
struct periodic_record : record {
  periodic_record() : record(0) {
    live = true;
    const auto often = rondo::every(1ms);
    repeats = std::make_unique<rondo::detail::repetition>(often, often.first(at(0s), 0));
  }
};

TEST_CASE("a record in any state of a timer's life has no fault") {
  record once(0);
  CHECK(fault_of(once) == "");
  once.live = true;
  CHECK(fault_of(once) == "");
  once.place = waiting::apart;
  CHECK(fault_of(once) == "");
  once.place = waiting::nowhere;
  once.handed = 1;
  once.only_ticket = once.tickets = 1;
  CHECK(fault_of(once) == "");
  once.live = false;
  once.handed = 0;
  once.running = 1;
  CHECK(fault_of(once) == "");

  periodic_record often;
  often.running = 1;
  CHECK(fault_of(often) == "");
}

TEST_CASE("a timer that is pending and waits for nothing is found") {
  periodic_record often;
  often.place = waiting::nowhere;
  CHECK(fault_of(often) == "it is pending and waits for nothing");
  record once(0);
  once.live = true;
  once.place = waiting::nowhere;
  CHECK(fault_of(once) == "it is pending and waits for nothing");
}

TEST_CASE("what does not fit together in a record is found") {
  record once(0);
  once.place = waiting::nowhere;
  SUBCASE("cancelled, and its job would start") {
    once.handed = 1;
    CHECK(fault_of(once) == "it is over, and yet the executor's runs of it would start");
  }
  SUBCASE("a single run in progress, of one that is pending still") {
    once.live = true;
    once.running = 1;
    CHECK(fault_of(once) == "it runs once, does, and is pending still");
  }
  SUBCASE("a ticket that nobody knows") {
    periodic_record often;
    often.handed = 1;
    CHECK(fault_of(often) == "the executor has 1 runs of it, and 0 are known");
  }
  SUBCASE("its last run is over") {
    periodic_record often;
    often.running = 1;
    often.repeats->last_begun = true;
    CHECK(fault_of(often) == "no run of it is to come, and it is pending still");
  }
}

TEST_CASE("counters and places that do not add up are found, with the figures") {
  const tally sums{.scheduled = 10, .left = 6, .completed = 3, .cancelled = 2, .returned = 1};
  const placement where{.in_wheel = 2, .never_due = 1, .with_executor = 1, .slots = 64, .free = 60};
  CHECK(fault_of(sums, where) == "");

  tally lost = sums;
  ++lost.left;
  CHECK(fault_of(lost, where) ==
        "7 timers ceased to be pending, and 3 completed + 2 cancelled + 1 returned are counted");
  placement missing = where;
  --missing.in_wheel;
  CHECK(fault_of(sums, missing).find("4 timers are pending, and 1 in the wheel + 0 in the pass") == 0);
  placement leaked = where;
  --leaked.free;
  CHECK(fault_of(sums, leaked) == "of 64 records 59 are free, and 4 timers are pending");
}

}  // namespace
