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
/// quantile(q) <= quantile(1) == max()`, and the mean is between those. The sum is exact.
///
/// Readings of several schedulers can be added up, and an earlier one of the same scheduler subtracted, which leaves
/// what was recorded between the two. What count(), min(), max(), mean(), quantile() and buckets() then return is as
/// accurate as that of a histogram in which just those durations were recorded.
///
/// A plain value. Copying it copies at most 15 KiB; an empty one owns no memory. Each member visits at most 1,888
/// counts. Any number of threads may read one that nobody writes.
class RONDO_EXPORT histogram {
 public:
  /// Durations that are counted together: from above the bucket before to `upper`, which is at most 1/32 more.
  struct bucket {
    duration upper = {};      ///< the longest that it counts: itself inclusive
    std::uint64_t count = 0;  ///< how many were recorded

    /// Whether both members are equal.
    friend bool operator==(const bucket&, const bucket&) noexcept = default;
  };

  /// Makes one that is empty.
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

  /// The sum of the durations recorded, each as it was, not as its bucket tells it; negative ones count as zero. If it
  /// is longer than duration::max(), it is that. (While runs are being recorded, a reading may have the count of one
  /// without its share of the sum, or that without the count. Then the sum is still one that durations in these buckets
  /// can have.)
  duration sum() const noexcept { return sum_; }

  /// The buckets that are not empty, in ascending order: for the formats of monitoring systems. Their counts add up to
  /// count(). Throws std::bad_alloc.
  std::vector<bucket> buckets() const;

  /// Adds what the other one counts. Their counts together must be less than 2^64. Throws std::bad_alloc; strong
  /// guarantee.
  histogram& operator+=(const histogram& other);

  /// Leaves what was recorded since `earlier`, an earlier reading of the same histogram, was made; also of a sum of
  /// such readings. The shortest and the longest duration are those of what is left. A sum that is duration::max() is
  /// not known and stays so, as far as the buckets left permit.
  ///
  /// If `earlier` counts more durations in a bucket, or has a greater sum, it was no earlier reading:
  /// std::invalid_argument, and nothing is changed.
  histogram& operator-=(const histogram& earlier);

  /// Whether all counts are equal. Sums do not matter.
  friend bool operator==(const histogram& a, const histogram& b) noexcept { return a.counts_ == b.counts_; }

 private:
  friend struct detail::histogram_access;

  void tidy() noexcept;

  std::vector<std::uint64_t> counts_;  // by bucket of detail::log_linear, up to the last that is not zero
  duration sum_ = {};                  // not less than if each duration were the first of its bucket, nor
                                       // more than if each were the last
};

namespace detail {
struct RONDO_EXPORT histogram_access {
  /// `counts`: by bucket of log_linear. Zeros at the end are removed. A sum that no durations in these buckets have
  /// becomes the nearest that some have.
  static histogram make(std::vector<std::uint64_t> counts, duration sum) noexcept;
};
}  // namespace detail

}  // namespace rondo
