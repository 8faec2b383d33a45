#include <rondo/histogram.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include <rondo/detail/log_linear.hpp>

namespace rondo {
namespace {

/// ⌈q·n⌉, at most n; at least 1, as the product is positive. Preconditions: q > 0, n > 0.
std::uint64_t nearest_rank(double q, std::uint64_t n) noexcept {
  // A double differs from the decimal it was written as by up to 2^-53 of it: if the product exceeds a whole number by
  // no more than that, it counts as that number.
  constexpr long double rounding = 0x1p-52L;
  const long double rank =
      std::ceil(static_cast<long double>(q) * (1 - rounding) * static_cast<long double>(n));
  if (q >= 1 || rank >= static_cast<long double>(n)) return n;  // n as a floating number may be larger than n
  return static_cast<std::uint64_t>(rank);
}

}  // namespace

std::uint64_t histogram::count() const noexcept {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

duration histogram::mean() const noexcept {
  if (counts_.empty()) return duration::zero();
  long double sum = 0;  // 64 bits may not hold it
  for (std::size_t b = 0; b != counts_.size(); ++b)
    sum += static_cast<long double>(counts_[b]) *
           static_cast<long double>(detail::log_linear::middle_of(b).count());
  const duration exact(std::llround(sum / static_cast<long double>(count())));
  return std::clamp(exact, min(), max());  // a huge sum is rounded
}

duration histogram::quantile(double q) const noexcept {
  if (counts_.empty()) return duration::zero();
  const bool positive = q > 0;  // NaN is not
  std::uint64_t left = positive ? nearest_rank(q, count()) : 1;
  std::size_t b = 0;
  for (; counts_[b] < left; ++b) left -= counts_[b];
  return detail::log_linear::middle_of(b);
}

histogram detail::histogram_access::make(std::vector<std::uint64_t> counts) noexcept {
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  histogram made;
  made.counts_ = std::move(counts);
  return made;
}

}  // namespace rondo
