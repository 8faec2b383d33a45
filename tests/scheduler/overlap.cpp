// Points that come while the previous run is in progress on an executor.
#include <thread>

#include "scheduler/virtual_time.hpp"

namespace scheduler_overlap {

using namespace rondo;
using namespace rondo::test;

/// An executor that keeps its jobs until the test runs them.
struct keeping {
  std::vector<job> jobs;
  std::vector<firing> runs;
  manual_timer time{options{.run_on = [this](job j) { jobs.push_back(std::move(j)); },
                            .on_error = [](std::exception_ptr, const firing&) {}}};

  timer_id schedule(const rondo::recurrence& r) { return time.schedule(r, recording(runs)); }
  /// Runs the oldest job.
  void run() {
    REQUIRE(!jobs.empty());
    job j = std::move(jobs.front());
    jobs.erase(jobs.begin());
    j();
  }
  /// The deadlines of all runs so far, in ms.
  std::string dues() const {
    std::string text;
    for (const firing& f : runs) text += std::to_string(f.due.time_since_epoch() / 1ms) + ' ';
    return text;
  }
};

TEST_CASE("skip drops points that come while a run is in progress") {
  keeping k;
  k.schedule(every(10ms));
  k.time.advance(45ms);
  CHECK(k.jobs.size() == 1);
  CHECK(k.time.stats().overlapped == 3);
  k.run();
  k.time.advance(10ms);
  k.run();
  CHECK(k.dues() == "10 50 ");
  CHECK(k.runs[1].run == 2);
}

TEST_CASE("queue_one keeps one run back and drops the others") {
  keeping k;
  const auto id = k.schedule(every(10ms).on_overlap(overlapping_runs::queue_one));
  k.time.advance(45ms);
  CHECK(k.jobs.size() == 1);
  CHECK(k.time.stats().overlapped == 2);
  k.run();
  CHECK(k.time.next_due() == at(20ms));  // the driver should submit it now
  CHECK(k.time.advance(0s) == 1);
  CHECK(k.time.next_due() == at(50ms));
  k.run();
  CHECK(k.time.advance(5ms) == 1);
  k.run();
  CHECK(k.dues() == "10 20 50 ");
  CHECK(k.runs[1].lateness == 25ms);
  CHECK(k.runs[2].run == 3);
  CHECK(k.time.stats().overlapped == 2);
  CHECK(k.time.cancel(id) == cancel_result::cancelled);
}

TEST_CASE("queue_one keeps the first of several points that a stall makes late") {
  keeping k;
  k.schedule(every(10ms).on_overlap(overlapping_runs::queue_one));
  k.time.advance(10ms);
  k.time.elapse(35ms);
  k.time.advance(0s);
  CHECK(k.time.stats().overlapped == 2);
  k.run();
  k.time.advance(0s);
  k.run();
  CHECK(k.dues() == "10 20 ");
}

TEST_CASE("a run that queue_one keeps back counts only when it is submitted") {
  keeping k;
  const auto id = k.schedule(every(10ms).times(2).on_overlap(overlapping_runs::queue_one));
  k.time.advance(35ms);
  CHECK(k.time.stats().overlapped == 0);  // after its last run the timer has no more points
  CHECK(!k.time.next_due());
  k.run();
  CHECK(k.time.pending(id));
  k.time.advance(0s);
  CHECK(k.time.pending(id));
  CHECK(!k.time.next_due());
  k.run();
  CHECK(!k.time.pending(id));
  CHECK(k.time.stats().completed == 1);
  CHECK(k.dues() == "10 20 ");
}

TEST_CASE("a run that is kept back at the end of its list is the last") {
  keeping k;
  const auto id = k.schedule(intervals({10ms, 10ms, 10ms}).on_overlap(overlapping_runs::queue_one));
  k.time.advance(50ms);
  CHECK(k.time.stats().overlapped == 1);
  CHECK(!k.time.next_due());
  k.run();
  CHECK(k.time.pending(id));
  k.time.advance(0s);
  k.run();
  CHECK(k.dues() == "10 20 ");
  CHECK(!k.time.pending(id));
  CHECK(k.time.stats().completed == 1);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("a list whose last points are dropped ends with the run in progress") {
  keeping k;
  const auto id = k.schedule(intervals({10ms, 10ms, 10ms}));
  k.time.advance(50ms);
  CHECK(k.time.stats().overlapped == 2);
  CHECK(k.time.pending(id));  // its last run has not started
  CHECK(k.time.stats().pending == 1);
  k.run();
  CHECK(!k.time.pending(id));
  CHECK(k.time.stats().completed == 1);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("a list whose last points are dropped during its run is no longer pending") {
  keeping k;
  timer_id id;
  bool was_pending = true;
  std::uint64_t counted = 1;
  id = k.time.schedule(intervals({10ms, 10ms}), [&] {
    k.time.elapse(20ms);
    // Stands in for a driver on another thread.
    std::thread([&] { k.time.advance(0s); }).join();
    was_pending = k.time.pending(id);
    counted = k.time.stats().pending;
  });
  k.time.advance(10ms);
  k.run();
  CHECK(!was_pending);
  CHECK(counted == 0);
  CHECK(k.time.stats().completed == 1);
  CHECK(k.time.stats().overlapped == 1);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("allow submits every run, and they may end in any order") {
  keeping k;
  const auto id = k.schedule(every(10ms).on_overlap(overlapping_runs::allow));
  k.time.advance(35ms);
  CHECK(k.jobs.size() == 3);
  std::swap(k.jobs[0], k.jobs[2]);
  k.run();
  k.run();
  CHECK(k.time.pending(id));
  k.run();
  CHECK(k.dues() == "30 20 10 ");
  CHECK(k.runs[0].run == 3);
  CHECK(k.time.stats().overlapped == 0);
  CHECK(k.time.stats().pending == 1);
}

TEST_CASE("with allow, the callable of a cancelled timer lives as long as the last of its runs") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto token = std::make_shared<int>(0);
  timer_id id;
  bool first = true;
  id = time.schedule(every(10ms).on_overlap(overlapping_runs::allow), [&, token] {
    if (!std::exchange(first, false)) {
      CHECK(time.cancel(id) == cancel_result::running);
      return;
    }
    jobs.at(1)();
    CHECK(token.use_count() == 2);
  });
  time.advance(20ms);
  jobs.at(0)();
  CHECK(token.use_count() == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("allow calls the callable concurrently") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  int depth = 0, deepest = 0;
  time.schedule(every(10ms).times(3).on_overlap(overlapping_runs::allow), [&] {
    deepest = std::max(deepest, ++depth);
    if (!jobs.empty()) {
      job next = std::move(jobs.back());
      jobs.pop_back();
      next();  // during this run
    }
    --depth;
  });
  time.advance(30ms);
  job first = std::move(jobs.back());
  jobs.pop_back();
  first();
  CHECK(deepest == 3);
  CHECK(time.stats().completed == 1);
  CHECK(time.stats().fired == 3);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("with allow, dropping a job loses one run and does not invalidate other jobs") {
  keeping k;
  const auto id = k.schedule(every(10ms).times(3).on_overlap(overlapping_runs::allow));
  k.time.advance(35ms);
  REQUIRE(k.jobs.size() == 3);
  k.jobs.pop_back();  // the last run is rejected
  CHECK(k.time.stats().rejected == 1);
  CHECK(k.time.pending(id));
  k.run();
  k.run();
  CHECK(k.dues() == "10 20 ");
  CHECK(!k.time.pending(id));
  CHECK(k.time.stats().completed == 1);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("with allow, only the job that a throwing executor keeps is invalid") {
  std::vector<job> jobs;
  std::vector<firing> runs;
  bool refuse = false;
  manual_timer time({.run_on =
                         [&](job j) {
                           jobs.push_back(std::move(j));
                           if (refuse) throw 1;
                         },
                     .on_error = [](std::exception_ptr, const firing&) {}});
  time.schedule(every(10ms).on_overlap(overlapping_runs::allow), recording(runs));
  time.advance(10ms);
  refuse = true;
  time.advance(10ms);
  refuse = false;
  time.advance(10ms);
  REQUIRE(jobs.size() == 3);
  for (job& j : jobs) j();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].due == at(10ms));
  CHECK(runs[1].due == at(30ms));
  CHECK(time.stats().failed == 1);
  CHECK(time.stats().rejected == 0);
}

TEST_CASE("cancel() takes back all jobs that have not started") {
  keeping k;
  const auto id = k.schedule(every(10ms).on_overlap(overlapping_runs::allow));
  k.time.advance(35ms);
  k.run();
  CHECK(k.time.cancel(id) == cancel_result::cancelled);
  k.run();
  k.run();
  CHECK(k.runs.size() == 1);
  CHECK(k.time.stats().rejected == 0);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("stop() hands a periodic timer back once, with the deadline of its oldest job") {
  keeping k;
  k.schedule(every(10ms).on_overlap(overlapping_runs::allow));
  k.schedule(every(15ms).on_overlap(overlapping_runs::queue_one));
  k.time.advance(35ms);
  k.run();  // the first job is that of the point at 10 ms
  const auto rest = k.time.stop();
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].due == at(15ms));
  CHECK(rest[1].due == at(20ms));
}

TEST_CASE("moving a timer takes back its jobs and the run that is kept back") {
  keeping k;
  const auto id = k.schedule(every(10ms).on_overlap(overlapping_runs::queue_one));
  k.time.advance(25ms);
  CHECK(k.time.reschedule_at(id, at(100ms)));
  CHECK(k.time.next_due() == at(100ms));
  k.run();  // does nothing
  CHECK(k.runs.empty());
  k.time.advance(75ms);
  k.run();
  k.time.advance(10ms);
  k.run();
  CHECK(k.dues() == "100 110 ");
  CHECK(k.runs[0].run == 1);
}

TEST_CASE("the gaps of a list continue from the run that was taken back") {
  keeping k;
  const auto id = k.schedule(intervals({10ms, 20ms, 30ms}));
  k.time.advance(35ms);  // the run at 10 is submitted, the point at 30 is dropped
  CHECK(k.time.reschedule_at(id, at(100ms)));
  for (int i = 0; i != 20; ++i) {
    k.time.advance(10ms);
    while (!k.jobs.empty()) k.run();
  }
  CHECK(k.dues() == "100 120 150 ");
  CHECK(k.time.stats().completed == 1);
}

TEST_CASE("late runs of a burst are submitted one after another, each when the one before has ended") {
  keeping k;
  k.schedule(every(300ms).on_missed(missed_runs::burst));
  k.time.advance(300ms);
  k.run();
  k.time.elapse(650ms);
  CHECK(k.time.advance(0s) == 1);
  CHECK(k.jobs.size() == 1);
  CHECK(!k.time.next_due());  // none until that run ends
  k.run();
  CHECK(k.time.advance(0s) == 1);
  k.run();
  CHECK(k.time.next_due() == at(1200ms));
  k.time.advance(250ms);
  k.run();
  CHECK(k.dues() == "300 600 900 1200 ");
  CHECK(k.time.stats().overlapped == 0);
  CHECK(k.time.stats().missed == 0);
}

TEST_CASE("points that come while a late run of a burst is in progress follow it") {
  keeping k;
  k.schedule(every(300ms).on_missed(missed_runs::burst));
  k.time.elapse(650ms);
  k.time.advance(0s);     // 300 is submitted
  k.time.advance(600ms);  // 600, 900 and 1200 come
  CHECK(k.jobs.size() == 1);
  for (int i = 0; i != 4; ++i) {
    k.run();
    k.time.advance(0s);
  }
  CHECK(k.dues() == "300 600 900 1200 ");
  CHECK(k.jobs.empty());
  k.time.advance(250ms);  // 1500 is on time
  k.time.advance(300ms);  // 1800 is dropped, because 1500 is not a late run
  CHECK(k.time.stats().overlapped == 1);
  k.run();
  k.time.advance(300ms);
  k.run();
  CHECK(k.dues() == "300 600 900 1200 1500 2100 ");
}

TEST_CASE("a point that comes while the last late run is in progress follows it, too") {
  keeping k;
  k.schedule(every(300ms).on_missed(missed_runs::burst));
  k.time.elapse(650ms);
  k.time.advance(0s);
  k.run();
  k.time.advance(0s);
  CHECK(k.jobs.size() == 1);  // 600 is late, and nothing follows it
  k.time.advance(300ms);      // 900 comes
  CHECK(k.time.stats().overlapped == 0);
  k.run();
  k.time.advance(0s);
  k.run();
  CHECK(k.dues() == "300 600 900 ");
}

TEST_CASE("late runs that wait for the run in progress are missed if they exceed the limit") {
  keeping k;
  k.schedule(every(10ms).on_missed(missed_runs::burst, 2));
  k.time.elapse(25ms);
  k.time.advance(0s);    // 10 is submitted, 20 waits
  k.time.advance(60ms);  // 30 … 80 come
  k.run();
  k.time.advance(0s);
  k.run();
  k.time.advance(0s);
  k.run();
  CHECK(k.dues() == "10 70 80 ");
  CHECK(k.runs[1].missed == 5);
  CHECK(k.time.stats().missed == 5);
}

TEST_CASE("with allow, the late runs of a burst are submitted at once") {
  keeping k;
  k.schedule(every(300ms).on_missed(missed_runs::burst).on_overlap(overlapping_runs::allow));
  k.time.elapse(950ms);
  CHECK(k.time.advance(0s) == 3);
  CHECK(k.jobs.size() == 3);
  k.run();
  k.run();
  k.run();
  CHECK(k.dues() == "300 600 900 ");
}

TEST_CASE("after_completion() waits until a job has run or is dropped") {
  keeping k;
  const auto id = k.schedule(after_completion(10ms));
  k.time.advance(35ms);
  CHECK(k.jobs.size() == 1);
  CHECK(!k.time.next_due());
  CHECK(k.time.pending(id));
  k.run();
  CHECK(k.time.next_due() == at(45ms));
  k.time.advance(30ms);
  k.jobs.clear();  // rejected at 65 ms
  CHECK(k.time.next_due() == at(75ms));
  k.time.advance(10ms);
  k.run();
  CHECK(k.dues() == "10 75 ");
  CHECK(k.time.stats().overlapped == 0);
}

TEST_CASE("after_completion() continues when the executor throws") {
  int refusals = 0;
  std::vector<firing> runs;
  manual_timer time({.run_on =
                         [&](job j) {
                           if (++refusals < 3) throw 1;
                           j();
                         },
                     .on_error = [](std::exception_ptr, const firing&) {}});
  time.schedule(after_completion(10ms), recording(runs));
  time.advance(30ms);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].due == at(30ms));
  CHECK(runs[0].run == 3);
}

TEST_CASE("times() counts failed and rejected runs") {
  keeping k;
  const auto id = k.schedule(every(10ms).times(2));
  k.time.advance(10ms);
  k.jobs.clear();
  k.time.advance(10ms);
  CHECK(k.time.pending(id));
  k.jobs.clear();
  CHECK(!k.time.pending(id));
  CHECK(k.time.stats().rejected == 2);
  CHECK(k.time.stats().completed == 1);
  CHECK(k.time.stats().fired == 0);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("cancelling a timer also removes the run that is kept back") {
  keeping k;
  const auto id = k.schedule(every(10ms).on_overlap(overlapping_runs::queue_one));
  k.time.advance(25ms);
  k.run();
  CHECK(k.time.cancel(id) == cancel_result::cancelled);
  CHECK(!k.time.next_due());
  k.time.advance(100ms);
  CHECK(k.jobs.empty());
  CHECK(adds_up(k.time.stats()));
}

}  // namespace scheduler_overlap
