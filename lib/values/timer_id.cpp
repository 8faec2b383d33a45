#include <rondo/timer_id.hpp>

namespace rondo {

std::string to_string(const timer_id& id) {
  if (id == timer_id()) return "no timer";
  const auto& [scheduler, slot, generation] = id.parts_;
  return std::to_string(scheduler) + '.' + std::to_string(slot) + '.' + std::to_string(generation);
}

}  // namespace rondo
