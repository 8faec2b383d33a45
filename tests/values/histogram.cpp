// Histograms, compared with the sorted durations themselves.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <rondo/statistics.hpp>

#include "scheduler/seeds.hpp"
#include "values/histograms.hpp"

namespace values_histogram {

using namespace rondo;
using rondo::detail::log_linear;
using rondo::test::middle;
using rondo::test::most;
using rondo::test::of;
using rondo::test::of_counts;
using rondo::test::random_value;
using rondo::test::recorder;

/// Whether two values differ by less than 1/64. Exact, because it uses integers.
bool close(std::int64_t found, std::int64_t exact) {
  const std::int64_t off = found < exact ? exact - found : found - exact;
  return off == 0 || off < exact / 64 || (off == exact / 64 && exact % 64 != 0);
}

static_assert(std::is_copy_constructible_v<histogram> && std::is_nothrow_move_constructible_v<histogram>);
static_assert(log_linear::middle_of(log_linear::bucket_of(duration(63))) == duration(63),
              "the arithmetic works in constant expressions");

TEST_CASE("an empty histogram has only zeros, and owns nothing") {
  for (const histogram& h : {histogram(), of({}), rondo::statistics().lateness}) {
    CHECK(h.count() == 0);
    CHECK(h.min() == duration::zero());
    CHECK(h.max() == duration::zero());
    CHECK(h.mean() == duration::zero());
    for (const double q : {-1.0, 0.0, 0.5, 1.0, 2.0}) CHECK(h.quantile(q) == duration::zero());
    CHECK((h == histogram()));
  }
}

TEST_CASE("durations below 64 ns are exact") {
  for (std::int64_t v = 0; v != 64; ++v) {
    CAPTURE(v);
    const histogram h = of({v});
    CHECK(h.count() == 1);
    CHECK(h.min() == duration(v));
    CHECK(h.max() == duration(v));
    CHECK(h.mean() == duration(v));
    CHECK(h.quantile(0.5) == duration(v));
  }
}

TEST_CASE("negative durations count as zero") {
  const histogram h = of({-1, -1000, duration::min().count()});
  CHECK(h.count() == 3);
  CHECK(h.max() == duration::zero());
  CHECK((h == of({0, 0, 0})));
}

TEST_CASE("every bucket contains its middle, and buckets are in order, without gaps") {
  CHECK(log_linear::bucket_of(duration(0)) == 0);
  CHECK(log_linear::bucket_of(duration::max()) == log_linear::buckets - 1);
  std::int64_t before = -1;
  for (std::size_t b = 0; b != log_linear::buckets; ++b) {
    CAPTURE(b);
    const duration m = log_linear::middle_of(b);
    REQUIRE(log_linear::bucket_of(m) == b);
    REQUIRE(m.count() > before);
    before = m.count();
  }
}

TEST_CASE("the bucket number grows by at most one with each nanosecond, and never falls") {
  const auto step = [](std::int64_t v) {
    return log_linear::bucket_of(duration(v + 1)) - log_linear::bucket_of(duration(v));
  };
  for (std::int64_t v = 0; v != 100'000; ++v)
    if (step(v) > 1) FAIL("a gap or a fall after " << v);
  for (int k = 17; k != 63; ++k) {
    const std::int64_t power = std::int64_t{1} << k;
    CAPTURE(k);
    for (std::int64_t part = 0; part != 32; ++part) {
      CHECK(step(power + part * (power / 32) - 1) == 1);
      CHECK(step(power + part * (power / 32)) == 0);
    }
  }
}

TEST_CASE("at the edges of all powers of two, reported durations are less than 1/64 off") {
  for (int k = 0; k != 63; ++k) {
    const std::int64_t power = std::int64_t{1} << k;
    for (const std::int64_t v : {power - 1, power, power + 1, power + power / 32 - 1, power + power / 2}) {
      CAPTURE(v);
      CHECK(close(middle(v), v));
      CHECK(of({v}).mean().count() == middle(v));
    }
  }
  CHECK(close(middle(most), most));
  CHECK(close(middle(most - 1), most - 1));
}

TEST_CASE("random durations are reported less than 1/64 off") {
  for (const std::uint64_t seed : rondo::test::seeds("random durations", 5)) {
    CAPTURE(seed);
    rondo::test::dice dice(seed);
    for (int i = 0; i != 20'000; ++i) {
      const std::int64_t v = random_value(dice);
      if (!close(middle(v), v)) FAIL(v << " is reported as " << middle(v));
    }
  }
}

TEST_CASE("quantiles equal those of the sorted durations") {
  for (const std::uint64_t seed : rondo::test::seeds("quantiles", 20)) {
    CAPTURE(seed);
    rondo::test::dice dice(seed);
    std::vector<std::int64_t> values(1 + dice.roll(3000));
    long double sum = 0;
    for (std::int64_t& v : values) {
      v = dice.one_in(2) ? random_value(dice) : static_cast<std::int64_t>(dice.roll(5'000'000));
      sum += static_cast<long double>(v);
    }
    const histogram h = of(values);
    std::sort(values.begin(), values.end());
    const auto n = values.size();
    CHECK(h.count() == n);
    CHECK(h.min().count() == middle(values.front()));
    CHECK(h.max().count() == middle(values.back()));
    const long double mean = sum / static_cast<long double>(n);
    CHECK(std::abs(static_cast<long double>(h.mean().count()) - mean) <= mean / 64 + 1);
    // In thousandths, so that the rank is an exact integer.
    for (std::size_t thousandth = 0; thousandth <= 1000; ++thousandth) {
      const std::size_t rank = std::max<std::size_t>((thousandth * n + 999) / 1000, 1);
      const duration found = h.quantile(static_cast<double>(thousandth) / 1000);
      if (found.count() != middle(values[rank - 1])) FAIL("at " << thousandth << " of 1000, n = " << n);
    }
  }
}

TEST_CASE("the quantile k/n of n durations is the k-th, however k/n is rounded") {
  std::vector<std::int64_t> values;
  for (std::int64_t n = 1; n != 65; ++n) {
    values.push_back(n - 1);
    const histogram h = of(values);
    for (std::int64_t k = 1; k <= n; ++k) {
      CAPTURE(k);
      CAPTURE(n);
      const double q = static_cast<double>(k) / static_cast<double>(n);
      CHECK(h.quantile(q) == duration(k - 1));
      CHECK(h.quantile(q - 0.001) == duration(k - 1));
      CHECK(h.quantile(q + 0.001) == duration(std::min(k, n - 1)));
    }
  }
}

TEST_CASE("the median of an even number of durations is the lower of the middle two") {
  CHECK(of({1, 2, 3, 4}).quantile(0.5) == duration(2));
  CHECK(of({1, 2, 3, 4, 5}).quantile(0.5) == duration(3));
}

TEST_CASE("quantile() clamps q, and takes NaN for 0") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const histogram h = of({3, 5, 7});
  for (const double q : {0.0, -0.0, -0.1, -infinity, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::denorm_min()})
    CHECK(h.quantile(q) == duration(3));
  for (const double q : {1.0, 1.1, 1e300, infinity}) CHECK(h.quantile(q) == duration(7));
}

TEST_CASE("the mean of huge durations does not overflow, and stays between the extremes") {
  CHECK(of({most, most, most}).mean().count() == middle(most));
  CHECK(of({0, most}).mean().count() == (middle(most) + 1) / 2);
  for (const std::uint64_t n :
       {std::uint64_t{3}, std::uint64_t{1} << 53, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    CAPTURE(n);
    for (const std::int64_t v : {most, most / 3, most / 1000, std::int64_t{1}}) {
      CAPTURE(v);
      const histogram h = of_counts({{v, n}});
      CHECK(h.mean().count() == middle(v));
      CHECK(h.count() == n);
    }
  }
}

TEST_CASE("the mean of equal durations is the value reported for them, despite rounding") {
  for (const std::uint64_t n : {1'471'773U, 3U, 1'000'003U}) {
    for (int k = 50; k != 63; ++k) {
      for (std::int64_t part = 0; part != 32; ++part) {
        const std::int64_t v = (std::int64_t{1} << k) + part * (std::int64_t{1} << (k - 5));
        CHECK(of_counts({{v, n}}).mean().count() == middle(v));
      }
    }
  }
}

TEST_CASE("ranks are right up to the largest number of durations that can be counted") {
  const std::uint64_t half = std::uint64_t{1} << 63;
  const histogram h = of_counts({{1, half - 1}, {2, 1}, {3, half - 1}});
  CHECK(h.count() == ~std::uint64_t{0});
  CHECK(h.quantile(0) == duration(1));
  CHECK(h.quantile(0.499) == duration(1));
  CHECK(h.quantile(0.501) == duration(3));
  CHECK(h.quantile(1) == duration(3));
  CHECK(h.quantile(std::nextafter(1.0, 0.0)) == duration(3));
  CHECK(of_counts({{5, ~std::uint64_t{0} - 1}, {6, 1}}).max() == duration(6));
}

TEST_CASE("histograms are equal if they have the same counts, whatever the order of recording") {
  CHECK((of({1, 50, 1'000'000}) == of({1'000'000, 1, 50})));
  CHECK((of({1'000'000}) == of({1'000'001})));
  CHECK((of({1}) != of({1, 1})));
  CHECK((of({1}) != of({2})));
  CHECK((of({1, 2}) != of({1})));
  CHECK((of_counts({{0, 1}, {5, 0}}) == of({0})));
  CHECK((of_counts({{5, 0}}) == histogram()));
}

TEST_CASE("copies are independent values") {
  histogram original = of({7, 9});
  const histogram copy = original;
  CHECK((copy == original));
  const histogram moved = std::move(original);
  CHECK((moved == copy));
  original = histogram();
  CHECK(original.count() == 0);
  CHECK(moved.count() == 2);
}

TEST_CASE("a snapshot does not change while recording continues") {
  recorder r;
  r.record(duration(10));
  const histogram before = r.snapshot();
  r.record(duration(20));
  CHECK((before == of({10})));
  CHECK((r.snapshot() == of({10, 20})));
}

}  // namespace values_histogram
