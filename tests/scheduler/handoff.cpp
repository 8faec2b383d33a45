// Tickets of runs that an executor has.
#include "scheduler/handoff.hpp"

#include <doctest/doctest.h>

#include "failing_new.hpp"

namespace {

using namespace rondo::detail;

handoff::run run(handoff::ticket number) { return {number, static_cast<rondo::tick_number>(number), {}}; }

TEST_CASE("a ticket is good once") {
  handoff tickets;
  SUBCASE("of a one-shot") {
    tickets.submit(3);
    CHECK(tickets.size() == 1);
    CHECK(tickets.only() == 3);
  }
  SUBCASE("of a periodic timer") {
    tickets.prepare_for_several();
    tickets.reserve_one();
    tickets.submit(run(3));
    CHECK(tickets.size() == 1);
    CHECK(tickets.oldest()->number == 3);
  }
  CHECK_FALSE(tickets.redeem(2));
  CHECK(tickets.redeem(3));
  CHECK_FALSE(tickets.redeem(3));
  CHECK(tickets.size() == 0);
  CHECK(tickets.oldest() == nullptr);
}

TEST_CASE("runs that overlap are redeemed in any order, and the oldest is known") {
  handoff tickets;
  tickets.prepare_for_several();
  for (handoff::ticket number = 1; number <= 3; ++number) {
    tickets.reserve_one();
    tickets.submit(run(number));
  }
  CHECK(tickets.redeem(2));
  CHECK(tickets.oldest()->number == 1);
  CHECK(tickets.redeem(1));
  CHECK(tickets.oldest()->number == 3);
  CHECK(tickets.size() == 1);
}

TEST_CASE("what was taken back is not redeemed") {
  handoff tickets;
  SUBCASE("of a one-shot") { tickets.submit(1); }
  SUBCASE("of a periodic timer") {
    tickets.prepare_for_several();
    tickets.submit(run(1));
  }
  tickets.take_all_back();
  CHECK(tickets.size() == 0);
  CHECK_FALSE(tickets.redeem(1));
}

TEST_CASE("a job that is destroyed inside the executor's call is told when that ends") {
  handoff tickets;
  tickets.submit(1);
  SUBCASE("inside") {
    CHECK(tickets.note_drop(1));
    CHECK(tickets.end_call());
    CHECK_FALSE(tickets.note_drop(1));
    CHECK_FALSE(tickets.end_call());
  }
  SUBCASE("after it") {
    CHECK_FALSE(tickets.end_call());
    CHECK_FALSE(tickets.note_drop(1));
  }
  SUBCASE("another job, of an earlier run") {
    CHECK_FALSE(tickets.note_drop(7));
    CHECK_FALSE(tickets.end_call());
  }
  CHECK(tickets.size() == 1);
}

TEST_CASE("without memory for one more ticket those given out stay" *
          doctest::skip(!rondo::test::failing_new::available)) {
  handoff tickets;
  tickets.prepare_for_several();
  tickets.reserve_one();
  tickets.submit(run(1));
  {
    const rondo::test::failing_new no_memory(0);
    CHECK_THROWS_AS(tickets.reserve_one(), std::bad_alloc);
  }
  CHECK(tickets.size() == 1);
  CHECK(tickets.redeem(1));
}
}  // namespace
