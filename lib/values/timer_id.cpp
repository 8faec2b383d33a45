#include <rondo/timer_id.hpp>

namespace rondo {

std::string to_string(const timer_id& id) {
  if (id == timer_id()) return "no timer";
  return std::to_string(id.scheduler_) + '.' + std::to_string(id.slot_) + '.' +
         std::to_string(id.generation_);
}

}  // namespace rondo
