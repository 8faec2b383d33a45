// How long to wait before something is tried again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include <rondo/time.hpp>

namespace rondo::durable::detail {

/// Random times, so that what failed together does not come back together.
class backoff {
 public:
  explicit backoff(std::uint64_t seed) : random_(seed) {}

  /// After the n-th failure in a row: between zero and first * 2^(n-1), at most `longest`. Both not negative; n > 0.
  duration full_jitter(int n, duration first, duration longest) {
    return between(duration::zero(), doubled(first, n - 1, longest));
  }

  /// The same, but not below `first`, and twice as long from the beginning.
  duration at_least(int n, duration first, duration longest) {
    return between(std::min(first, longest), doubled(first, n, longest));
  }

 private:
  static duration doubled(duration first, int times, duration longest) noexcept {
    duration d = std::min(first, longest);
    // Doubling zero does not end; and 63 doublings are enough for every other.
    for (int i = 0; i < std::min(times, 63) && d < longest; ++i) d = d > longest / 2 ? longest : 2 * d;
    return d;
  }

  duration between(duration least, duration most) {
    return duration(std::uniform_int_distribution<duration::rep>(least.count(), most.count())(random_));
  }

  std::mt19937_64 random_;
};

}  // namespace rondo::durable::detail
