// Steps of the system's clock, as the kernel reports them.
#pragma once

#include <functional>
#include <memory>

namespace rondo::detail {

/// As wall_clock::on_step() of the system's clock. Returns null where the kernel does not report steps.
std::shared_ptr<void> watch_steps(std::function<void()> stepped);

}  // namespace rondo::detail
