// Shared by the tests without memory.
#pragma once

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace rondo::test {

/// A timer with near and far tasks, in every part of the pool and in few buckets.
struct world {
  manual_timer time{options{.buckets = 4, .max_pending = 200}};
  std::vector<firing> runs;
  std::vector<timer_id> ids;

  world() {
    runs.reserve(10'000);
    ids.reserve(200);
    for (int i = 0; i != 64; ++i)  // as many as the pool creates at a time, so the next one makes it grow
      ids.push_back(time.schedule_after((i * i % 97 + 1) * 1ms, recording(runs)));
  }

  std::string state() {
    std::string s = std::to_string(time.pending()) + ' ' + std::to_string(time.stats().scheduled) + ' ' +
                    std::to_string(time.next_due().value_or(time_point::max()).time_since_epoch().count());
    for (const timer_id id : ids) s += time.pending(id) ? '+' : '-';
    return s;
  }

  /// The runs until nothing is left, in order, each with its deadline.
  std::string rest() {
    runs.clear();
    time.advance(2000h);
    std::string s;
    for (const firing& f : runs)
      s += std::to_string(std::find(ids.begin(), ids.end(), f.id) - ids.begin()) + '@' +
           std::to_string(f.due.time_since_epoch().count()) + ' ';
    return s;
  }
};

/// Calls schedule_after(duration) until the wheel needs memory for the next timer.
template <class ScheduleAfter>
void use_up_chunks(ScheduleAfter&& schedule_after) {
  for (int i = 0; i != 70; ++i)
    schedule_after(2000h);  // the last of them brings enough records for those that follow
  const failing_new failing;
  try {
    for (duration span = 8ms; span < 1000h; span *= 8)  // each timer in its own far list
      for (int i = 1; i != 8; ++i) schedule_after(i * span);
  } catch (const std::bad_alloc&) {
  }
  if (!failing.struck()) FAIL("there is memory left");
}

/// A world in which moving a remote timer to an earlier tick needs memory.
struct full_world : world {
  static constexpr std::size_t remote = 64;  // the number of the first of 70 that are due after 2000 h

  full_world() {
    use_up_chunks([this](duration after) { ids.push_back(time.schedule_after(after, recording(runs))); });
  }
};

/// Runs `operation` in fresh worlds with the 1st, 2nd, … allocation failing, until it succeeds. Checks after each
/// failure that the world has not changed, and returns how often the operation failed.
template <class World = world, class Operation>
int fail_everywhere(Operation&& operation) {
  for (int k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    World untouched, w;
    const std::string before = w.state();
    bool done = false;
    {
      const failing_new failing(static_cast<std::size_t>(k));
      try {
        operation(w);
        done = true;
      } catch (const std::bad_alloc&) {
      }
      if (done && !failing.struck()) return k;
    }
    if (done) continue;  // it succeeded without the memory
    CHECK(w.state() == before);
    CHECK(adds_up(w.time.stats()));
    CHECK(w.rest() == untouched.rest());
  }
}

}  // namespace rondo::test
