// Periodic timers: the driver's pass and jobs on threads of an executor, interleaved with users' calls and the ends.
#include "interleavings/stage.hpp"

#include <optional>

namespace interleavings_periodic {

using namespace rondo;
using namespace rondo::test;

const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part start{"job", [](stage& s) { s.submitted(0)(); }};
const part start_other{"other job", [](stage& s) { s.submitted(1)(); }};
const part drop{"job", [](stage& s) { s.submitted(0) = job(); }};
const part cancel{"cancels", [](stage& s) { s.cancel(0); }};
const part cancel_and_wait{"cancels", [](stage& s) { s.cancel_and_wait(0); }};
const part stop{"stops", [](stage& s) { s.stop(); }};
const part drain{"drains", [](stage& s) { s.drain(); }};
const part retire{"destroys", [](stage& s) { s.retire(); }};

part moving(duration to) {
  return {"moves", [to](stage& s) { s.move(0, to); }};
}

/// A periodic timer is due, and the driver has not taken it yet.
void explore_pass(const recurrence& when, std::vector<part> others,
                  std::optional<std::size_t> preemptions = {}) {
  const auto prepare = [when](stage& s) {
    s.repeat(when);
    virtual_time::move_to(at(1ms));
  };
  others.insert(others.begin(), pass);
  check_every_schedule(on_stage(prepare, std::move(others)), preemptions);
}

/// The driver has submitted the runs that were due by `now`, and their jobs have not been called.
void explore_jobs(const recurrence& when, std::vector<part> parts, duration now = 1ms,
                  std::optional<std::size_t> preemptions = {}) {
  const auto prepare = [when, now](stage& s) {
    s.repeat(when);
    for (duration t = 1ms; t <= now; t += 1ms) {
      virtual_time::move_to(at(t));
      s.core().pass();
    }
  };
  check_every_schedule(on_stage(prepare, std::move(parts), {.buckets = 2}, stage::tasks_run::as_jobs),
                       preemptions);
}

const recurrence fixed_rate = every(1ms);
const recurrence fixed_delay = after_completion(1ms);

TEST_CASE("periodic: pass, and users' calls") {
  for (const part& other : {cancel, cancel_and_wait, moving(0ms), moving(2ms), moving(duration::max())})
    explore_pass(fixed_rate, {other});
}

TEST_CASE("periodic: pass, and a call that asks whether the timer is pending") {
  const part asks{"asks",
                  [](stage& s) { expect(s.pending(0), "a periodic timer is pending until it is ended"); }};
  explore_pass(fixed_rate, {asks});
}

TEST_CASE("periodic: pass, and reschedule to a moment later than the time that the pass has read") {
  const part move_within_the_tick{"moves", [](stage& s) {
                                    virtual_time::move_to(at(1'500us));
                                    s.move(0, 1'500us);
                                  }};
  explore_pass(fixed_rate, {move_within_the_tick});
}

TEST_CASE("periodic: pass, and the end") {
  for (const part& end : {stop, drain, retire}) explore_pass(fixed_rate, {end});
}

TEST_CASE("periodic: pass, reschedule and the end") {
  for (const part& end : {stop, drain}) explore_pass(fixed_rate, {moving(2ms), end}, few);
}

TEST_CASE("periodic: job, and users' calls") {
  for (const recurrence& when : {fixed_rate, fixed_delay}) {
    for (const part& act : {start, drop})
      for (const part& other : {cancel, cancel_and_wait, moving(0ms)}) explore_jobs(when, {act, other});
  }
}

TEST_CASE("periodic: job, and the end") {
  for (const recurrence& when : {fixed_rate, fixed_delay}) {
    for (const part& act : {start, drop})
      for (const part& end : {stop, drain, retire}) explore_jobs(when, {act, end});
  }
}

/// The executor has another timer, whose task stops the scheduler.
const part stop_from_inside{"job", [](stage& s) { s.submitted(0)(); }};

auto with_a_job_that_stops(const recurrence& when, duration now) {
  return [=](stage& s) {
    s.add_job(0ms);
    s.core().pass();
    s.repeat(when);
    virtual_time::move_to(at(now));
    s.in_run = [&s](std::size_t i) {
      if (i == 0) s.stop_from_inside();
    };
  };
}

TEST_CASE("periodic: pass and stop from inside") {
  check_every_schedule(on_stage(with_a_job_that_stops(fixed_rate, 1ms), {pass, stop_from_inside}));
}

TEST_CASE("periodic: the late runs of a burst and the end") {
  const recurrence bursts = fixed_rate.on_missed(missed_runs::burst);
  const auto late = [bursts](stage& s) {
    s.repeat(bursts);
    virtual_time::move_to(at(2ms));
  };
  for (const part& end : {stop, drain}) check_every_schedule(on_stage(late, {pass, end}));
  check_every_schedule(on_stage(with_a_job_that_stops(bursts, 2ms), {pass, stop_from_inside}));
}

TEST_CASE("periodic: the last run, in a job, and the end") {
  for (const part& end : {stop, drain, cancel, moving(0ms)})
    for (const part& act : {start, drop}) explore_jobs(fixed_rate.times(1), {act, end});
}

TEST_CASE("periodic: runs that overlap, and the end") {
  for (const auto what : {overlapping_runs::queue_one, overlapping_runs::allow})
    for (const part& end : {stop, drain, cancel})
      explore_jobs(fixed_rate.on_overlap(what), {start, end}, 2ms);
  explore_jobs(fixed_rate.on_overlap(overlapping_runs::allow), {start, start_other, drain}, 2ms, few);
  explore_jobs(fixed_rate, {drain, start, cancel}, 1ms, 2);
}

}  // namespace interleavings_periodic
