// Steps of the system's clock, as the kernel tells of them.
#pragma once

#include <functional>
#include <memory>

namespace rondo::detail {

/// As wall_clock::on_step() of the system's clock. Null where the kernel does not tell.
std::shared_ptr<void> watch_steps(std::function<void()> stepped);

}  // namespace rondo::detail
