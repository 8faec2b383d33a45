#include <rondo/wheel.hpp>

#include <string>

namespace rondo::detail {

void unlocked_wheel::check_periodically(const char* after) noexcept {
  unused_check_steps_ += check_steps_per_call;
  if (unused_check_steps_ < buckets() + size) return;
  unused_check_steps_ = 0;
  std::size_t nodes = 0;
  for_each([&](const node&) { ++nodes; });
  std::string wrong = fault();
  if (wrong.empty() && nodes != size)
    wrong = "it holds " + std::to_string(nodes) + " nodes, but counts " + std::to_string(size);
  if (!wrong.empty()) die("after " + std::string(after) + " of a wheel: " + wrong);
}

}  // namespace rondo::detail
