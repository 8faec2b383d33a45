// Creates histograms of given durations.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <rondo/detail/log_linear.hpp>
#include <rondo/histogram.hpp>

#include "scheduler/run_meter.hpp"
#include "scheduler/seeds.hpp"

namespace rondo::test {

using recorder = rondo::detail::histogram_recorder;

inline constexpr std::int64_t most = duration::max().count();

inline histogram of(const std::vector<std::int64_t>& values) {
  recorder r;
  for (const std::int64_t v : values) r.record(duration(v));
  return r.snapshot();
}

/// A histogram with `counts[i].second` durations in the bucket of `counts[i].first`. Their sum is `sum`, or the nearest
/// one that they can have.
inline histogram of_counts(const std::vector<std::pair<std::int64_t, std::uint64_t>>& counts,
                           std::int64_t sum = 0) {
  using rondo::detail::log_linear;
  std::vector<std::uint64_t> by_bucket(log_linear::buckets);
  for (const auto& [value, count] : counts) by_bucket[log_linear::bucket_of(duration(value))] += count;
  return rondo::detail::histogram_access::make(std::move(by_bucket), duration(sum));
}

inline std::int64_t middle(std::int64_t value) {
  using rondo::detail::log_linear;
  return log_linear::middle_of(log_linear::bucket_of(duration(value))).count();
}

/// A value of any magnitude; all magnitudes are equally likely.
inline std::int64_t random_value(dice& dice) {
  const std::uint64_t bits = dice.roll(64);
  return static_cast<std::int64_t>(dice.roll(std::uint64_t{1} << bits));
}

}  // namespace rondo::test
