// Zero and negative delays and past deadlines are due at once, but run in the driver's passes.
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "schedule_on.hpp"
#include "scheduler/core.hpp"
#include "scheduler/virtual_time.hpp"
#include "times_slower.hpp"

namespace scheduler_immediate {

using namespace rondo;
using namespace rondo::test;

TEST_CASE(
    "a task that is already due does not wait for a tick, and does not run inside the scheduling call") {
  manual_timer time;
  time.advance(10'300us);
  int runs = 0;
  SUBCASE("no delay") { time.schedule_after(0s, counting(runs)); }
  SUBCASE("a negative delay") { time.schedule_after(-1ns, counting(runs)); }
  SUBCASE("a delay before the beginning of the clock") {
    time.schedule_after(duration::min(), counting(runs));
  }
  SUBCASE("hours::min()") { time.schedule_after(std::chrono::hours::min(), counting(runs)); }
  SUBCASE("now") { time.schedule_at(time.now(), counting(runs)); }
  SUBCASE("the past") { time.schedule_at(time.now() - 5s, counting(runs)); }
  SUBCASE("the beginning of the clock") { time.schedule_at(time_point::min(), counting(runs)); }
  SUBCASE("rescheduled to now") { time.reschedule_after(time.schedule_after(1h, counting(runs)), 0s); }
  SUBCASE("rescheduled to the past") {
    time.reschedule_at(time.schedule_after(1h, counting(runs)), time_point::min());
  }
  CHECK(runs == 0);
  REQUIRE(time.next_due().has_value());
  CHECK(*time.next_due() <= time.now());
  CHECK(time.advance(0s) == 1);
  CHECK(runs == 1);
  CHECK(since_epoch(time) == 10'300us);
}

TEST_CASE("thousands of tasks without delay each run at once, one after another") {
  manual_timer time;
  int runs = 0;
  constexpr int many = 10'000;
  for (int i = 0; i != many; ++i) {
    time.schedule_after(0s, counting(runs));
    time.advance(0s);
    if (runs != i + 1) break;
  }
  CHECK(runs == many);
}

TEST_CASE("tasks that a task makes due run in the next pass, after all of its own pass") {
  manual_timer time;
  journal ran;
  time.schedule_after(1ms, [&] {
    ran.add("a");
    time.schedule_after(0s, ran.noting("of-a"));
  });
  time.schedule_after(1ms, [&] {
    ran.add("b");
    time.schedule_at(at(-1s), ran.noting("of-b"));  // in an earlier tick, but still in the next pass
  });
  time.schedule_after(1ms, ran.noting("c"));
  CHECK(time.advance(1ms) == 5);
  CHECK(ran.take() == "a b c of-b of-a");
}

TEST_CASE("tasks that become due during a slow task run in the next pass, in tick order") {
  manual_timer time;
  journal ran;
  time.schedule_after(1ms, [&] {
    ran.add("slow");
    time.schedule_after(0s, ran.noting("before"));
    time.elapse(10ms);
    time.schedule_after(0s, ran.noting("after"));
  });
  time.schedule_after(1ms, ran.noting("same"));
  time.schedule_after(5ms, ran.noting("five"));
  CHECK(time.advance(11ms) == 5);
  CHECK(ran.take() == "slow same before five after");
}

TEST_CASE("a task of the pass that another one moves to now runs in the next pass") {
  manual_timer time;
  journal ran;
  rondo::timer_id moved;
  time.schedule_after(1ms, [&] {
    ran.add("first");
    time.reschedule_after(moved, 0s);
  });
  moved = time.schedule_after(1ms, ran.noting("moved"));
  time.schedule_after(1ms, ran.noting("last"));
  CHECK(time.advance(1ms) == 3);
  CHECK(ran.take() == "first last moved");
}

/// A core that calls a function as soon as its clock has been read, as if another thread did that.
class interrupted_core final : public rondo::detail::core {
 public:
  using core::core;
  time_point now() const noexcept override {
    const time_point reading = time;
    if (const auto interrupt = std::exchange(after_reading, nullptr)) interrupt();
    return reading;
  }

  time_point time = at(0s);
  mutable std::function<void()> after_reading;
};

TEST_CASE("a task that becomes due after the pass has read the clock does not start before its deadline") {
  const auto core = std::make_shared<interrupted_core>(rondo::options{}, at(0s));
  std::vector<rondo::firing> runs;
  core->after_reading = [&] {
    core->time += 5ns;
    schedule_on(*core, core->time, core->time, recording(runs));
  };
  CHECK(core->run_pass(time_point::max(), rondo::unlimited) == 1);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == at(5ns));
  CHECK(runs[0].lateness == 0ns);
  core->retire();
}

/// Schedules itself again without a delay, `left` times.
struct chain {
  manual_timer& time;
  long left;
  long& runs;
  void operator()() {
    ++runs;
    if (left > 0) time.schedule_after(0s, chain{time, left - 1, runs});
  }
};

TEST_CASE("a chain of zero delays runs to its end in one advance() while no time passes") {
  manual_timer time;
  long runs = 0;
  time.schedule_after(1ms, chain{time, 999, runs});
  CHECK(time.advance(1ms) == 1000);
  CHECK(runs == 1000);
  CHECK(since_epoch(time) == 1ms);
}

// With a sanitizer or in an emulator, a million passes take up to a minute; each is like the others.
TEST_CASE("an endless chain of zero delays is refused after a million passes" *
          doctest::skip(memory_is_slow)) {
  manual_timer time;
  long runs = 0;
  time.schedule_after(1ms, chain{time, 1'000'000'000, runs});
  CHECK_THROWS_WITH_AS(time.advance(1ms), doctest::Contains("1000000"), std::logic_error);
  CHECK(runs == 1'000'000);
  CHECK(time.pending() == 1);
  CHECK(time.stop().size() == 1);
}

TEST_CASE("a chain of zero delays may have a million passes at each instant if its tasks let time pass" *
          doctest::skip(memory_is_slow)) {
  manual_timer time;
  long runs = 0;
  time.schedule_after(1ms, [&] {
    time.elapse(1ns);
    time.schedule_after(0s, chain{time, 2'000'000, runs});
  });
  CHECK_THROWS_AS(time.advance(1ms + 1ns), std::logic_error);
  CHECK(runs == 1'000'000);
}

}  // namespace scheduler_immediate
