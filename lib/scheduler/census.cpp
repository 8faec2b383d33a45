#include "scheduler/census.hpp"

namespace rondo::detail {

std::string fault_of(const counters& c, const census& found) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  if (c.ended != c.completed + c.cancelled + c.returned)
    return text(c.ended) + " timers ceased to be pending, but " + text(c.completed) + " completed + " +
           text(c.cancelled) + " cancelled + " + text(c.returned) + " returned are counted";
  if (c.pending() != found.pending())
    return text(c.pending()) + " timers are pending, but " + text(found.in_wheel) + " in the wheel + " +
           text(found.in_pass) + " in the pass + " + text(found.never_due) + " never due + " +
           text(found.without_memory) + " waiting for memory + " + text(found.with_executor) +
           " with the executor are found";
  if (found.slots != found.free + c.pending())
    return "of " + text(found.slots) + " records " + text(found.free) + " are free, but " +
           text(c.pending()) + " timers are pending";
  return {};
}

}  // namespace rondo::detail
