// A period in which a zone's clock is not set.
#pragma once

#include <chrono>

namespace rondo::detail {

/// From `begin` until before `end`. The periods before and after it may have the same offset from UTC.
struct constant_offset {
  std::chrono::sys_seconds begin, end;
  std::chrono::seconds offset;
};

}  // namespace rondo::detail
