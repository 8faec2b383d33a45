// Time limits that the origins share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "../origin.hpp"

namespace cache_refresh {

// How long opening an origin waits for a server that does not answer.
inline constexpr std::chrono::seconds opening_patience{5};

// For values that are stale at once at their origin. With a time to live of 0 they would be loaded without a pause.
inline constexpr std::chrono::seconds shortest_ttl{1};

// The time to live that a database gives; shortest_ttl if it is not positive.
inline time_to_live ttl_of(std::int64_t milliseconds) {
  if (milliseconds <= 0) return {.soft = shortest_ttl, .hard = {}};
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(rondo::duration::max()).count();
  return {.soft = std::chrono::milliseconds(std::min<std::int64_t>(milliseconds, most)), .hard = {}};
}

// A limit in the form that libraries take: from 1 ms to one hour.
inline std::chrono::milliseconds whole_milliseconds(rondo::duration limit) {
  return std::clamp<std::chrono::milliseconds>(
      std::chrono::ceil<std::chrono::milliseconds>(std::min<rondo::duration>(limit, std::chrono::hours(1))),
      std::chrono::milliseconds(1), std::chrono::hours(1));
}

}  // namespace cache_refresh
