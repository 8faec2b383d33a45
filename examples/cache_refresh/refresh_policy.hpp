// When a key is loaded again: pure arithmetic, no clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace cache_refresh {

using random_source = std::mt19937_64;

namespace policy {

using seconds = std::chrono::duration<double>;

constexpr double refresh_at = 0.90;   // of the time to live
constexpr double jitter = 0.05;       // of the time to live, to either side
constexpr seconds shortest_ttl{0.1};  // whatever the origin says, so that it is not queried without pause

constexpr seconds first_retry{0.05};
constexpr seconds longest_retry{2.0};

inline seconds uniform(seconds from, seconds to, random_source& random) {
  return seconds(std::uniform_real_distribution<double>(from.count(), to.count())(random));
}

// The delay after a success. Its jitter separates keys that were loaded together.
inline seconds refresh_delay(seconds ttl, random_source& random) {
  ttl = std::max(ttl, shortest_ttl);
  return uniform(ttl * (refresh_at - jitter), ttl * (refresh_at + jitter), random);
}

// The delay after `failures` (1, 2, …) in a row: capped exponential backoff with full jitter, from 0 to the limit.
inline seconds retry_delay(unsigned failures, random_source& random) {
  const double doublings = std::min(failures - 1, 30u);
  return uniform(seconds(0), std::min(longest_retry, first_retry * std::exp2(doublings)), random);
}

}  // namespace policy
}  // namespace cache_refresh
