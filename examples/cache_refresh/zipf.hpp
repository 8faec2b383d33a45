// Zipf's law: the k-th most popular of n is picked 1/k as often as the most popular one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace cache_refresh {

// Takes 8 bytes per element, and O(log n) time per pick. Threads may share it.
class zipf {
 public:
  // If `skewed` is false, all elements are equally likely.
  zipf(std::size_t n, bool skewed) : sums_(n) {
    double sum = 0;
    for (std::size_t rank = 0; rank < n; ++rank)
      sums_[rank] = sum += skewed ? 1.0 / static_cast<double>(rank + 1) : 1.0;
  }

  std::uint32_t pick(std::mt19937_64& random) const {
    const double at = std::uniform_real_distribution<double>(0, sums_.back())(random);
    const auto found = std::upper_bound(sums_.begin(), sums_.end() - 1, at);
    return static_cast<std::uint32_t>(found - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

}  // namespace cache_refresh
