// What a task is told about its run.
#pragma once

#include <cstdint>

#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

/// One run of a task.
struct firing {
  timer_id id;               ///< what scheduling the timer returned
  time_point due;            ///< the exact deadline that was asked for
  duration lateness{};       ///< start of the run - due; never negative
  std::uint64_t run = 0;     ///< 1 for the timer's first run, 2, …
  std::uint64_t missed = 0;  ///< grid points that went by without a run, since the run before
};

}  // namespace rondo
