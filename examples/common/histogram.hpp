// A histogram of durations. Many threads add to it, and one reads it.
//
// It is log-linear, with 64 steps per doubling, so a quantile is exact to 1/64 (1.6 %), rounded up. It takes 30 kB,
// after a second as after a month.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace common {

class histogram {
 public:
  using duration = std::chrono::nanoseconds;

  // Negative durations count as zero.
  void record(duration took) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<duration::rep>(took.count(), 0));
    counts_[slot(value)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
    std::uint64_t seen = max_.load(std::memory_order_relaxed);
    while (value > seen && !max_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

  std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& one : counts_) sum += one.load(std::memory_order_relaxed);
    return sum;
  }

  duration sum() const noexcept { return to_duration(sum_.load(std::memory_order_relaxed)); }

  // Ascending, without empty buckets. `upper` is the largest value that counts in the bucket.
  struct bucket {
    duration upper;
    std::uint64_t count;
  };
  std::vector<bucket> buckets() const {
    std::vector<bucket> all;
    for (std::size_t i = 0; i < slots; ++i) {
      if (const std::uint64_t count = counts_[i].load(std::memory_order_relaxed); count != 0)
        all.push_back({to_duration(largest_in(i)), count});
    }
    return all;
  }

  duration max() const noexcept { return to_duration(max_.load(std::memory_order_relaxed)); }

  // The smallest value that a share `q` of all values does not exceed; zero if nothing was recorded.
  duration quantile(double q) const noexcept {
    const std::uint64_t all = count();
    const auto wanted =
        std::max<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(all))), 1);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < slots; ++i) {
      sum += counts_[i].load(std::memory_order_relaxed);
      if (sum >= wanted) return std::min(to_duration(largest_in(i)), max());
    }
    return max();
  }

 private:
  static constexpr unsigned step_bits = 6;
  static constexpr std::size_t steps = std::size_t{1} << step_bits;
  static constexpr std::size_t slots = (63 - step_bits + 1) * steps;  // durations have 63 bits

  static duration to_duration(std::uint64_t value) noexcept {
    return duration{static_cast<duration::rep>(value)};
  }

  // Keeps the highest `step_bits + 1` bits of a value. Each small value has a slot of its own.
  static std::size_t slot(std::uint64_t value) noexcept {
    if (value < 2 * steps) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - step_bits - 1;
    return shift * steps + (value >> shift);
  }

  static std::uint64_t largest_in(std::size_t slot) noexcept {
    if (slot < 2 * steps) return slot;
    const std::size_t shift = slot / steps - 1;
    return ((slot - shift * steps + 1) << shift) - 1;
  }

  std::array<std::atomic<std::uint64_t>, slots> counts_{};
  std::atomic<std::uint64_t> sum_{0};
  std::atomic<std::uint64_t> max_{0};
};

}  // namespace common
