// How long things took: many durations in a few numbers.
#pragma once

#include <cstdint>
#include <vector>

#include <rondo/export.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {
struct histogram_access;
}

/// A plain value: the durations that were recorded until it was made, each within 1/64 (1.6 %) of what it
/// was, those below 64 ns exactly; negative ones count as zero. All that it tells is consistent in itself:
/// `min() == quantile(0) <= quantile(q) <= quantile(1) == max()`, and the mean is between those.
///
/// Copying it copies at most 15 KiB; one in which nothing was recorded, as a default-constructed or
/// moved-from one, owns no memory. Each member walks over at most 1888 counts. Thread-safe as other values
/// are: any number of threads may read one that nobody writes.
class RONDO_EXPORT histogram {
 public:
  histogram() noexcept = default;

  /// How many durations were recorded.
  std::uint64_t count() const noexcept;

  ///@{
  /// The shortest, the longest, and the sum divided by the count; zero when empty.
  duration min() const noexcept { return quantile(0); }
  duration max() const noexcept { return quantile(1); }
  duration mean() const noexcept;
  ///@}

  /// The nearest-rank quantile: of n durations in ascending order the one numbered ⌈q·n⌉, or the first if
  /// that is 0; so it is always one of those recorded, never between two. quantile(0.5) is the (lower)
  /// median. Zero when empty.
  ///
  /// `q` is clamped to 0 … 1, NaN counts as 0, and it is taken for the decimal number that was meant:
  /// although the double 0.9 is a little more than nine tenths, quantile(0.9) of ten durations is the ninth.
  duration quantile(double q) const noexcept;

  /// Whether all of their numbers are equal.
  friend bool operator==(const histogram&, const histogram&) noexcept = default;

 private:
  friend struct detail::histogram_access;

  std::vector<std::uint64_t> counts_;  // by bucket of detail::log_linear, up to the last that is not zero
};

namespace detail {
struct histogram_access {
  /// `counts`: by bucket of log_linear; those at the end that are zero are cut off.
  static histogram make(std::vector<std::uint64_t> counts) noexcept;
};
}  // namespace detail

}  // namespace rondo
