// Invalid options are refused, with their value in the message.
#include <stdexcept>
#include <string>

#include "scheduler/virtual_time.hpp"

#include <rondo/timer.hpp>

namespace scheduler_bad_options {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a tick that is not positive is refused") {
  struct {
    duration tick;
    const char* value;
  } const rows[] = {
      {0s, "0 ns"}, {-1ns, "-1 ns"}, {-3ms, "-3000000"}, {duration::min(), "-9223372036854775808"}};
  for (const auto& row : rows) {
    CHECK_THROWS_WITH_AS(manual_timer(options{.tick = row.tick}), doctest::Contains(row.value),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(timer(options{.tick = row.tick}), doctest::Contains(row.value),
                         std::invalid_argument);
  }
}

TEST_CASE("zero buckets, or too many, are refused") {
  struct {
    std::size_t buckets;
    std::string value;
  } const rows[] = {
      {0, "0"}, {(1U << 20) + 1, "1048577"}, {rondo::unlimited, std::to_string(rondo::unlimited)}};
  for (const auto& row : rows) {
    CHECK_THROWS_WITH_AS(manual_timer(options{.buckets = row.buckets}), doctest::Contains(row.value.c_str()),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(timer(options{.buckets = row.buckets}), doctest::Contains(row.value.c_str()),
                         std::invalid_argument);
  }
}

TEST_CASE("a timer refuses propagate_exceptions, as no caller could catch them") {
  CHECK_THROWS_WITH_AS(timer(options{.propagate_exceptions = true}),
                       doctest::Contains("propagate_exceptions"), std::invalid_argument);
}

TEST_CASE("any other number of buckets works, power of two or not") {
  for (const std::size_t buckets : {1U, 2U, 3U, 100U, 512U, 1000U, 1U << 20}) {
    manual_timer time(options{.buckets = buckets});
    journal ran;
    time.schedule_after(1030ms, ran.noting("b"));
    time.schedule_after(6ms, ran.noting("a"));
    time.advance(2s);
    CHECK(ran.take() == "a b");
  }
}

TEST_CASE("the smallest and the largest tick work") {
  for (const duration tick : {duration(1ns), duration::max()}) {
    manual_timer time(options{.tick = tick});
    int runs = 0;
    time.schedule_after(1ns, counting(runs));
    CHECK(time.next_due() == at(tick));
    time.schedule_after(0s, counting(runs));
    CHECK(time.advance(0s) == 1);
  }
}

TEST_CASE("the defaults of the options are those of the documentation") {
  const options o;
  CHECK(o.tick == 1ms);
  CHECK(o.buckets == 512);
  CHECK(o.max_pending == rondo::unlimited);
  CHECK_FALSE(o.run_on);
  CHECK_FALSE(o.on_error);
  CHECK(o.name == "rondo");
  CHECK(o.slow_after == duration::max());
  CHECK_FALSE(o.on_slow);
  CHECK_FALSE(o.on_rejected);
  CHECK_FALSE(o.propagate_exceptions);
  CHECK(o.traced_by == nullptr);
}

}  // namespace scheduler_bad_options
