// A periodic timer that waits for memory to be placed, interleaved with the ends.
#include "failing_new.hpp"
#include "interleavings/stage.hpp"

#include <new>
#include <optional>
#include <vector>

namespace interleavings_out_of_memory {

using namespace rondo;
using namespace rondo::test;

// These tests need the replaced operator new.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

/// Sets far timers until the wheel needs memory for the next one, and cancels them: they stay in their slots.
void use_up_chunks(stage& s) {
  std::vector<timer_id> ids;
  ids.reserve(200);
  for (int i = 0; i != 130; ++i) ids.push_back(schedule_on(s.core(), at(1000h), at(0ms), [] {}));
  for (const timer_id id : ids) s.core().cancel(id);  // so that there are enough records
  s.also_cancelled += ids.size();
  ids.clear();
  const failing_new failing;
  try {
    for (duration span = 8ms;; span *= 8)  // each timer in its own far list
      for (int i = 1; i != 8; ++i) ids.push_back(schedule_on(s.core(), at(i * span), at(0ms), [] {}));
  } catch (const std::bad_alloc&) {
  }
  for (const timer_id id : ids) s.core().cancel(id);
  s.also_cancelled += ids.size();
}

/// The executor has timer 0, whose task stops the scheduler. Timer 2 is periodic. It has run at 1 ms, and found no
/// memory to wait for 2 ms, because timer 1 had taken it. It is `now`, and there is memory again.
auto one_waits_for_memory(duration now) {
  return [now](stage& s) {
    std::optional<failing_new> failing;
    s.in_run = [&](std::size_t i) {
      if (i != 1) return;
      use_up_chunks(s);
      failing.emplace();
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
    check_every_schedule(on_stage(one_waits_for_memory(now), {pass, stop_from_inside}), 2);
}

TEST_CASE("a timer that waits for memory, pass and drain") {
  for (const duration now : {1ms, 2ms})
    check_every_schedule(on_stage(one_waits_for_memory(now), {pass, drop_and_drain}), 2);
}

TEST_SUITE_END();

}  // namespace interleavings_out_of_memory
