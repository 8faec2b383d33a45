// The watchdog: runs that take longer than slow_after.
#include <rondo/keyed_timers.hpp>
#include <rondo/timer_scope.hpp>

#include <memory>
#include <stdexcept>
#include <vector>

#include "scheduler/captured_cerr.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_slow_runs {

using namespace rondo;
using namespace rondo::test;

/// Options of a scheduler that records runs longer than 10 ms.
options keeping(std::vector<slow_run>& slow) {
  return {.slow_after = 10ms, .on_slow = [&slow](const slow_run& s) { slow.push_back(s); }};
}

TEST_CASE("a run that takes longer than slow_after is reported with its run time; others are not") {
  std::vector<slow_run> slow;
  manual_timer time(keeping(slow));
  for (const duration run_time : {duration(9ms), duration(10ms), duration(10ms + 1ns)})
    time.schedule_after(0s, [&time, run_time] { time.elapse(run_time); });
  const auto often = time.schedule_every(1s, [&](const firing& f) {
    if (f.run == 3) time.elapse(2s + 500ms);
  });
  time.advance(0s);
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].run_time == 10ms + 1ns);
  time.advance(10s);
  REQUIRE(slow.size() == 2);
  CHECK(slow[1].what.id == often);
  CHECK(slow[1].what.run == 3);
  CHECK(slow[1].what.due == at(3s));
  CHECK(slow[1].run_time == 2500ms);
}

TEST_CASE("with slow_after = 0 every run that takes any time is reported, and by default none") {
  std::vector<slow_run> slow;
  options o = keeping(slow);
  o.slow_after = 0s;
  manual_timer time(o);
  time.schedule_after(0s, [&] { time.elapse(1ns); });
  time.schedule_after(0s, doing_nothing());
  CHECK(time.advance(0s) == 2);
  CHECK(slow.size() == 1);

  bool told = false;
  manual_timer unwatched(options{.on_slow = [&](const slow_run&) { told = true; }});
  unwatched.schedule_after(0s, [&] { unwatched.elapse(1000h); });
  CHECK(unwatched.advance(0s) == 1);
  CHECK_FALSE(told);
}

TEST_CASE("a negative slow_after is refused, with its value in the message") {
  CHECK_THROWS_WITH_AS(manual_timer(options{.slow_after = -5ns}),
                       "rondo: slow_after must not be negative, but is -5 ns", std::invalid_argument);
}

TEST_CASE("on_slow is called from inside, after the run and before the callable of a last run is destroyed") {
  const auto token = std::make_shared<int>(0);
  long users = 0;
  bool inside = false;
  std::vector<duration> lateness;
  manual_timer* scheduler = nullptr;
  manual_timer time(options{.slow_after = 10ms, .on_slow = [&](const slow_run&) {
                              users = token.use_count();
                              scheduler->elapse(5ms);  // the time it takes itself makes others late, too
                              try {
                                scheduler->advance(0s);
                              } catch (const std::logic_error&) {
                                inside = true;
                              }
                            }});
  scheduler = &time;
  time.schedule_after(0s, [&time, token] { time.elapse(1s); });
  time.schedule_after(0s, [&](const firing& f) { lateness.push_back(f.lateness); });
  CHECK(time.advance(0s) == 2);
  CHECK(users == 2);
  CHECK(token.use_count() == 1);
  CHECK(inside);
  CHECK(lateness == std::vector<duration>{1005ms});
}

/// Destroying the last copy takes that long.
class slow_to_destroy {
 public:
  slow_to_destroy(manual_timer& time, duration d) : time_(&time), takes_(d) {}
  slow_to_destroy(slow_to_destroy&& other) noexcept
      : time_(std::exchange(other.time_, nullptr)), takes_(other.takes_) {}
  ~slow_to_destroy() {
    if (time_ != nullptr) time_->elapse(takes_);
  }

 private:
  manual_timer* time_;
  duration takes_;
};

TEST_CASE("the time that on_error takes is no part of the run that threw, but makes others late") {
  std::vector<slow_run> slow;
  options o = keeping(slow);
  manual_timer* scheduler = nullptr;
  o.on_error = [&](std::exception_ptr, const firing&) { scheduler->elapse(1s); };
  manual_timer time(o);
  scheduler = &time;
  std::vector<firing> runs;
  time.schedule_after(0s, [&] {
    time.elapse(10ms);
    throw std::runtime_error("");
  });
  time.schedule_after(0s, recording(runs));
  CHECK(time.advance(0s) == 2);
  CHECK(slow.empty());
  CHECK(time.stats().run_time.sum() == 10ms);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].lateness == 1010ms);
}

