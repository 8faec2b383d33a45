// What a task is told about the runs to come.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/virtual_time.hpp"

namespace scheduler_runs_left {

using namespace rondo;
using namespace rondo::test;

/// What each run is told, as text: "2 1 0".
auto noting_left(journal& j) {
  return [&j](const firing& f) { j.add(f.left ? std::to_string(*f.left) : "unlimited"); };
}

std::string told(const recurrence& when, duration until = 1h) {
  manual_timer time;
  journal j;
  time.schedule(when, noting_left(j));
  time.advance(until);
  return j.take();
}

TEST_CASE("a firing is made without saying what is left") {
  const firing f{.id = {}, .due = at(1s), .lateness = 1ns, .run = 2, .missed = 3, .name = "a"};
  CHECK(f.left == std::nullopt);
  CHECK(firing{timer_id{}, at(1s)}.left == std::nullopt);
}

TEST_CASE("a timer that runs once has no run left") {
  manual_timer time;
  journal j;
  time.schedule_after(1s, noting_left(j));
  time.schedule_after(2s, noting_left(j), {.name = "a"});
  time.advance(2s);
  CHECK(j.take() == "0 0");
}

TEST_CASE("nothing limits a recurrence without times() and an end") {
  CHECK(told(every(1s), 2s) == "unlimited unlimited");
  CHECK(told(after_completion(1s), 1s) == "unlimited");
  CHECK(told(cycle({1s, 2s}), 1s) == "unlimited");
  CHECK(told(backoff(1s, 2, 4s), 1s) == "unlimited");
}

TEST_CASE("times() and the list count down to 0; the one that ends earlier counts") {
  CHECK(told(every(1s).times(3)) == "2 1 0");
  CHECK(told(every(1s).times(1)) == "0");
  CHECK(told(after_completion(1s).times(2)) == "1 0");
  CHECK(told(intervals({1s, 2s, 5s})) == "2 1 0");
  CHECK(told(intervals({1s, 2s, 5s}).first_after(0s)) == "3 2 1 0");
  CHECK(told(intervals({1s, 2s, 5s}).times(2)) == "1 0");
  CHECK(told(intervals({1s, 2s}).times(7)) == "1 0");
  CHECK(told(cycle({1s}).times(2)) == "1 0");
}

TEST_CASE("a missed point is no run: it uses up the list, but not times()") {
  const auto told_after_stall = [](const recurrence& when) {
    manual_timer time;
    journal j;
    time.schedule(when, noting_left(j));
    time.elapse(3s);
    time.advance(1h);
    return j.take();
  };
  CHECK(told_after_stall(every(1s).times(3)) == "2 1 0");
  CHECK(told_after_stall(intervals({1s, 1s, 1s, 1s, 1s})) == "2 1 0");
  CHECK(told_after_stall(intervals({1s, 1s, 1s, 1s, 1s}).on_missed(missed_runs::burst)) == "4 3 2 1 0");
  CHECK(told_after_stall(intervals({1s, 1s, 1s})) == "0");
}

TEST_CASE("a run that was moved is still to come") {
  manual_timer time;
  journal j;
  const auto id = time.schedule(intervals({1s, 2s, 5s}), noting_left(j));
  time.advance(1s);
  time.reschedule_after(id, 10s);
  time.advance(1h);
  CHECK(j.take() == "2 1 0");
}

/// A pool that calls its jobs when it is told to.
struct kept_jobs {
  std::vector<job> jobs;
  auto taking() {
    return [this](job j) { jobs.push_back(std::move(j)); };
  }
  void run(std::size_t which) { std::exchange(jobs[which], job())(); }
};

TEST_CASE("runs that an executor has not started, and one that is queued, are left") {
  kept_jobs pool;
  manual_timer time({.run_on = pool.taking()});
  journal j;
  SUBCASE("submitted") {
    time.schedule(every(1s).times(4).on_overlap(overlapping_runs::allow), noting_left(j));
    time.advance(3s);
    pool.run(1);
    pool.run(0);
    pool.run(2);
    time.advance(1s);
    pool.run(3);
  }
  SUBCASE("queued") {
    time.schedule(intervals({1s, 1s, 1s, 1s}).on_overlap(overlapping_runs::queue_one), noting_left(j));
    time.advance(1s);
    pool.run(0);  // of four, three are left
    time.advance(2s);
    pool.run(1);  // handed over at 2; the point at 3 is queued
    time.advance(1s);
    pool.run(2);
    time.advance(1h);
    pool.run(3);
  }
  CHECK(j.take() == "3 2 1 0");
}

TEST_CASE("what the executor refuses, drops or reports as slow has the same number") {
  journal j;
  const auto note = noting_left(j);
  options o;
  bool drops = true;
  o.run_on = [&](job) {
    if (!drops) throw 1;
  };
  o.on_rejected = note;
  o.on_error = [&](std::exception_ptr, const firing& f) { note(f); };
  manual_timer time(o);
  time.schedule(every(1s).times(4), doing_nothing());
  time.advance(2s);
  CHECK(j.take() == "3 2");
  drops = false;
  time.advance(2s);
  CHECK(j.take() == "1 0");
}

TEST_CASE("a task that is run by hand is not told how many runs are left") {
  manual_timer time;
  journal j;
  time.schedule(every(1s).times(3), noting_left(j));
  auto list = time.stop();
  list.at(0).work();
  CHECK(j.take() == "unlimited");
}

}  // namespace scheduler_runs_left
