// What a task is told about its run.
#include "scheduler/virtual_time.hpp"

namespace scheduler_firing_context {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a one-shot is told its id, its exact deadline and its lateness") {
  manual_timer time({}, at(3ns));
  std::vector<firing> runs;
  const auto id = time.schedule_after(1'500'001ns, recording(runs));
  time.advance(1s);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].id == id);
  CHECK(runs[0].due == at(1'500'004ns));
  CHECK(runs[0].lateness == 499'999ns);
  CHECK(runs[0].run == 1);
  CHECK(runs[0].missed == 0);
}

TEST_CASE("a deadline on a tick is not late at all") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_after(2ms, recording(runs));
  time.advance(1s);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].lateness == 0ns);
}

TEST_CASE("the lateness of a past deadline counts from that deadline") {
  manual_timer time({}, at(10ms));
  std::vector<firing> runs;
  time.schedule_at(at(2'300us), recording(runs));
  time.advance(0s);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == at(2'300us));
  CHECK(runs[0].lateness == 7'700us);
}

TEST_CASE("the lateness of a deadline at the beginning of the clock saturates") {
  manual_timer time({}, at(10ms));
  std::vector<firing> runs;
  time.schedule_at(time_point::min(), recording(runs));
  time.advance(0s);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == time_point::min());
  CHECK(runs[0].lateness == duration::max());
}

TEST_CASE("a task that follows a slow one in the same pass is later by the slow task's duration") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_after(1ms, [&] { time.elapse(40ms); });
  time.schedule_after(600us, recording(runs));
  time.advance(1ms);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].lateness == 40'400us);
}

TEST_CASE("a task that is run by hand gets an empty firing") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule_after(1ms, recording(runs));
  auto list = time.stop();
  REQUIRE(list.size() == 1);
  list[0].work();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].id == rondo::timer_id{});
  CHECK(runs[0].run == 0);
}

}  // namespace scheduler_firing_context
