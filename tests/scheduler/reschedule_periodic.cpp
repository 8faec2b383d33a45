// Rescheduling periodic tasks: this moves the next run, and the grid with it.
#include <cstdint>
#include <thread>

#include "scheduler/virtual_time.hpp"

namespace scheduler_reschedule_periodic {

using namespace rondo;
using namespace rondo::test;

std::vector<duration> dues(const std::vector<firing>& runs) {
  std::vector<duration> result;
  for (const firing& f : runs) result.push_back(f.due.time_since_epoch());
  return result;
}

TEST_CASE("after a move from outside, the grid continues from the new time") {
  manual_timer time;
  std::vector<firing> runs;
  const auto id = time.schedule_every(100ms, recording(runs));
  time.advance(250ms);
  SUBCASE("earlier") {
    CHECK(time.reschedule_after(id, 30ms));
    time.advance(250ms);
    CHECK(dues(runs) == std::vector<duration>{100ms, 200ms, 280ms, 380ms, 480ms});
  }
  SUBCASE("later") {
    CHECK(time.reschedule_at(id, at(420'500us)));
    time.advance(380ms);
    CHECK(dues(runs) == std::vector<duration>{100ms, 200ms, 420'500us, 520'500us, 620'500us});
  }
  SUBCASE("to now") {
    CHECK(time.reschedule_after(id, 0s));
    time.advance(200ms);
    CHECK(dues(runs) == std::vector<duration>{100ms, 200ms, 250ms, 350ms, 450ms});
  }
  SUBCASE("into the past") {
    CHECK(time.reschedule_at(id, at(20ms)));
    time.advance(100ms);
    CHECK(dues(runs) == std::vector<duration>{100ms, 200ms, 20ms, 320ms});
    CHECK(runs[2].missed == 2);  // 120, 220
  }
  CHECK(runs.back().run == runs.size());
}

TEST_CASE("after a move inside the timer's own run, the grid continues from the new time") {
  manual_timer time;
  std::vector<firing> runs;
  timer_id id;
  id = time.schedule_every(100ms, [&](const firing& f) {
    runs.push_back(f);
    if (f.run == 2) {
      CHECK(time.reschedule_after(id, 10ms));
      CHECK(time.next_due() == at(210ms));
    }
  });
  time.advance(500ms);
  CHECK(dues(runs) == std::vector<duration>{100ms, 200ms, 210ms, 310ms, 410ms});
}

TEST_CASE("a periodic timer that is moved to never stays pending, and can be moved back") {
  manual_timer time;
  std::vector<firing> runs;
  timer_id id;
  SUBCASE("from outside") {
    id = time.schedule_every(100ms, recording(runs));
    time.advance(100ms);
    CHECK(time.reschedule_after(id, duration::max()));
  }
  SUBCASE("from inside its own run") {
    id = time.schedule_every(100ms, [&](const firing& f) {
      runs.push_back(f);
      if (f.run == 1) CHECK(time.reschedule_after(id, duration::max()));
    });
    time.advance(100ms);
  }
  CHECK(time.advance(1h) == 0);
  CHECK(time.pending(id));
  CHECK_FALSE(time.next_due().has_value());
  CHECK(time.reschedule_at(id, at(2h)));
  time.advance_to_next();
  time.advance_to_next();
  CHECK(dues(runs) == std::vector<duration>{100ms, 2h, 2h + 100ms});
  CHECK(time.stats().missed == 0);
}

TEST_CASE("moving a periodic timer takes back a submitted run that has not started") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  std::vector<firing> runs;
  const auto id = time.schedule_every(100ms, recording(runs));
  time.advance(100ms);
  REQUIRE(jobs.size() == 1);
  CHECK(time.reschedule_after(id, 30ms));
  jobs[0]();
  CHECK(runs.empty());
  time.advance(30ms);
  REQUIRE(jobs.size() == 2);  // the run that was taken back does not overlap it
  jobs[1]();
  time.advance(100ms);
  REQUIRE(jobs.size() == 3);
  jobs[2]();
  CHECK(dues(runs) == std::vector<duration>{130ms, 230ms});
  CHECK(runs[0].run == 1);
  CHECK(runs[1].run == 2);
  jobs.clear();
  CHECK(time.stats().rejected == 0);
  CHECK(time.stats().overlapped == 0);
  CHECK(time.stats().fired == 2);
}

TEST_CASE("a periodic timer can be moved out of the pass in progress") {
  manual_timer time;
  std::vector<firing> runs;
  timer_id often;
  time.schedule_after(100ms, [&] { CHECK(time.reschedule_after(often, 50ms)); });
  often = time.schedule_every(100ms, recording(runs));
  time.advance(300ms);
  CHECK(dues(runs) == std::vector<duration>{150ms, 250ms});
}

TEST_CASE("a periodic timer that is moved to the beginning of the clock runs once and continues from there") {
  manual_timer time(options{.tick = 1ns});
  std::vector<firing> runs;
  const auto id = time.schedule_every(1000s, recording(runs));
  CHECK(time.reschedule_at(id, rondo::time_point::min()));
  CHECK(time.advance(0s) == 1);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == rondo::time_point::min());
  constexpr std::uint64_t distance = std::uint64_t{1} << 63, period = 1'000'000'000'000;  // ns
  CHECK(runs[0].missed == distance / period);
  CHECK(time.next_due() == at(duration(period - distance % period)));
}

/// The runs of a timer whose first run is on an executor, moves the next one to 20 ms, and takes until 50 ms.
std::string moved_into_its_own_run(const rondo::recurrence& r, std::uint64_t overlapped) {
  std::vector<job> jobs;
  journal what;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  timer_id id;
  id = time.schedule(r, [&](const firing& f) {
    what.add(std::to_string(f.due.time_since_epoch() / 1ms) + '#' + std::to_string(f.run));
    if (f.run != 1) return;
    CHECK(time.reschedule_after(id, 10ms));
    std::thread([&] { time.advance(40ms); }).join();  // as the driver
    CHECK(time.pending(id));
  });
  time.advance(10ms);
  for (int i = 0; i != 10; ++i) {
    if (!jobs.empty()) std::exchange(jobs, {}).at(0)();
    time.advance(5ms);
  }
  CHECK(!time.pending(id));
  CHECK(time.stats().overlapped == overlapped);
  CHECK(time.stats().completed == 1);
  CHECK(adds_up(time.stats()));
  return what.take();
}

TEST_CASE(
    "after a move into its own run, after_completion() continues from the end of that run or the kept one") {
  const auto r = rondo::after_completion(10ms);
  CHECK(moved_into_its_own_run(r.times(2), 1) == "10#1 60#2");
  CHECK(moved_into_its_own_run(r.times(3).on_overlap(overlapping_runs::queue_one), 0) == "10#1 20#2 65#3");
  CHECK(moved_into_its_own_run(r.times(2).on_overlap(overlapping_runs::queue_one), 0) == "10#1 20#2");
}

}  // namespace scheduler_reschedule_periodic
