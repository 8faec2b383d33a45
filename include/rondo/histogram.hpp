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

/// The distribution of the durations recorded until this reading was taken. Each duration is accurate to 1/64 (1.6 %);
/// durations below 64 ns are exact, and negative ones count as zero. The results are consistent: `min() == quantile(0)
/// <= quantile(q) <= quantile(1) == max()`, and the mean is between min() and max(). The sum is exact.
///
/// Readings of several schedulers can be added, and an earlier reading of the same scheduler can be subtracted, which
/// leaves what was recorded between the two. count(), min(), max(), mean(), quantile() and buckets() are then as
/// accurate as those of a histogram in which only those durations were recorded.
///
/// A value type. Copying it copies at most 15 KiB; an empty histogram owns no memory. Each member visits at most 1,888
/// counts. Any number of threads may read a histogram while no thread writes it.
class RONDO_EXPORT histogram {
 public:
  /// Durations that are counted together: those longer than the bucket before covers, up to and including `upper`. The
  /// longest exceeds the shortest by at most 1/32.
  struct bucket {
    duration upper = {};      ///< the longest duration that it counts
    std::uint64_t count = 0;  ///< the number of durations recorded in it

    /// Whether both members are equal.
    friend bool operator==(const bucket&, const bucket&) noexcept = default;
  };

  /// Creates an empty histogram.
  histogram() noexcept = default;

  /// The number of durations recorded.
  std::uint64_t count() const noexcept;

  ///@{
  /// The shortest, the longest and the mean duration; zero if the histogram is empty.
  duration min() const noexcept { return quantile(0); }
  duration max() const noexcept { return quantile(1); }
  duration mean() const noexcept;
  ///@}

  /// The nearest-rank quantile: of n durations in ascending order, the one numbered ⌈q·n⌉, or the first if that number
  /// is 0. It is always one of the recorded durations, never a value between two. quantile(0.5) is the (lower) median.
  /// Zero if the histogram is empty.
  ///
  /// `q` is clamped to 0 … 1, and NaN counts as 0. Rounding of `q` does not change the rank: although the double 0.9 is
  /// slightly more than nine tenths, quantile(0.9) of ten durations is the ninth.
  duration quantile(double q) const noexcept;

  /// The sum of the recorded durations: of their exact values, not of their buckets. Negative durations count as zero.
  /// It saturates at duration::max(). (While runs are being recorded, a reading may include a run in the count and not
  /// in the sum, or the reverse. The sum is still one that durations in these buckets can have.)
  duration sum() const noexcept { return sum_; }

  /// The non-empty buckets in ascending order: for the formats of monitoring systems. Their counts add up to count().
  /// Throws std::bad_alloc.
  std::vector<bucket> buckets() const;

  /// Adds the durations that the other histogram counts. The total count must be less than 2^64. Throws std::bad_alloc;
  /// strong guarantee.
  histogram& operator+=(const histogram& other);

  /// Leaves what was recorded since `earlier`, an earlier reading of the same histogram; both may also be sums of such
  /// readings. min() and max() are then those of what is left. A sum of duration::max() is unknown and stays at that
  /// value, as far as the remaining buckets permit.
  ///
  /// Throws std::invalid_argument and changes nothing if `earlier` counts more durations in a bucket or has a greater
  /// sum, because then it was not an earlier reading.
  histogram& operator-=(const histogram& earlier);

  /// Whether all counts are equal. Sums are not compared.
  friend bool operator==(const histogram& a, const histogram& b) noexcept { return a.counts_ == b.counts_; }

 private:
  friend struct detail::histogram_access;

  void tidy() noexcept;

  std::vector<std::uint64_t> counts_;  // by bucket of detail::log_linear, up to the last one that is not zero
  duration sum_ = {};                  // between the sums with each duration the shortest of its bucket, and
                                       // with each the longest
};

namespace detail {
struct RONDO_EXPORT histogram_access {
  /// `counts` is indexed by the buckets of log_linear; zeros at the end are removed. A sum that durations in these
  /// buckets cannot have is replaced by the nearest possible one.
  static histogram make(std::vector<std::uint64_t> counts, duration sum) noexcept;
};
}  // namespace detail

}  // namespace rondo
