// on_rejected: runs whose job the executor destroyed without calling it.
#include <memory>
#include <stdexcept>

#include "scheduler/captured_cerr.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_rejected {

using namespace rondo;
using namespace rondo::test;

/// An executor that keeps its jobs.
struct shelf {
  std::vector<job> jobs;
  executor keeping() {
    return [this](job j) { jobs.push_back(std::move(j)); };
  }
};

executor dropping() {
  return [](const job&) {};
}

TEST_CASE("on_rejected gets a run that the executor drops at once, as it would have run") {
  std::vector<firing> told;
  manual_timer time({.run_on = dropping(), .on_rejected = recording(told)});
  const auto id = time.schedule_after(1'300us, doing_nothing());
  time.advance(5ms);
  REQUIRE(told.size() == 1);
  CHECK(told[0].id == id);
  CHECK(told[0].due == at(1'300us));
  CHECK(told[0].lateness == 700us);
  CHECK(told[0].run == 1);
  CHECK(told[0].missed == 0);
  CHECK(time.stats().rejected == 1);
  CHECK(time.stats().completed == 1);
  CHECK(time.stats().failed == 0);
}

TEST_CASE("a job that is dropped later is reported with its lateness at submission") {
  std::vector<firing> told;
  std::string name;
  shelf s;
  manual_timer time({.on_rejected = [&](const firing& f) {
    told.push_back(f);
    name = f.name;
  }});
  const auto id = time.schedule_every(1s, doing_nothing(), {.run_on = s.keeping(), .name = "dropped"});
  time.elapse(2'500ms);
  time.advance(0s);
  REQUIRE(s.jobs.size() == 1);
  time.advance(100ms);
  CHECK(told.empty());
  s.jobs.clear();
  REQUIRE(told.size() == 1);
  CHECK(told[0].id == id);
  CHECK(told[0].due == at(1s));
  CHECK(told[0].lateness == 1500ms);
  CHECK(told[0].run == 1);
  CHECK(told[0].missed == 1);
  CHECK(name == "dropped");
  CHECK(time.pending(id));
}

TEST_CASE("on_rejected gets a valid name, although the timer has ended and its options are destroyed") {
  std::string name;
  const std::string given = "a name that no string keeps within itself, so that it takes memory of its own";
  manual_timer time({.on_rejected = [&](const firing& f) { name = f.name; }});
  shelf s;
  SUBCASE("when the executor drops the job at once") {
    time.schedule_after(1s, doing_nothing(), {.run_on = dropping(), .name = given});
    time.advance(1s);
  }
  SUBCASE("when the executor drops the job later") {
    time.schedule_after(1s, doing_nothing(), {.run_on = s.keeping(), .name = given});
    time.advance(1s);
    s.jobs.clear();
  }
  CHECK(name == given);
}

TEST_CASE("in on_rejected the timer has ended or waits for its next run, and the scheduler may be used") {
  manual_timer* timer = nullptr;
  int runs = 0;
  bool is_pending = true;
  std::optional<time_point> due;
  manual_timer time({.on_rejected = [&](const firing& f) {
    is_pending = timer->pending(f.id);
    due = timer->due(f.id);
    CHECK_THROWS_AS(timer->advance(1ms), std::logic_error);  // called from inside
    timer->schedule_after(0s, counting(runs));
  }});
  timer = &time;
  time.schedule_after(1s, doing_nothing(), {.run_on = dropping()});
  time.advance(1s);
  CHECK_FALSE(is_pending);
  CHECK(runs == 1);
  shelf s;
  time.schedule(after_completion(1s), doing_nothing(), {.run_on = s.keeping()});
  time.advance(1s);
  s.jobs.clear();  // outside a pass
  CHECK(is_pending);
  CHECK(due == at(3s));
}

TEST_CASE("on_rejected is not called for jobs that were cancelled, taken back or run") {
  int told = 0;
  shelf s;
  manual_timer time({.run_on = s.keeping(), .on_rejected = [&](const firing&) { ++told; }});
  const auto cancelled = time.schedule_after(1s, doing_nothing());
  const auto moved = time.schedule_after(1s, doing_nothing());
  time.schedule_after(1s, doing_nothing());
  time.advance(1s);
  time.cancel(cancelled);
  time.reschedule_after(moved, 1h);
  s.jobs.at(2)();
  s.jobs.clear();
  CHECK(told == 0);
  CHECK(time.stats().rejected == 0);
}

TEST_CASE("an executor that throws is reported only to on_error") {
  int told = 0, reported = 0;
  manual_timer time({.run_on = [](const job&) { throw 1; },
                     .on_error = [&](std::exception_ptr, const firing&) { ++reported; },
                     .on_rejected = [&](const firing&) { ++told; }});
  time.schedule_after(1s, doing_nothing());
  time.advance(1s);
  CHECK(told == 0);
  CHECK(reported == 1);
}

TEST_CASE("an exception of on_rejected is reported to on_error, with the run") {
  std::vector<firing> reported;
  manual_timer time({.run_on = dropping(),
                     .on_error = [&](std::exception_ptr, const firing& f) { reported.push_back(f); },
                     .on_rejected = [](const firing&) { throw 1; }});
  const auto id = time.schedule_after(1s, doing_nothing());
  time.advance(1s);
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].id == id);
  CHECK(time.stats().failed == 0);  // no task and no executor has failed
}

TEST_CASE("without on_error an exception of on_rejected makes a line on std::cerr") {
  const captured_cerr cerr;
  manual_timer time(
      {.run_on = dropping(), .on_rejected = [](const firing&) { throw std::runtime_error("no"); }});
  const auto id = time.schedule_after(1s, doing_nothing());
  time.advance(1s);
  CHECK(cerr.text() == "rondo: on_rejected (timer " + to_string(id) + ") threw: no\n");
}

TEST_CASE("on_rejected is not called after stop()") {
  int told = 0;
  shelf s;
  manual_timer time({.run_on = s.keeping(), .on_rejected = [&](const firing&) { ++told; }});
  time.schedule_every(1s, doing_nothing());
  time.advance(1s);
  time.stop();
  s.jobs.clear();
  CHECK(told == 0);
}

TEST_CASE("on_rejected is released with the scheduler, even if jobs outlive it") {
  const auto token = std::make_shared<int>(0);
  shelf s;
  {
    manual_timer time({.run_on = s.keeping(), .on_rejected = [token](const firing&) {}});
    time.schedule_after(1s, doing_nothing());
    time.advance(1s);
    CHECK(token.use_count() == 2);
  }
  CHECK(token.use_count() == 1);
  CHECK(s.jobs.size() == 1);
}

TEST_CASE("on_rejected may destroy the scheduler") {
  int told = 0;
  std::unique_ptr<manual_timer> time;
  shelf s;
  time = std::make_unique<manual_timer>(options{.run_on = s.keeping(), .on_rejected = [&](const firing&) {
                                                  ++told;
                                                  time.reset();
                                                }});
  time->schedule_after(1s, doing_nothing());
  time->schedule_after(1s, doing_nothing());
  time->advance(1s);
  s.jobs.clear();
  CHECK(told == 1);
  CHECK(time == nullptr);
}

}  // namespace scheduler_rejected
