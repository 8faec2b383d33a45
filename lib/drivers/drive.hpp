// The loop of a driver thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>

#include <rondo/time.hpp>

#include "drivers/alarm.hpp"
#include "scheduler/core.hpp"

namespace rondo::detail {

// Not all implementations of condition variables can wait until the end of the clock.
inline constexpr duration longest_wait = std::chrono::hours(24 * 365);
inline constexpr duration memory_retry = std::chrono::milliseconds(10);

/// Until the core is stopped, runs what is due and sleeps on `bell` until more is due. A thread that makes something
/// due earlier or stops the core rings the bell afterwards.
inline void drive(core& core, alarm& bell) noexcept {
  while (!core.stopped()) {
    bell.reset();
    try {
      core.run_pass(time_point::max(), unlimited);
      const std::optional<time_point> due = core.next_due();
      if (core.stopped()) break;
      const time_point reading = core.now();
      bell.wait_until(due ? std::optional(std::min(*due, reading + longest_wait)) : std::nullopt, reading);
    } catch (const std::bad_alloc&) {
      // Nothing is lost: what is due runs when there is memory again.
      bell.wait_until(core.now() + memory_retry, core.now());
    }
  }
}

}  // namespace rondo::detail
