// Points that stay at their local times when the zone data are updated.
#pragma once

#include <chrono>
#include <optional>

#include <rondo/time.hpp>

namespace rondo::detail {

/// A point of a schedule. If a local time names it, `offset` is that time minus UTC. (Where the zone's clock skips that
/// time, this is between the offsets before and after.)
struct zoned_point {
  wall_time at;
  std::optional<std::chrono::seconds> offset = {};

  friend bool operator==(const zoned_point&, const zoned_point&) = default;
};

}  // namespace rondo::detail
