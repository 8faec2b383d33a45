// Where the timers of a scheduler are, and whether that fits its counters.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/tally.hpp"

namespace rondo::detail {

/// Where the pending timers of a scheduler are while nothing is in progress, and its records.
struct placement {
  std::uint64_t in_wheel = 0;
  std::uint64_t in_pass = 0;  // taken out of the wheel by a pass that reached its limit
  std::uint64_t never_due = 0;
  std::uint64_t unplaced = 0;
  std::uint64_t with_executor = 0;
  std::uint64_t slots = 0;
  std::uint64_t free = 0;

  std::uint64_t pending() const noexcept { return in_wheel + in_pass + never_due + unplaced + with_executor; }
};

/// In words, or empty.
std::string fault_of(const tally&, const placement&);

}  // namespace rondo::detail
