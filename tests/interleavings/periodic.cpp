// Periodic timers: the driver's pass and jobs on threads of an executor, against what users call and the ends.
#include "interleavings/stage.hpp"

#include <optional>

namespace {

using namespace rondo::test;
using rondo::after_completion;
using rondo::duration;
using rondo::every;
using rondo::job;
using rondo::missed_runs;
using rondo::overlapping_runs;
using rondo::recurrence;

const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part start{"job", [](stage& s) { s.handed(0)(); }};
const part start_other{"other job", [](stage& s) { s.handed(1)(); }};
const part drop{"job", [](stage& s) { s.handed(0) = job(); }};
const part cancel{"cancels", [](stage& s) { s.cancel(0); }};
const part cancel_and_wait{"cancels", [](stage& s) { s.cancel_and_wait(0); }};
const part stop{"stops", [](stage& s) { s.stop(); }};
const part drain{"drains", [](stage& s) { s.drain(); }};
const part retire{"destroys", [](stage& s) { s.retire(); }};

part moving(duration to) {
  return {"moves", [to](stage& s) { s.move(0, to); }};
}

/// A periodic timer is due, and the driver has not taken it up.
void explore_pass(const recurrence& when, std::vector<part> others,
                  std::optional<std::size_t> preemptions = {}) {
  const auto prepare = [when](stage& s) {
    s.repeat(when);
    virtual_time::move_to(at(1ms));
  };
  others.insert(others.begin(), pass);
  check_every_schedule(on_stage(prepare, std::move(others)), preemptions);
}

/// The driver has handed over what was due by `now`, and the jobs have not been called.
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

TEST_CASE("periodic: pass, and what users call") {
  for (const part& other : {cancel, cancel_and_wait, moving(0ms), moving(2ms), moving(duration::max())})
    explore_pass(fixed_rate, {other});
}

TEST_CASE("periodic: pass, and the end") {
  for (const part& end : {stop, drain, retire}) explore_pass(fixed_rate, {end});
}

TEST_CASE("periodic: pass, reschedule and the end") {
  for (const part& end : {stop, drain}) explore_pass(fixed_rate, {moving(2ms), end}, few);
}

TEST_CASE("periodic: job, and what users call") {
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

}  // namespace
