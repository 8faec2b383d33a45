// The shrinker, with failures that are easy to describe.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "model/shrinker.hpp"

namespace model_shrinking {

using namespace rondo::test;

choices::list drawn(std::uint64_t seed, std::size_t size) {
  choices c = choices::drawn(seed);
  for (std::size_t i = 0; i != size; ++i) c.below(1'000'000);
  return c.made();
}

/// Shrinks a list for which `fails` is true, and adds the number of calls of `fails` to `runs`.
template <class Fails>
choices::list shrink(const choices::list& first, Fails&& fails, int& runs) {
  REQUIRE(fails(first));
  return shrunk(first, [&](const choices::list& l) {
    ++runs;
    return fails(l) ? std::optional(l) : std::nullopt;
  });
}
template <class Fails>
choices::list shrink(const choices::list& first, Fails&& fails) {
  int runs = 0;
  return shrink(first, fails, runs);
}

TEST_CASE("a failure that does not depend on the list shrinks it to the empty list") {
  CHECK(shrink(drawn(1, 1000), [](auto&) { return true; }).empty());
}

TEST_CASE("the simplest failing list stays as it is") {
  const choices::list l{0, 7};
  CHECK(shrink(l, [&](auto& x) { return x == l; }) == l);
}

TEST_CASE("a single number that matters is found, and lowered as far as possible") {
  const auto fails = [](const choices::list& l) {
    return std::any_of(l.begin(), l.end(), [](auto n) { return n >= 12'345; });
  };
  CHECK(shrink(drawn(2, 1000), fails) == choices::list{12'345});
}

TEST_CASE("numbers that can only be removed together are removed") {
  for (const std::size_t together : {2U, 3U, 5U, 7U}) {
    CAPTURE(together);
    choices::list simplest(together);
    simplest.back() = 1;
    const auto fails = [&](const choices::list& l) { return !l.empty() && l.size() % together == 0; };
    CHECK(shrink(choices::list(together * 20, 1), fails) == simplest);
  }
}

TEST_CASE("zeros at the end are dropped, because missing numbers count as 0") {
  const auto fails = [](const choices::list& l) { return !l.empty() && l[0] == 5; };
  CHECK(shrink({5, 0, 0, 0}, fails) == choices::list{5});
}

TEST_CASE("numbers that matter together are kept in order, even if they are far apart") {
  auto first = drawn(3, 2000);
  first[100] = 1'000'001;
  first[1900] = 1'000'002;
  const auto fails = [](const choices::list& l) {
    const auto one = std::find(l.begin(), l.end(), 1'000'001U);
    return std::find(one, l.end(), 1'000'002U) != l.end();
  };
  CHECK(shrink(first, fails) == choices::list{1'000'001, 1'000'002});
}

TEST_CASE("a required sum is reached with the fewest numbers") {
  const auto fails = [](const choices::list& l) {
    return std::accumulate(l.begin(), l.end(), std::uint64_t{0}) >= 1'500'000;
  };
  const auto simplest = shrink(drawn(4, 200), fails);
  CHECK(simplest.size() <= 3);
  CHECK(std::accumulate(simplest.begin(), simplest.end(), std::uint64_t{0}) == 1'500'000);
}

TEST_CASE("a number that refers to an earlier place is lowered as numbers in between are removed") {
  // Pairs {kind, …}. Fails if a pair {2, n} refers back to a pair of kind 7, n pairs before it.
  const auto fails = [](const choices::list& l) {
    for (std::size_t i = 0; i + 1 < l.size(); i += 2) {
      const std::size_t back = 2 * l[i + 1];
      if (l[i] == 2 && back != 0 && back <= i && l[i - back] == 7) return true;
    }
    return false;
  };
  choices::list first(40, 1);
  first[10] = 7;
  first[30] = 2;
  first[31] = 10;
  CHECK(shrink(first, fails) == choices::list{7, 0, 2, 1});
}

TEST_CASE("numbers that are never used are not kept") {
  const auto ask_two = [](const choices::list& l) -> std::optional<choices::list> {
    choices c = choices::replayed(l);
    if (c.below(100) < 10) return std::nullopt;
    c.below(5);
    return c.made();
  };
  CHECK(shrunk({93, 4, 17, 3, 2, 1}, ask_two) == choices::list{10});
}

TEST_CASE("shrinking takes few runs, and only of simpler lists") {
  int runs = 0;
  choices::list simplest = drawn(5, 5000);
  const choices::list first = simplest;
  const auto fails = [&](const choices::list& l) {
    CHECK(l.size() <= simplest.size());
    const bool failed = std::count_if(l.begin(), l.end(), [](auto n) { return n > 900'000; }) >= 3;
    if (failed) simplest = l;
    return failed;
  };
  CHECK(shrink(first, fails, runs) == choices::list{900'001, 900'001, 900'001});
  CHECK(runs < 3000);
}

TEST_CASE("shrinking ends when the time is up, and returns the best list so far") {
  const auto slow = [](const choices::list& l) { return std::optional(l); };
  const auto first = drawn(6, 100);
  CHECK(shrunk(first, slow, std::chrono::milliseconds(0)) == first);
}

}  // namespace model_shrinking
