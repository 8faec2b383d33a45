// A periodic timer that waits for memory to be placed, interleaved with the ends.
#include "failing_new.hpp"
#include "interleavings/stage.hpp"

#include <optional>

namespace interleavings_out_of_memory {

using namespace rondo;
using namespace rondo::test;

// These tests need the replaced operator new.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

/// The executor has timer 0, whose task stops the scheduler. Timer 2 is periodic. It has run at 1 ms, and found no
/// memory to wait for 2 ms, because timer 1 had taken it. It is `now`, and there is memory again.
auto one_waits_for_memory(duration now) {
  return [now](stage& s) {
    std::optional<failing_new> failing;
    s.in_run = [&failing](std::size_t i) {
      if (i == 1) failing.emplace();
    };
    s.add_job(1ms);
    s.add(1ms);
    s.repeat(rondo::every(1ms));
    virtual_time::move_to(at(1ms));
    s.core().pass();
    expect(failing && failing->struck(), "there is no memory for the next run");
    virtual_time::move_to(at(now));
    s.in_run = [&s](std::size_t i) {
      if (i == 0) s.stop_from_inside();
    };
  };
}

const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part stop_from_inside{"job", [](stage& s) { s.submitted(0)(); }};
const part drop_and_drain{"drains", [](stage& s) {
                            s.submitted(0) = rondo::job();
                            s.drain();
                          }};

TEST_CASE("a timer that waits for memory, pass and stop from inside") {
  for (const duration now : {1ms, 2ms})
    check_every_schedule(on_stage(one_waits_for_memory(now), {pass, stop_from_inside}));
}

TEST_CASE("a timer that waits for memory, pass and drain") {
  for (const duration now : {1ms, 2ms})
    check_every_schedule(on_stage(one_waits_for_memory(now), {pass, drop_and_drain}));
}

TEST_SUITE_END();

}  // namespace interleavings_out_of_memory
