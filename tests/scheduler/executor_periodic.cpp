// Periodic tasks on an executor: overlap, and jobs that never run.
#include <stdexcept>
#include <thread>
#include <utility>

#include "scheduler/virtual_time.hpp"

namespace scheduler_executor_periodic {

using namespace rondo;
using namespace rondo::test;

struct keeping {
  std::vector<job> jobs;
  std::vector<firing> runs;
  manual_timer time{options{.run_on = [this](job j) { jobs.push_back(std::move(j)); }}};
};

TEST_CASE("points that come before the previous run has started are dropped and counted") {
  keeping k;
  k.time.schedule_every(100ms, recording(k.runs));
  CHECK(k.time.advance(350ms) == 1);  // dropped points are not submitted
  CHECK(k.jobs.size() == 1);
  CHECK(k.time.stats().overlapped == 2);
  k.jobs[0]();
  CHECK(k.time.advance(50ms) == 1);
  k.jobs.at(1)();
  REQUIRE(k.runs.size() == 2);
  CHECK(k.runs[0].due == at(100ms));
  CHECK(k.runs[0].lateness == 250ms);
  CHECK(k.runs[1].due == at(400ms));
  CHECK(k.runs[1].run == 2);
  CHECK(k.runs[1].missed == 0);
  CHECK(k.time.stats().fired == 2);
  CHECK(k.time.stats().missed == 0);
}

TEST_CASE("if a stall makes points late while the previous run is in progress, all of them are counted") {
  keeping k;
  k.time.schedule_every(100ms, recording(k.runs));
  k.time.advance(100ms);
  k.time.elapse(350ms);
  CHECK(k.time.advance(0s) == 0);
  CHECK(k.time.stats().overlapped == 3);
  CHECK(k.time.next_due() == at(500ms));
  k.jobs.at(0)();
  CHECK(k.time.advance(50ms) == 1);
  k.jobs.at(1)();
  CHECK(k.runs.at(1).due == at(500ms));
}

TEST_CASE("after a job is dropped, the next point runs") {
  keeping k;
  const auto id = k.time.schedule_every(100ms, recording(k.runs));
  k.time.advance(100ms);
  k.jobs.clear();
  CHECK(k.time.stats().rejected == 1);
  CHECK(k.time.pending(id));
  CHECK(k.time.advance(100ms) == 1);
  k.jobs.at(0)();
  REQUIRE(k.runs.size() == 1);
  CHECK(k.runs[0].due == at(200ms));
  CHECK(k.time.stats().completed == 0);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("an executor that refuses a run gets the next point") {
  int calls = 0;
  std::vector<firing> runs, reported;
  manual_timer time(options{.run_on =
                                [&](job j) {
                                  if (++calls == 2) throw std::runtime_error("full");
                                  j();
                                },
                            .on_error = [&](std::exception_ptr, const firing& f) { reported.push_back(f); }});
  const auto id = time.schedule_every(100ms, recording(runs));
  time.advance(300ms);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].due == at(100ms));
  CHECK(runs[1].due == at(300ms));
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].due == at(200ms));
  CHECK(time.pending(id));
  CHECK(time.stats().failed == 1);
  CHECK(time.stats().rejected == 0);
  CHECK(time.stats().overlapped == 0);
}

TEST_CASE("cancelling a periodic timer takes back a run that an executor has not started") {
  keeping k;
  const auto id = k.time.schedule_every(100ms, recording(k.runs));
  k.time.advance(100ms);
  CHECK(k.time.cancel(id) == cancel_result::cancelled);
  k.jobs.at(0)();
  CHECK(k.runs.empty());
  CHECK(k.time.advance(1h) == 0);
  CHECK(k.time.stats().rejected == 0);
}

TEST_CASE("a periodic timer that is cancelled inside its own run on an executor does not run again") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  timer_id id;
  int runs = 0;
  id = time.schedule_every(100ms, [&] {
    ++runs;
    CHECK(time.cancel(id) == cancel_result::running);
  });
  time.advance(100ms);
  jobs.at(0)();
  time.advance(1h);
  CHECK(jobs.size() == 1);
  CHECK(runs == 1);
  CHECK(time.stats().cancelled == 1);
}

TEST_CASE("a point that comes after the previous run has ended is not dropped") {
  keeping k;
  int runs = 0;
  k.time.schedule_every(100ms, [&] { ++runs; });
  k.time.advance(100ms);
  // The next point comes after the job has run.
  manual_timer& time = k.time;
  job first = std::move(k.jobs.at(0));
  first();
  time.advance(100ms);
  CHECK(k.jobs.size() == 2);
  CHECK(runs == 1);
  CHECK(time.stats().overlapped == 0);
}

