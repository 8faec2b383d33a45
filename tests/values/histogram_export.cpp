// What can be derived from histograms: buckets, sums, sums of several histograms, the difference of two readings.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rondo/histogram.hpp>

#include "failing_new.hpp"
#include "scheduler/seeds.hpp"
#include "values/histograms.hpp"

namespace values_histogram_export {

using namespace rondo;
using rondo::detail::log_linear;
using rondo::test::failing_new;
using rondo::test::middle;
using rondo::test::most;
using rondo::test::of;
using rondo::test::of_counts;
using rondo::test::recorder;

using bucket = histogram::bucket;
using buckets = std::vector<bucket>;

static_assert(noexcept(histogram().sum()));
static_assert(std::is_same_v<decltype(std::declval<histogram&>() += histogram()), histogram&>);
static_assert(std::is_same_v<decltype(std::declval<histogram&>() -= histogram()), histogram&>);

constexpr std::uint64_t most_of_all = ~std::uint64_t{0};

/// Also compares what operator== leaves out.
bool same(const histogram& a, const histogram& b) { return a == b && a.sum() == b.sum(); }

std::vector<std::int64_t> some_values(rondo::test::dice& dice) {
  std::vector<std::int64_t> values(dice.roll(300));
  // Short enough for their sum to fit into a duration, whatever they are.
  for (std::int64_t& v : values) v = rondo::test::random_value(dice) >> 10;
  return values;
}

std::vector<std::int64_t> together(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The error of `from -= earlier`, which must not have changed anything.
std::string refusal(histogram from, const histogram& earlier) {
  const histogram before = from;
  try {
    from -= earlier;
  } catch (const std::invalid_argument& e) {
    CHECK(same(from, before));
    return e.what();
  }
  return "nothing";
}

const std::string is_no_reading =
    "rondo: the subtracted histogram is not an earlier reading of the same histogram: it has ";

TEST_CASE("buckets() has the non-empty buckets, in ascending order") {
  CHECK(histogram().buckets().empty());
  CHECK(of({0}).buckets() == buckets{{duration(0), 1}});
  CHECK(of({9, 3, 3, 63}).buckets() == buckets{{duration(3), 2}, {duration(9), 1}, {duration(63), 1}});
  // From 64 ns on, a bucket covers two values; from 128 ns on, four.
  CHECK(of({64, 65, 66, 131}).buckets() == buckets{{duration(65), 2}, {duration(67), 1}, {duration(131), 1}});
  CHECK(of({most, 5}).buckets() == buckets{{duration(5), 1}, {duration::max(), 1}});
  CHECK(of_counts({{7, most_of_all}}).buckets() == buckets{{duration(7), most_of_all}});
}

TEST_CASE("the result of buckets() outlives the histogram, so a loop may use a temporary") {
  std::uint64_t cumulative = 0;
  for (const auto& [upper, count] : of({1, 2, 2}).buckets()) {
    cumulative += count;
    CHECK(cumulative == (upper == duration(1) ? 1U : 3U));
  }
  CHECK(cumulative == 3);
}

TEST_CASE("a bucket ends at its upper, the next one begins right after it, and is at most 1/32 wide") {
  std::int64_t before = -1;
  for (std::size_t b = 0; b != log_linear::buckets; ++b) {
    CAPTURE(b);
    const std::int64_t middle_of_it = log_linear::middle_of(b).count();
    const buckets found = of({middle_of_it}).buckets();
    REQUIRE(found.size() == 1);
    const std::int64_t upper = found.front().upper.count();
    REQUIRE(log_linear::first_of(b).count() == before + 1);
    REQUIRE(log_linear::bucket_of(duration(before + 1)) == b);
    REQUIRE(log_linear::bucket_of(duration(upper)) == b);
    REQUIRE(upper - before <= std::max<std::int64_t>((before + 1) / 32, 1));
    before = upper;
  }
  CHECK(before == most);
}

TEST_CASE("the sum is exact, and counts negative durations as zero") {
  CHECK(histogram().sum() == duration::zero());
  CHECK(of({0}).sum() == duration::zero());
  CHECK(of({1'000'001, 999'983, 65}).sum() == duration(2'000'049));
  CHECK(of({-5, 7, duration::min().count()}).sum() == duration(7));
  for (const std::uint64_t seed : rondo::test::seeds("sums", 20)) {
    CAPTURE(seed);
    rondo::test::dice dice(seed);
    const auto values = some_values(dice);
    CHECK(of(values).sum().count() == std::accumulate(values.begin(), values.end(), std::int64_t{0}));
  }
}

TEST_CASE("a sum that exceeds the longest duration saturates, however it is recorded") {
  for (const bool alone : {false, true}) {
    CAPTURE(alone);
    recorder r;
    const auto record = [&](std::int64_t v) { alone ? r.record<true>(duration(v)) : r.record(duration(v)); };
    record(most - 10);
    record(10);
    CHECK(r.snapshot().sum() == duration::max());
    for (const std::int64_t v : {std::int64_t{1}, most, most, most, std::int64_t{0}, std::int64_t{2}}) {
      record(v);
      CHECK(r.snapshot().sum() == duration::max());
    }
  }
}

TEST_CASE("a recorder for one thread gives the same histogram as one for several threads") {
  recorder shared, alone;
  for (const std::int64_t v : {-3, 0, 1, 64, 1000, 123'456'789}) {
    shared.record(duration(v));
    alone.record<true>(duration(v));
  }
  CHECK(same(shared.snapshot(), alone.snapshot()));
  CHECK(alone.snapshot().sum() == duration(1 + 64 + 1000 + 123'456'789));  // negative ones count as zero
}

TEST_CASE("the sum of histograms is the histogram of all durations") {
  for (const std::uint64_t seed : rondo::test::seeds("sums of histograms", 50)) {
    CAPTURE(seed);
    rondo::test::dice dice(seed);
    const auto a = some_values(dice), b = some_values(dice);
    histogram h = of(a);
    CHECK(&(h += of(b)) == &h);
    CHECK(same(h, of(together(a, b))));
    CHECK(same(h += histogram(), of(together(a, b))));
    CHECK(same(histogram() += h, h));
    CHECK(same(h += h, of(together(together(a, b), together(a, b)))));
  }
}

TEST_CASE("a histogram minus an earlier reading has what was recorded in between") {
  for (const std::uint64_t seed : rondo::test::seeds("differences of histograms", 50)) {
    CAPTURE(seed);
    rondo::test::dice dice(seed);
    const auto first = some_values(dice), later = some_values(dice);
    const histogram earlier = of(first), between = of(later);
    histogram h = of(together(first, later));
    CHECK(&(h -= earlier) == &h);
    CHECK(same(h, between));
    CHECK(h.buckets() == between.buckets());
    for (const double q : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) CHECK(h.quantile(q) == between.quantile(q));
    CHECK(h.mean() == between.mean());
    CHECK(same(h -= histogram(), between));
    CHECK(same(h += earlier, of(together(first, later))));
  }
}

TEST_CASE("the extremes of a difference are those of the remaining durations") {
  histogram h = of({1, 50, 1'000'000});
  h -= of({1, 1'000'000});
  CHECK(h.min() == duration(50));
  CHECK(h.max() == duration(50));
  CHECK(h.count() == 1);
  CHECK(h.sum() == duration(50));
  h += of({2, 3000});
  CHECK(h.min() == duration(2));
  CHECK(h.max().count() == middle(3000));
}

TEST_CASE("a histogram minus itself equals a new one") {
  histogram h = of({1, 70, most});
  const histogram& itself = h;
  h -= itself;
  CHECK(same(h, histogram()));
  CHECK(h.buckets().empty());
  CHECK(h.max() == duration::zero());
}

TEST_CASE("subtracting anything but an earlier reading is refused, and changes nothing") {
  CHECK(refusal(of({5, 7}), of({5, 5})) == is_no_reading + "2 durations of about 5 ns, this one 1");
  CHECK(refusal(of({5, 7}), of({5, 7, 7})) == is_no_reading + "2 durations of about 7 ns, this one 1");
  CHECK(refusal(of({5}), of({2'000'000})) == is_no_reading + "1 durations of about 2.01 ms, this one 0");
  CHECK(refusal(histogram(), of({0})) == is_no_reading + "1 durations of about 0 ns, this one 0");
  CHECK(refusal(of({1000, 7}), of({1001})) == "nothing");
  CHECK(refusal(of({1000}), of({1001})) == is_no_reading + "a sum of 1001 ns, this one 1000 ns");
  CHECK(refusal(of({5, 7}), of({5, 7})) == "nothing");
}

TEST_CASE("sums saturate in both directions") {
  histogram h = of({most - 5});
  h += of({9});
  CHECK(h.sum() == duration::max());
  // The true sum is not known, so the rest has as much as its durations can have.
  histogram rest = h;
  rest -= of({most - 5});
  CHECK(same(rest, of({9})));
  rest = h;
  rest -= of({9});
  CHECK(rest.sum() == duration::max());
  CHECK(refusal(of({most - 5}), h) == is_no_reading + "1 durations of about 9 ns, this one 0");
  histogram many = of_counts({{most, most_of_all / 2}});
  CHECK(many.sum() == duration::max());
  many += of_counts({{most, most_of_all / 2}});
  CHECK(many.count() == most_of_all - 1);
  CHECK(many.sum() == duration::max());
  many -= of_counts({{most, most_of_all - 1}});
  CHECK(same(many, histogram()));
}

TEST_CASE("a sum that was not read together with the counts is adjusted to one that they can have") {
  CHECK(of_counts({{3, 2}}, 5).sum() == duration(6));
  CHECK(of_counts({{3, 2}}, 7).sum() == duration(6));
  CHECK(of_counts({}, 7).sum() == duration(0));
  CHECK(of_counts({{1000, 2}}, 1).sum() == duration(2 * 992));
  CHECK(of_counts({{1000, 2}}, 5000).sum() == duration(2 * 1007));
  CHECK(of_counts({{1000, 2}}, 2001).sum() == duration(2001));
  // The second of two durations is in the counts of the first reading, but not in its sum.
  const histogram first = of_counts({{1000, 2}}, 1000), second = of_counts({{1000, 3}}, 3000);
  histogram between = second;
  between -= first;
  CHECK(between.count() == 1);
  CHECK(between.sum() == duration(1007));
}

TEST_CASE("adding a histogram without memory throws, and changes nothing") {
  if (!failing_new::available) return;
  histogram h = of({1, 2});
  const histogram before = h, longer = of({5000});
  {
    const failing_new fails(0, 1);
    CHECK_THROWS_AS(h += longer, std::bad_alloc);
  }
  CHECK(same(h, before));
  {
    const failing_new fails(0, 1);
    CHECK_THROWS_AS(h.buckets(), std::bad_alloc);
  }
  {
    const failing_new fails;  // these calls need no memory
    h += histogram();
    h += before;
    h -= before;
  }
  CHECK(same(h, before));
}

}  // namespace values_histogram_export
