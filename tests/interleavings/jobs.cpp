// Jobs on threads of an executor, interleaved with users' calls and the driver's pass.
#include "interleavings/stage.hpp"

#include <optional>

namespace interleavings_jobs {

using namespace rondo;
using namespace rondo::test;

/// Begins with that many timers, which were submitted at 1 ms and whose jobs have not been called.
void explore_jobs(int timers, std::vector<part> parts, std::optional<std::size_t> preemptions = {}) {
  const auto prepare = [timers](stage& s) {
    for (int i = 0; i != timers; ++i) s.add(1ms);
    virtual_time::move_to(at(1ms));
    s.core().pass();
  };
  check_every_schedule(on_stage(prepare, std::move(parts), {.buckets = 2}, stage::tasks_run::as_jobs),
                       preemptions);
}

const part start{"job", [](stage& s) { s.submitted(0)(); }};
const part start_other{"other job", [](stage& s) { s.submitted(1)(); }};
const part drop_other{"other job", [](stage& s) { s.submitted(1) = job(); }};
const part drop{"job", [](stage& s) { s.submitted(0) = job(); }};
const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part cancel{"cancels", [](stage& s) { s.cancel(0); }};
const part cancel_and_wait{"cancels", [](stage& s) { s.cancel_and_wait(0); }};
const part move{"moves", [](stage& s) { s.move(0, 0ms); }};
const part stop{"stops", [](stage& s) { s.stop(); }};
const part drain{"drains", [](stage& s) { expect(s.core().drain(1h), "nothing is left"); }};
const part retire{"destroys", [](stage& s) { s.retire(); }};

TEST_CASE("job and cancel") {
  explore_jobs(1, {start, cancel});
  explore_jobs(1, {start, cancel, cancel});
  explore_jobs(1, {drop, cancel});
}

TEST_CASE("job and cancel_and_wait") {
  explore_jobs(1, {start, cancel_and_wait});
  explore_jobs(1, {start, cancel_and_wait, cancel_and_wait}, few);
  explore_jobs(1, {drop, cancel_and_wait});
}

TEST_CASE("job and reschedule, and the pass that submits it again") {
  explore_jobs(1, {start, move});
  explore_jobs(1, {drop, move});
  explore_jobs(1, {start, move, pass});
  explore_jobs(1, {drop, move, pass});
}

TEST_CASE("job and stop") {
  explore_jobs(1, {start, stop});
  explore_jobs(1, {drop, stop});
  explore_jobs(2, {start, start_other, stop}, few);
}

TEST_CASE("job and destruction") {
  explore_jobs(1, {start, retire});
  explore_jobs(2, {start, drop_other, retire}, few);
}

TEST_CASE("job and drain") {
  explore_jobs(1, {start, drain});
  explore_jobs(1, {drop, drain});
  explore_jobs(1, {start, drain, cancel}, few);
}

TEST_CASE("job, cancel and stop") { explore_jobs(1, {start, cancel, stop}); }

TEST_CASE("a timer that its task and another thread cancel") {
  const auto prepare = [](stage& s) {
    s.add(1ms);
    s.in_run = [&s](std::size_t i) { expect(s.cancel(i) != cancel_result::cancelled, "it is running"); };
    virtual_time::move_to(at(1ms));
    s.core().pass();
  };
  check_every_schedule(on_stage(prepare, {start, cancel}, {.buckets = 2}, stage::tasks_run::as_jobs));
}

}  // namespace interleavings_jobs