TEST_CASE("a slow executor makes other timers of its pass late by the time it takes") {
  manual_timer* timer = nullptr;
  int handed = 0;
  manual_timer time(options{.run_on = [&](job j) {
    if (++handed == 1) timer->elapse(250ms);  // blocks, as if its queue were full
    j();
  }});
  timer = &time;
  std::vector<firing> runs;
  time.schedule_after(100ms, doing_nothing());
  time.schedule_every(100ms, recording(runs));
  time.advance(400ms);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].due == at(100ms));
  CHECK(runs[0].lateness == 250ms);
  CHECK(runs[0].missed == 2);
  CHECK(runs[1].due == at(400ms));
  CHECK(time.stats().missed == 2);
}

TEST_CASE("a job that a throwing executor kept does not replace the next run") {
  std::vector<job> kept;
  std::vector<firing> runs;
  manual_timer time(options{.run_on =
                                [&](job j) {
                                  kept.push_back(std::move(j));
                                  if (kept.size() == 1) throw 1;
                                },
                            .on_error = [](std::exception_ptr, const firing&) {}});
  time.schedule_every(100ms, recording(runs));
  time.advance(200ms);
  REQUIRE(kept.size() == 2);
  SUBCASE("called") { kept[0](); }
  SUBCASE("dropped") { kept[0] = job(); }
  CHECK(runs.empty());
  kept[1]();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == at(200ms));
  CHECK(time.stats().rejected == 0);
  CHECK(time.stats().failed == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("missed points are counted when the run that reports them starts") {
  keeping k;
  k.time.schedule_every(100ms, [&](const firing& f) {
    k.runs.push_back(f);
    CHECK(k.time.stats().missed == 2);
  });
  k.time.elapse(350ms);
  CHECK(k.time.advance(0s) == 1);
  CHECK(k.time.stats().missed == 0);
  k.jobs.at(0)();
  CHECK(k.runs.at(0).missed == 2);
  CHECK(k.time.stats().missed == 2);
}

TEST_CASE("missed points are not counted if the run that would report them does not start") {
  std::vector<firing> rejected;
  std::vector<job> jobs;
  bool refuses = false;
  manual_timer time(options{.run_on =
                                [&](job j) {
                                  if (refuses) throw std::runtime_error("full");
                                  jobs.push_back(std::move(j));
                                },
                            .on_error = [](std::exception_ptr, const firing&) {},
                            .on_rejected = [&](const firing& f) { rejected.push_back(f); }});
  std::vector<firing> runs;
  SUBCASE("refused") { refuses = true; }
  const auto id = time.schedule_every(100ms, recording(runs));
  time.elapse(350ms);
  CHECK(time.advance(0s) == 1);
  SUBCASE("cancelled") { time.cancel(id); }
  SUBCASE("cancelled and waited for") { time.cancel_and_wait(id); }
  SUBCASE("stopped") { CHECK(time.stop().size() == 1); }
  SUBCASE("drained") { CHECK(time.drain(0s)); }
  SUBCASE("rejected") {
    jobs.clear();
    REQUIRE(rejected.size() == 1);
    CHECK(rejected[0].missed == 2);
  }
  SUBCASE("taken back") {
    time.reschedule_after(id, 100ms);
    time.advance(100ms);
    jobs.at(1)();
    CHECK(runs.at(0).missed == 0);
  }
  for (job& j : jobs) j();
  CHECK(runs.size() <= 1);
  CHECK(time.stats().missed == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("after_completion() counts from the end of the last run, including submitted ones") {
  keeping k;
  timer_id id;
  bool first = true;
  id = k.time.schedule(rondo::after_completion(100ms).on_overlap(rondo::overlapping_runs::allow), [&] {
    if (!std::exchange(first, false)) return;
    k.time.reschedule_after(id, 0s);
    std::thread([&] { k.time.advance(0s); }).join();  // submits the second run during the first one
  });
  k.time.advance(100ms);
  k.jobs.at(0)();
  REQUIRE(k.jobs.size() == 2);
  CHECK(!k.time.next_due());
  k.time.advance(1s);
  CHECK(k.jobs.size() == 2);
  k.jobs[1]();
  CHECK(k.time.next_due() == at(1'200ms));
}

TEST_CASE("runs that an executor had when they were cancelled do not overlap runs of later timers") {
  keeping k;
  for (int i = 0; i != 100; ++i) {  // in any slots
    const auto id = k.time.schedule_after(0s, doing_nothing());
    k.time.advance(0s);
    k.time.cancel(id);
  }
  k.jobs.clear();
  for (int i = 0; i != 200; ++i) k.time.schedule_every(100ms, recording(k.runs));
  CHECK(k.time.advance(100ms) == 200);
  CHECK(k.time.stats().overlapped == 0);
}

}  // namespace scheduler_executor_periodic
