// What a thread did in a part of the time that a trace knows.
#include "trace/timeline.hpp"

#include "scheduler/virtual_time.hpp"

namespace scheduler_timeline {

using namespace rondo;
using namespace rondo::test;
using detail::timeline;

timeline::segment task(duration from, duration to, std::size_t timer) {
  return {at(from), at(to), timeline::doing::task, timer};
}

TEST_CASE("of the first and the last segment, only what is in the time counts, whatever was asked before") {
  timeline t;
  t.add(task(0ms, 10ms, 1));
  t.add(task(10ms, 16ms, 2));
  t.add({at(20ms), at(30ms), timeline::doing::pass, 0});
  const auto check = [&](duration begin, duration end, duration tasks, duration passes, std::size_t longest,
                         duration longest_time) {
    CAPTURE(begin / 1ms);
    CAPTURE(end / 1ms);
    const timeline::shares spent = t.between(at(begin), at(end));
    CHECK(spent.tasks == tasks);
    CHECK(spent.passes == passes);
    CHECK(spent.longest == longest);
    CHECK(spent.longest_time == longest_time);
  };
  for (int round = 0; round != 2; ++round) {
    check(0ms, 30ms, 16ms, 10ms, 1, 10ms);
    check(3ms, 8ms, 5ms, 0ms, 1, 5ms);
    check(7ms, 15ms, 8ms, 0ms, 2, 5ms);
    check(8ms, 25ms, 8ms, 5ms, 2, 6ms);
    check(16ms, 20ms, 0ms, 0ms, detail::tally::nobody, 0ms);
    check(22ms, 23ms, 0ms, 1ms, detail::tally::nobody, 0ms);
    check(5ms, 5ms, 0ms, 0ms, detail::tally::nobody, 0ms);
  }
}

TEST_CASE("a part of another timeline is what is in that time") {
  timeline thread, driver;
  thread.add(task(0ms, 10ms, 1));
  thread.add(task(12ms, 20ms, 2));
  driver.add(thread, at(4ms), at(15ms));
  CHECK(driver.begin() == at(4ms));
  const timeline::shares spent = driver.between(at(0ms), at(30ms));
  CHECK(spent.tasks == 9ms);
  CHECK(spent.longest == 1);
  CHECK(spent.longest_time == 6ms);
}

}  // namespace scheduler_timeline
