// A histogram of durations.
#pragma once

#include <cstdint>
#include <vector>

#include <rondo/export.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {
struct histogram_access;
}

/// The distribution of the durations that were recorded until it was made. Each is accurate to 1/64 (1.6 %), those
/// below 64 ns are exact, and negative ones count as zero. The results are consistent: `min() == quantile(0) <=
/// quantile(q) <= quantile(1) == max()`, and the mean is between those.
///
/// A plain value. Copying it copies at most 15 KiB; an empty one owns no memory. Each member visits at most 1,888
/// counts. Any number of threads may read one that nobody writes.
class RONDO_EXPORT histogram {
 public:
  histogram() noexcept = default;

  /// The number of durations recorded.
  std::uint64_t count() const noexcept;

  ///@{
  /// The shortest, the longest, and the mean; zero when empty.
  duration min() const noexcept { return quantile(0); }
  duration max() const noexcept { return quantile(1); }
  duration mean() const noexcept;
  ///@}

  /// The nearest-rank quantile: of n durations in ascending order the one numbered ⌈q·n⌉, or the first if that is
  /// 0. So it is always one of those recorded, never between two. quantile(0.5) is the (lower) median. Zero when
  /// empty.
  ///
  /// `q` is clamped to 0 … 1, and NaN counts as 0. Rounding of `q` does not change the rank: although the double
  /// 0.9 is a little more than nine tenths, quantile(0.9) of ten durations is the ninth.
  duration quantile(double q) const noexcept;

  /// Whether all counts are equal.
  friend bool operator==(const histogram&, const histogram&) noexcept = default;

 private:
  friend struct detail::histogram_access;

  std::vector<std::uint64_t> counts_;  // by bucket of detail::log_linear, up to the last that is not zero
};

namespace detail {
struct RONDO_EXPORT histogram_access {
  /// `counts`: by bucket of log_linear. Zeros at the end are removed.
  static histogram make(std::vector<std::uint64_t> counts) noexcept;
};
}  // namespace detail

}  // namespace rondo
