#include "scheduler/placement.hpp"

namespace rondo::detail {

std::string fault_of(const tally& t, const placement& where) {
  const std::uint64_t ended = t.completed + t.cancelled + t.returned;
  if (t.left != ended)
    return std::to_string(t.left) + " timers ceased to be pending, and " + std::to_string(t.completed) +
           " completed + " + std::to_string(t.cancelled) + " cancelled + " + std::to_string(t.returned) +
           " returned are counted";
  if (t.pending() != where.pending())
    return std::to_string(t.pending()) + " timers are pending, and " + std::to_string(where.in_wheel) +
           " in the wheel + " + std::to_string(where.in_pass) + " in the pass + " +
           std::to_string(where.never_due) + " never due + " + std::to_string(where.unplaced) +
           " waiting for memory + " + std::to_string(where.with_executor) + " with the executor are found";
  if (where.slots != where.free + t.pending())
    return "of " + std::to_string(where.slots) + " records " + std::to_string(where.free) +
           " are free, and " + std::to_string(t.pending()) + " timers are pending";
  return {};
}

}  // namespace rondo::detail
