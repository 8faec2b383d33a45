// A timer, as list() shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

/// What a scheduler says of one of its timers. New members are only ever appended.
struct timer_info {
  timer_id id = {};       ///< never that of no timer
  std::string name = {};  ///< as timer_options gave it; empty: none
  /// As scheduler::due(): the exact deadline of the run that it waits for, time_point::max() if it is never due; none if
  /// it waits for no moment.
  std::optional<time_point> due = {};
  /// How many of its runs have begun, or have ended otherwise: were rejected by an executor, for example.
  std::uint64_t runs = 0;
  bool periodic = false;    ///< whether it was scheduled with a recurrence
  std::size_t running = 0;  ///< how many of its runs are in progress
};

}  // namespace rondo
