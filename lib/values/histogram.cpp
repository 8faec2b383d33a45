#include <rondo/histogram.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include <rondo/detail/log_linear.hpp>

#include "values/readable.hpp"

namespace rondo {
namespace {

using detail::log_linear;

// These take non-negative durations.
duration saturating_sum(duration a, duration b) noexcept {
  duration::rep sum = 0;
  return __builtin_add_overflow(a.count(), b.count(), &sum) ? duration::max() : duration(sum);
}
duration saturating_product(std::uint64_t n, duration d) noexcept {
  duration::rep product = 0;
  return __builtin_mul_overflow(n, d.count(), &product) ? duration::max() : duration(product);
}

[[noreturn]] void refuse_to_subtract(const std::string& theirs, const std::string& ours) {
  throw std::invalid_argument(
      "rondo: the subtracted histogram is not an earlier reading of the same histogram: it has " + theirs +
      ", this one " + ours);
}

/// ⌈q·n⌉, at most n; at least 1, because the product is positive. Preconditions: q > 0, n > 0.
std::uint64_t nearest_rank(double q, std::uint64_t n) noexcept {
  // A double differs from the decimal number it was written as by up to 2^-53 of that number. If the product exceeds a
  // whole number by no more than that, it counts as the whole number.
  constexpr long double rounding = 0x1p-52L;
  const long double rank =
      std::ceil(static_cast<long double>(q) * (1 - rounding) * static_cast<long double>(n));
  if (q >= 1 || rank >= static_cast<long double>(n)) return n;  // as a floating-point number, n may be larger
  return static_cast<std::uint64_t>(rank);
}

}  // namespace

std::uint64_t histogram::count() const noexcept {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

duration histogram::mean() const noexcept {
  if (counts_.empty()) return duration::zero();
  long double sum = 0;  // it may not fit into 64 bits
  for (std::size_t b = 0; b != counts_.size(); ++b)
    sum += static_cast<long double>(counts_[b]) * static_cast<long double>(log_linear::middle_of(b).count());
  const duration exact(std::llround(sum / static_cast<long double>(count())));
  return std::clamp(exact, min(), max());  // a huge sum is rounded
}

duration histogram::quantile(double q) const noexcept {
  if (counts_.empty()) return duration::zero();
  const bool positive = q > 0;  // NaN is not
  std::uint64_t left = positive ? nearest_rank(q, count()) : 1;
  std::size_t b = 0;
  for (; counts_[b] < left; ++b) left -= counts_[b];
  return log_linear::middle_of(b);
}

std::vector<histogram::bucket> histogram::buckets() const {
  std::vector<bucket> found;
  found.reserve(counts_.size() - static_cast<std::size_t>(std::count(counts_.begin(), counts_.end(), 0U)));
  for (std::size_t b = 0; b != counts_.size(); ++b)
    if (counts_[b] != 0) found.push_back({log_linear::last_of(b), counts_[b]});
  return found;
}

histogram& histogram::operator+=(const histogram& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t b = 0; b != other.counts_.size(); ++b) counts_[b] += other.counts_[b];
  sum_ = saturating_sum(sum_, other.sum_);
  return *this;
}

histogram& histogram::operator-=(const histogram& earlier) {
  const auto now = [&](std::size_t b) { return b < counts_.size() ? counts_[b] : 0; };
  for (std::size_t b = 0; b != earlier.counts_.size(); ++b)
    if (earlier.counts_[b] > now(b))
      refuse_to_subtract(std::to_string(earlier.counts_[b]) + " durations of about " +
                             detail::readable(log_linear::middle_of(b)),
                         std::to_string(now(b)));
  if (earlier.sum_ > sum_)
    refuse_to_subtract("a sum of " + std::to_string(earlier.sum_.count()) + " ns",
                       std::to_string(sum_.count()) + " ns");
  const bool sum_is_known = sum_ != duration::max();
  const duration since = sum_is_known ? sum_ - earlier.sum_ : sum_;
  for (std::size_t b = 0; b != earlier.counts_.size(); ++b) counts_[b] -= earlier.counts_[b];
  sum_ = since;
  tidy();
  return *this;
}

/// Restores the invariants of the members.
void histogram::tidy() noexcept {
  while (!counts_.empty() && counts_.back() == 0) counts_.pop_back();
  duration least{};
  duration most{};
  for (std::size_t b = 0; b != counts_.size(); ++b) {
    least = saturating_sum(least, saturating_product(counts_[b], log_linear::first_of(b)));
    most = saturating_sum(most, saturating_product(counts_[b], log_linear::last_of(b)));
  }
  sum_ = std::clamp(sum_, least, most);
}

histogram detail::histogram_access::make(std::vector<std::uint64_t> counts, duration sum) noexcept {
  histogram made;
  made.counts_ = std::move(counts);
  made.sum_ = sum;
  made.tidy();
  return made;
}

}  // namespace rondo