TEST_CASE("the time that destroying a callable takes is no part of the next run, but makes it late") {
  std::vector<std::string> slow;
  manual_timer time(
      options{.slow_after = 5ms, .on_slow = [&](const slow_run& r) { slow.emplace_back(r.what.name); }});
  std::vector<firing> runs;
  time.schedule_after(300ms, [kept = slow_to_destroy(time, 650ms)] {}, {.name = "first"});
  time.schedule_after(300ms, recording(runs), {.name = "second"});
  const timer_id every = time.schedule_every(300ms, recording(runs));
  time.advance(300ms);
  CHECK(slow.empty());
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].lateness == 650ms);
  CHECK(runs[1].due == at(300ms));
  CHECK(runs[1].lateness == 650ms);
  CHECK(runs[1].missed == 2);
  CHECK(time.due(every) == at(1200ms));
}

TEST_CASE("slow runs that throw, and those on an executor, are reported as well") {
  std::vector<slow_run> slow;
  std::vector<job> jobs;
  int failed = 0;
  options o = keeping(slow);
  o.run_on = [&](job j) { jobs.push_back(std::move(j)); };
  o.on_error = [&](std::exception_ptr, const firing&) { ++failed; };
  manual_timer time(o);
  time.schedule_after(0s, [&] {
    time.elapse(20ms);
    throw 1;
  });
  time.advance(0s);
  time.elapse(1h);  // waiting for the executor is not run time
  jobs.at(0)();
  CHECK(failed == 1);
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].run_time == 20ms);
}

TEST_CASE("an on_slow that throws is reported to on_error, with the run") {
  std::vector<firing> reported;
  manual_timer time(options{.on_error = [&](std::exception_ptr, const firing& f) { reported.push_back(f); },
                            .slow_after = 10ms,
                            .on_slow = [](const slow_run&) { throw std::runtime_error("no"); }});
  const auto id = time.schedule_after(0s, [&] { time.elapse(11ms); });
  CHECK(time.advance(0s) == 1);
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].id == id);
  CHECK(time.stats().failed == 0);  // the run did not fail
}

TEST_CASE("without on_slow a slow run makes one line on std::cerr") {
  const captured_cerr cerr;
  manual_timer time(options{.slow_after = 10ms});
  time.schedule_after(0s, [&] { time.elapse(1500ms); });
  time.advance(0s);
  CHECK(cerr.lines() == 1);
  CHECK(cerr.text().find(" ran for 1.5 s") != std::string::npos);
}

/// Whether `made` is in this file, in the line before `after`.
bool is_line_before(const rondo::call_site& after, const rondo::call_site& made) {
  return made && std::string(made.file) == after.file && made.line + 1 == after.line;
}

TEST_CASE("checked builds know the line that scheduled a slow run, whatever call was used") {
  std::vector<slow_run> slow;
  manual_timer time(keeping(slow));
  rondo::timer_scope scope(time);
  rondo::keyed_timers<int> keyed(time);
  const auto work = [&] { time.elapse(11ms); };
  std::vector<rondo::call_site> after;
  time.schedule_after(0s, work);
  after.push_back(rondo::call_site::here());
  time.schedule(rondo::every(1h).first_after(0s).times(1), work);
  after.push_back(rondo::call_site::here());
  scope.schedule_at(time.now(), work);
  after.push_back(rondo::call_site::here());
  keyed.set_after(1, 0s, work);
  after.push_back(rondo::call_site::here());
  time.advance(0s);
  REQUIRE(slow.size() == after.size());
  for (std::size_t i = 0; i != slow.size(); ++i) {
#if defined(RONDO_CHECKS)
    CHECK(is_line_before(after[i], slow[i].scheduled_at));
#else
    CHECK_FALSE(slow[i].scheduled_at);
    CHECK_FALSE(is_line_before(after[i], slow[i].scheduled_at));
#endif
  }
}

}  // namespace scheduler_slow_runs
