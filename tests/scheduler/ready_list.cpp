// The list of a pass by itself.
#include "scheduler/ready_list.hpp"

#include <cstddef>
#include <optional>

#include <doctest/doctest.h>

#include <rondo/time.hpp>

#include "failing_new.hpp"
#include "sync/threads.hpp"

namespace {

using namespace rondo;
using namespace rondo::test;
using list = rondo::detail::ready_list<rondo::detail::threads>;
using record = rondo::detail::record<rondo::detail::threads>;

TEST_CASE("what is due next is the earliest that has not been popped, be it late or not") {
  list pass;
  record ordinary{0}, late{1};
  REQUIRE(pass.make_room() >= 1);
  pass.push(ordinary, 7);
  CHECK(pass.next_due() == std::optional<tick_number>(7));
  REQUIRE(pass.push_late(late, 5));
  CHECK(pass.next_due() == std::optional<tick_number>(5));
  SUBCASE("the late one is first") {
    CHECK(pass.front()->timer == &late);
    CHECK(pass.next_due() == std::optional<tick_number>(5));
    pass.pop();
    CHECK(pass.next_due() == std::optional<tick_number>(7));
    CHECK(pass.front()->timer == &ordinary);
    CHECK(pass.next_due() == std::optional<tick_number>(7));
    pass.pop();
    CHECK(pass.next_due() == std::nullopt);
    CHECK(pass.empty());
  }
  SUBCASE("the late one is first, and was cancelled") {
    CHECK(pass.front()->timer == &late);
    ++late.arming;
    CHECK(pass.next_due() == std::optional<tick_number>(7));
  }
}

TEST_CASE("a late one comes after others of its tick, whatever lies before these and was cancelled") {
  list pass;
  record burst{0}, cancelled{1}, other{2}, last{3};
  REQUIRE(pass.make_room() >= 4);
  pass.push(burst, 4);
  REQUIRE(pass.front()->timer == &burst);
  REQUIRE(pass.push_late(burst, 5));
  pass.pop();
  pass.push(cancelled, 9);  // left by a limit: what was scheduled since then may be due before it
  SUBCASE("others follow") {
    pass.push(other, 5);
    pass.push(last, 6);
    ++cancelled.arming;
    CHECK(pass.front()->timer == &other);
    pass.pop();
    CHECK(pass.front()->timer == &burst);
    pass.pop();
    CHECK(pass.front()->timer == &last);
    pass.pop();
  }
  SUBCASE("no other is left") {
    ++cancelled.arming;
    CHECK(pass.front()->timer == &burst);
    pass.pop();
  }
  CHECK(pass.empty());
}

TEST_CASE("entries that are done do not come again when the others are moved to the front") {
  list pass;
  record done{0}, other{1};
  REQUIRE(pass.make_room() == 256);
  for (int i = 0; i != 256; ++i) pass.push(i < 200 ? done : other, 1);
  for (int i = 0; i != 200; ++i) {
    REQUIRE(pass.front()->timer == &done);
    pass.pop();
  }
  REQUIRE(pass.make_room() >= 200);
  for (int i = 0; i != 56; ++i) {
    REQUIRE(pass.front());
    REQUIRE(pass.front()->timer == &other);
    pass.pop();
  }
  CHECK(pass.empty());
}

// Where bytes_held() is not known, there is nothing to test.
TEST_CASE("the memory of a burst is given back when all of it has been popped" *
          doctest::skip(!failing_new::available)) {
  constexpr std::size_t burst = 300'000;
  list pass;
  record r{0};
  const auto before = bytes_held();
  for (std::size_t i = 0; i != burst; ++i) {
    REQUIRE(pass.make_room() >= 1);
    pass.push(r, 1);
  }
  CHECK(bytes_held() - before >= static_cast<std::ptrdiff_t>(burst * sizeof(list::entry)));
  while (pass.front()) pass.pop();
  CHECK(bytes_held() <= before);
}

}  // namespace
