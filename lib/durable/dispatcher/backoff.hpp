// How long to wait before a retry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include <rondo/time.hpp>

namespace rondo::durable::detail {

/// Random times, so that tasks that failed together are not retried together.
class backoff {
 public:
  explicit backoff(std::uint64_t seed) : random_(seed) {}

  /// The wait after the n-th failure in a row: between zero and first * 2^(n-1), at most `longest`. Preconditions: both
  /// are not negative, and n > 0.
  duration full_jitter(int n, duration first, duration longest) {
    return between(duration::zero(), doubled(first, n - 1, longest));
  }

  /// As full_jitter(), but between `first` and first * 2^n.
  duration at_least(int n, duration first, duration longest) {
    return between(std::min(first, longest), doubled(first, n, longest));
  }

 private:
  static duration doubled(duration first, int times, duration longest) noexcept {
    duration d = std::min(first, longest);
    // Without a limit, doubling zero would not end; 63 doublings are enough for any other value.
    for (int i = 0; i < std::min(times, 63) && d < longest; ++i) d = d > longest / 2 ? longest : 2 * d;
    return d;
  }

  duration between(duration least, duration most) {
    return duration(std::uniform_int_distribution<duration::rep>(least.count(), most.count())(random_));
  }

  std::mt19937_64 random_;
};

}  // namespace rondo::durable::detail
