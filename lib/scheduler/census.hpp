// Where the timers of a scheduler are, and whether that agrees with its counters.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/counters.hpp"

namespace rondo::detail {

/// Where a scheduler's pending timers and its records are while nothing is in progress.
struct census {
  std::uint64_t in_wheel = 0;
  std::uint64_t in_pass = 0;  // taken out of the wheel by a pass that reached its limit
  std::uint64_t never_due = 0;
  std::uint64_t without_memory = 0;
  std::uint64_t with_executor = 0;
  std::uint64_t slots = 0;
  std::uint64_t free = 0;

  std::uint64_t pending() const noexcept {
    return in_wheel + in_pass + never_due + without_memory + with_executor;
  }
};

/// Describes how they disagree; empty if they agree.
std::string fault_of(const counters&, const census&);

}  // namespace rondo::detail
