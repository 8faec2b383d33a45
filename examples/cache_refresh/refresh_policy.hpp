// When a value is reloaded: pure arithmetic, no clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

#include <rondo/time.hpp>

namespace cache_refresh {

enum class refresh_mode {
  ahead,    // by a timer, before the value is stale, whether or not anybody reads it
  on_read,  // by the first reader of a stale value, who gets the stale value
  expire    // a stale value is not served: its reader waits for a load
};

struct refresh_policy {
  refresh_mode mode = refresh_mode::ahead;

  // Counted from the start of the load that brought a value: the value is fresh until the first TTL, stale until the
  // second, and not served after that. A load may supply other TTLs.
  rondo::duration soft_ttl = std::chrono::minutes(1);
  rondo::duration hard_ttl = std::chrono::minutes(10);

  // At which share of the soft TTL the next load begins, and how far it may be moved to either side. The jitter
  // separates keys that were loaded together.
  double refresh_at = 0.90;
  double jitter = 0.05;

  // A load that takes longer has failed.
  rondo::duration load_deadline = std::chrono::seconds(10);
  // After n failures in a row the next load begins after a random time from 0 to first_retry * 2^(n-1), at most
  // longest_retry: exponential backoff with full jitter, as in "Exponential Backoff And Jitter" (AWS, 2015).
  rondo::duration first_retry = std::chrono::milliseconds(50);
  rondo::duration longest_retry = std::chrono::seconds(30);

  std::size_t loads_at_once = 8;
  // A key that nobody has read for this long is dropped instead of being reloaded.
  rondo::duration forget_after = rondo::duration::max();

  std::uint64_t seed = 1;
};

using random_source = std::mt19937_64;

inline double uniform(double from, double to, random_source& random) {
  return from < to ? std::uniform_real_distribution<double>(from, to)(random) : from;
}

// A share of a duration. Saturates.
inline rondo::duration share(rondo::duration whole, double factor) {
  const double count = static_cast<double>(whole.count()) * factor;
  const auto most = static_cast<double>(rondo::duration::max().count());
  return count < most ? rondo::duration(static_cast<rondo::duration::rep>(count)) : rondo::duration::max();
}

// The time from the start of a load that succeeded to the start of the next one.
inline rondo::duration refresh_delay(const refresh_policy& policy, rondo::duration soft_ttl,
                                     random_source& random) {
  return share(soft_ttl,
               uniform(policy.refresh_at - policy.jitter, policy.refresh_at + policy.jitter, random));
}

// The least time between two loads of a key, even if they take longer than its TTL.
inline rondo::duration shortest_pause(rondo::duration soft_ttl) {
  return std::max<rondo::duration>(soft_ttl / 10, std::chrono::milliseconds(1));
}

// The time from a failure to the next load. `failures`: in a row, at least 1.
inline rondo::duration retry_delay(const refresh_policy& policy, unsigned failures, random_source& random) {
  const rondo::duration ceiling = share(policy.first_retry, std::exp2(std::min(failures - 1, 60u)));
  return share(std::min(policy.longest_retry, ceiling), uniform(0, 1, random));
}

}  // namespace cache_refresh
