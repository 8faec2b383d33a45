#include "cache_refresh/snapshot.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace cache_refresh_history {

using namespace std::chrono_literals;
using cache_refresh::history;
using cache_refresh::snapshot;

snapshot after(rondo::duration elapsed, std::uint64_t loads, std::uint64_t failed) {
  snapshot now;
  now.elapsed = elapsed;
  now.cache.loads = loads;
  now.cache.failed = failed;
  now.keys = {.fresh = 6, .stale = 1, .empty = 1};
  return now;
}

TEST_CASE(
    "history: a sample has the rates since the sample before, and the share of keys that are not fresh") {
  history all;
  all.add(after(1s, 100, 10));
  all.add(after(3s, 500, 15));
  const std::vector<history::sample> samples = all.all();
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].at == 1s);
  CHECK(samples[0].loads == 100);
  CHECK(samples[0].failed == 10);
  CHECK(samples[1].at == 3s);
  CHECK(samples[1].loads == 200);
  CHECK(samples[1].failed == 2.5);
  CHECK(samples[1].stale == 0.25);
}

TEST_CASE("history: a second has one sample, however often figures come") {
  history all;
  for (rondo::duration at = 0s; at < 10s; at += 250ms) all.add(after(at, 0, 0));
  const std::vector<history::sample> samples = all.all();
  REQUIRE(samples.size() == 9);  // none of the first second, which has not passed
  for (std::size_t i = 0; i < samples.size(); ++i) CHECK(samples[i].at == std::chrono::seconds(i + 1));
}

TEST_CASE("history: the last two hours are kept") {
  history all;
  for (int second = 1; second <= 7210; ++second)
    all.add(after(std::chrono::seconds(second), static_cast<std::uint64_t>(second), 0));
  const std::vector<history::sample> samples = all.all();
  REQUIRE(samples.size() == 7200);
  CHECK(samples.front().at == 11s);
  CHECK(samples.back().at == 7210s);
  CHECK(samples.front().loads == 1);
}

}  // namespace cache_refresh_history
