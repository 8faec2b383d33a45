// The buckets of a histogram of durations. Arithmetic only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <rondo/time.hpp>

namespace rondo::detail {

/// Log-linear, as in HdrHistogram (Gil Tene): every power of two is divided into 32 equal parts. Below 64 ns, a bucket
/// has one value. Above, its width is at most 1/32 of its values, so each value is less than 1/64 away from the middle
/// of its bucket. 1888 buckets cover all non-negative durations.
struct log_linear {
  static constexpr int part_bits = 5;
  static constexpr std::uint64_t parts = std::uint64_t{1} << part_bits;

  /// Never decreases as `d` grows. Negative durations count as zero.
  static constexpr std::size_t bucket_of(duration d) noexcept {
    const std::uint64_t value = d > duration::zero() ? static_cast<std::uint64_t>(d.count()) : 0;
    const auto width = static_cast<int>(std::bit_width(value));
    const int shift = width > part_bits + 1 ? width - part_bits - 1 : 0;
    // The shifted value is less than 64, and at least 32 if the shift is not 0.
    return static_cast<std::size_t>(static_cast<std::uint64_t>(shift) * parts + (value >> shift));
  }

  // Precondition of these: bucket < buckets.

  static constexpr duration first_of(std::size_t bucket) noexcept {
    return duration(static_cast<duration::rep>((bucket - shift_of(bucket) * parts) << shift_of(bucket)));
  }
  static constexpr duration last_of(std::size_t bucket) noexcept {
    return first_of(bucket) + width_less_one(bucket);
  }
  /// The value that represents a bucket.
  static constexpr duration middle_of(std::size_t bucket) noexcept {
    return first_of(bucket) + width_less_one(bucket) / 2;
  }

  static constexpr std::size_t buckets = 1888;

 private:
  static constexpr std::uint64_t shift_of(std::size_t bucket) noexcept {
    return bucket < 2 * parts ? 0 : bucket / parts - 1;
  }
  static constexpr duration width_less_one(std::size_t bucket) noexcept {
    return duration(static_cast<duration::rep>((std::uint64_t{1} << shift_of(bucket)) - 1));
  }
};
static_assert(log_linear::bucket_of(duration::max()) + 1 == log_linear::buckets);

}  // namespace rondo::detail
