// The core of a scheduler, for components on top of it.
#pragma once

#include <memory>

#include <rondo/scheduler.hpp>

#include "scheduler/core.hpp"

namespace rondo::detail {

struct core_access {
  static const std::shared_ptr<core>& of(const scheduler& s) noexcept { return s.core_; }
};

}  // namespace rondo::detail
