// A timer as list() reports it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

/// What list() reports about one timer. New members are always appended.
struct timer_info {
  timer_id id = {};       ///< always identifies a timer
  std::string name = {};  ///< the name in its timer_options; empty if it has none
  /// As scheduler::due(): the exact deadline of the run that the timer waits for, time_point::max() if it is never due,
  /// std::nullopt if it waits for no point in time.
  std::optional<time_point> due = {};
  /// The number of its runs that have begun, or that have ended without beginning, for example because an executor
  /// rejected them.
  std::uint64_t runs = 0;
  bool periodic = false;    ///< whether it was scheduled with a recurrence
  std::size_t running = 0;  ///< the number of its runs in progress
};

}  // namespace rondo
