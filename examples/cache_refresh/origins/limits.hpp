// What origins have in common about time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "../origin.hpp"

namespace cache_refresh {

// How long opening an origin waits for a server that does not answer.
inline constexpr std::chrono::seconds opening_patience{5};

// For what is at its origin stale at once: a time to live of nothing would mean loading it without a pause.
inline constexpr std::chrono::seconds shortest_ttl{1};

// A time to live that a database gives. Not positive: shortest_ttl.
inline time_to_live ttl_of(std::int64_t milliseconds) {
  if (milliseconds <= 0) return {.soft = shortest_ttl, .hard = {}};
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(rondo::duration::max()).count();
  return {.soft = std::chrono::milliseconds(std::min<std::int64_t>(milliseconds, most)), .hard = {}};
}

// A limit as libraries take it: from 1 ms to an hour.
inline std::chrono::milliseconds whole_milliseconds(rondo::duration limit) {
  return std::clamp<std::chrono::milliseconds>(
      std::chrono::ceil<std::chrono::milliseconds>(std::min<rondo::duration>(limit, std::chrono::hours(1))),
      std::chrono::milliseconds(1), std::chrono::hours(1));
}

}  // namespace cache_refresh
