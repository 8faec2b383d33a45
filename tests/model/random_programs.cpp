// Random programs on virtual time, compared step by step with the model.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include "model/failing_program.hpp"
#include "model/nap.hpp"
#include "scheduler/seeds.hpp"

namespace model_random_programs {

using namespace rondo::test;

TEST_CASE("random programs run as the model says") {
  // One program in a hundred takes seconds without optimisation, so this one is shortened twice.
  for (const std::uint64_t seed : seeds("random programs", shortened(shortened(2000 / times_slower)))) {
    const outcome o = run_program(choices::drawn(seed), 100);
    if (!o.wrong.empty()) FAIL("seed " << seed << ": " << o.wrong << "\nAs a test:\n\n" << as_test(o.made));
  }
}

TEST_CASE("everything occurs often in random programs") {
  std::map<std::string, int> times;
  for (const char* const what : {".buckets = 1}",
                                 ".buckets = 4096",
                                 ".max_pending",
                                 ".run_on",
                                 ".propagate_exceptions",
                                 "thrown by t",
                                 "capacity_error: ",
                                 "stopped_error: ",
                                 "schedule_after(",
                                 "schedule_at(",
                                 "schedule_after(duration::max()",
                                 "schedule_after(-",
                                 "work, on(executor)",
                                 "work, {.name = ",
                                 "work, {.run_on = executor, .name = ",
                                 "rejected: ",
                                 "schedule(every(",
                                 "schedule(after_completion(",
                                 "schedule(intervals(",
                                 "schedule(cycle(",
                                 "schedule(backoff(",
                                 "times(",
                                 "first_after(",
                                 "first_at(",
                                 "jitter(",
                                 "missed_runs::burst",
                                 "missed_runs::delay",
                                 "overlapping_runs::queue_one",
                                 "overlapping_runs::allow",
                                 "-> cancelled",
                                 "-> running",
                                 "-> gone",
                                 "cancel_and_wait(",
                                 "reschedule_after(",
                                 "reschedule_at(",
                                 "-> true",
                                 "-> false",
                                 "elapse(",
                                 "advance(",
                                 "advance_to_next()",
                                 "drain(",
                                 "stop()",
                                 "throw ",
                                 "runs it",
                                 "keeps it",
                                 "drops it",
                                 "throws",
                                 "keeps it and throws",
                                 "run the job of ",
                                 "drop the job of ",
                                 "on another thread:",
                                 "keys.set_after(",
                                 "keys.set_at(",
                                 "keys.set(",
                                 "keys.try_set_after(",
                                 "false: keys.try_set_after(",
                                 "stopped_error: keys.",
                                 "keys.reschedule_after(",
                                 "keys.cancel(",
                                 "keys.cancel_and_wait(",
                                 "keys.clear()",
                                 "keys = keyed_timers",
                                 "scope.schedule_after(",
                                 "scope.schedule_at(",
                                 "scope.schedule(",
                                 "stopped_error: scope.",
                                 "scope.cancel(",
                                 "scope.cancel_and_wait(",
                                 "scope.reschedule_after(",
                                 "scope.reschedule_at(",
                                 "scope.cancel_all()",
                                 "scope.close()",
                                 "scope = timer_scope(time)",
                                 "= sleep_for(",
                                 "= sleep_until(",
                                 "stopped_error: sleep_",
                                 "capacity_error: sleep_",
                                 " is dropped",
                                 "destroy the coroutine of "})
    times[what] = 0;
  if (nap_stopper::possible)
    for (const char* const what : {"asked: sleep_", "request_stop() for ", "-> asked", "-> nothing"})
      times[what] = 0;
  const auto are_often = [](const auto& counted) { return counted.second >= 5; };
  for (std::uint64_t seed = 0; seed != 200 && !std::all_of(times.begin(), times.end(), are_often); ++seed) {
    std::ostringstream trace;
    run_program(choices::drawn(seed), 100, &trace);
    const std::string told = trace.str();
    for (auto& [what, count] : times)
      for (auto at = told.find(what); at != std::string::npos; at = told.find(what, at + 1)) ++count;
  }
  for (const auto& counted : times) {
    CAPTURE(counted.first);
    CHECK(are_often(counted));
  }
}

TEST_CASE("an empty list of choices makes an empty program") {
  std::ostringstream trace;
  CHECK(run_program(choices::replayed({}), 100, &trace).wrong == "");
  CHECK(trace.str() == "manual_timer time({.tick = 1ns, .buckets = 1}, time_point(0ns));\nstop()\n");
}

TEST_CASE("a program traces what it does in the words of the library") {
  std::ostringstream trace;
  const choices::list made{0, 0, 0, 0, 1, 0, 0, 1, 0, 3, 1, 1, 2, 0, 0, 1, 1, 7, 0, 1, 1, 0, 0, 1};
  CHECK(run_program(choices::replayed(made), 100, &trace).wrong == "");
  CHECK(trace.str() ==
        "manual_timer time({.tick = 1ns, .buckets = 1}, time_point(0ns));\n"
        "t0 = schedule_after(duration::max(), work, on(executor))\n"
        "reschedule_after(t0, 1ns) -> true\n"
        "advance_to_next()\n"
        "  its own executor is handed t0 (due 1ns, late 0ns, run 1, missed 0, left 0)\n"
        "    runs it\n"
        "    runs: t0 (due 1ns, late 0ns, run 1, missed 0, left 0)\n"
        "      cancel(t0) -> running\n"
        "      shrink_to_fit()\n"
        "      t1 = schedule_after(0ns, work)\n"
        "  runs: t1 (due 1ns, late 0ns, run 1, missed 0, left 0)\n"
        "stop()\n");
}

TEST_CASE("a replayed program does the same again") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    std::ostringstream trace, trace_again;
    const outcome o = run_program(choices::drawn(seed), 100, &trace);
    CHECK(run_program(choices::replayed(o.made), 1, &trace_again).made == o.made);
    CHECK(trace_again.str() == trace.str());
  }
}

TEST_CASE("a program ends when it has caused enough work") {
  int shorter = 0;
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    CAPTURE(seed);
    const outcome whole = run_program(choices::drawn(seed), 100);
    const outcome cut = run_program(choices::drawn(seed), 100, nullptr, {.looks = whole.looks / 4});
    CHECK(cut.wrong == "");
    CHECK(cut.looks <= whole.looks);
    shorter += cut.made.size() < whole.made.size() ? 1 : 0;
  }
  CHECK(shorter >= 15);  // a few have most of their work in one step
}

TEST_CASE("a program that is out of time takes no step, and neither does its replay") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    std::ostringstream trace, trace_again;
    const outcome o = run_program(choices::drawn(seed), 100, &trace, {.end = rondo::scheduler::clock::now()});
    CHECK(trace.str().find("schedule") == std::string::npos);
    CHECK(trace.str().find("advance") == std::string::npos);
    CHECK(run_program(choices::replayed(o.made), 1, &trace_again).made == o.made);
    CHECK(trace_again.str() == trace.str());
  }
}

}  // namespace model_random_programs
