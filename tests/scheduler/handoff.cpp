// Tickets of runs that have been submitted to an executor.
#include "scheduler/handoff.hpp"

#include <doctest/doctest.h>

#include "failing_new.hpp"
#include "scheduler/record.hpp"

namespace scheduler_handoff {

using namespace rondo::detail;

submitted_runs::run run(run_ticket number) { return {number, static_cast<rondo::tick_number>(number), {}}; }

TEST_CASE("the ticket of a one-shot is valid once") {
  record once;
  once.submit(3);
  CHECK(once.submitted() == 1);
  CHECK_FALSE(once.redeem(2));
  SUBCASE("and is redeemed") {
    CHECK(once.redeem(3));
    CHECK(once.submitted() == 0);
  }
  SUBCASE("or taken back") { once.take_all_back(); }
  CHECK_FALSE(once.redeem(3));
}

TEST_CASE("a ticket of a periodic timer is valid once") {
  submitted_runs runs;
  runs.reserve_one();
  runs.submit(run(3));
  CHECK(runs.size() == 1);
  CHECK(runs.oldest()->number == 3);
  CHECK_FALSE(runs.redeem(2));
  SUBCASE("and is redeemed") { CHECK(runs.redeem(3)); }
  SUBCASE("or taken back") { runs.take_all_back(); }
  CHECK_FALSE(runs.redeem(3));
  CHECK(runs.size() == 0);
  CHECK(runs.oldest() == nullptr);
}

TEST_CASE("overlapping runs can be redeemed in any order, and the oldest is known") {
  submitted_runs runs;
  for (run_ticket number = 1; number <= 3; ++number) {
    runs.reserve_one();
    runs.submit(run(number));
  }
  CHECK(runs.redeem(2));
  CHECK(runs.oldest()->number == 1);
  CHECK(runs.redeem(1));
  CHECK(runs.oldest()->number == 3);
  CHECK(runs.size() == 1);
}

TEST_CASE("a job that is destroyed inside the executor's call is reported when the call ends") {
  executor_call call;
  call.begin(1);
  SUBCASE("inside") {
    CHECK(call.note_drop(1));
    CHECK(call.end());
    CHECK_FALSE(call.note_drop(1));
  }
  SUBCASE("after it") {
    CHECK_FALSE(call.end());
    CHECK_FALSE(call.note_drop(1));
  }
  SUBCASE("another job, of an earlier run") {
    CHECK_FALSE(call.note_drop(7));
    CHECK_FALSE(call.end());
  }
  call.begin(2);
  CHECK_FALSE(call.end());
}

TEST_CASE("without memory for one more ticket, the existing tickets stay valid" *
          doctest::skip(!rondo::test::failing_new::available)) {
  submitted_runs runs;
  runs.reserve_one();
  runs.submit(run(1));
  {
    const rondo::test::failing_new no_memory(0);
    CHECK_THROWS_AS(runs.reserve_one(), std::bad_alloc);
  }
  CHECK(runs.size() == 1);
  CHECK(runs.redeem(1));
}
}  // namespace scheduler_handoff
