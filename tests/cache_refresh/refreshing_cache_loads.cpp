// When a refreshing_cache loads, what it serves during that time, and for how long.
#include "refreshing_cache.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache_refresh/cache_trial.hpp"

namespace cache_refresh_refreshing_cache_loads {

using namespace cache_refresh;
using namespace cache_refresh::test;

TEST_CASE("the first read begins a load and gets nothing; after the load, reads get its value") {
  cache_trial t;
  CHECK(t.read("a") == "nothing");
  REQUIRE(t.loads.size() == 1);
  CHECK(t.loads.front().key() == "a");
  CHECK(t.loads.front().held() == nullptr);
  CHECK(t.loads.front().deadline() == at(10s));
  t.store("a", 1);
  CHECK(t.read("a") == "1 fresh");
  CHECK(t.begins.size() == 1);
  const auto stats = t.cache->stats();
  CHECK(stats.misses == 1);
  CHECK(stats.hits == 1);
  CHECK(stats.loads == 1);
  CHECK(stats.loaded == 1);
  CHECK(stats.in_progress == 0);
}

TEST_CASE("a reader is answered at once if there is a value, and otherwise when the load has ended") {
  cache_trial t;
  t.read_later("a", "first");
  t.read_later("a", "second");
  CHECK(t.notes.take() == "");
  t.time.advance(3s);
  t.store("a", 1);
  CHECK(t.notes.take() == "first: 1 fresh, after waiting; second: 1 fresh, after waiting;");
  t.read_later("a", "third");
  CHECK(t.notes.take() == "third: 1 fresh;");
}

TEST_CASE(
    "a value is fresh until its soft TTL and served until its hard TTL, from the beginning of its load") {
  auto policy = plain_policy();
  policy.refresh_at = 100;  // no load before the hard TTL
  cache_trial t(policy);
  t.cache->find("a");
  t.time.advance(5s);
  t.store("a", 1);
  CHECK(t.cache->find("a").age == 5s);
  t.advance_to(at(100s - 1ns));
  CHECK(t.read("a") == "1 fresh");
  CHECK(t.cache->find("a").age == 100s - 1ns);
  t.advance_to(at(100s));
  CHECK(t.read("a") == "1 stale");
  t.advance_to(at(1000s - 1ns));
  CHECK(t.read("a") == "1 stale");
  t.advance_to(at(1000s));
  CHECK(t.read("a") == "nothing");
}

TEST_CASE("each next load begins at its share of the soft TTL, even if nobody reads") {
  cache_trial t;
  t.answer_all(1);
  t.cache->find("a");
  t.advance_to(at(1000s));
  std::vector<rondo::time_point> when;
  for (const auto& each : t.begins) when.push_back(each.when);
  std::vector<rondo::time_point> expected;
  for (int i = 0; i != 12; ++i) expected.push_back(at(i * 90s));
  CHECK(when == expected);
  CHECK(t.cache->stats().unread_loads == 11);
  CHECK(t.read("a") == "1 fresh");
}

TEST_CASE("the old value is served, fresh and then stale, while the next load is in progress") {
  cache_trial t;
  t.fill("a", 1);
  t.advance_to(at(90s));
  REQUIRE(t.loads.size() == 1);
  CHECK(*t.loads.front().held() == 1);
  CHECK(t.read("a") == "1 fresh");
  t.advance_to(at(99s));
  t.read_later("a", "reader");
  CHECK(t.notes.take() == "reader: 1 fresh;");
  t.advance_to(at(100s - 1ns));
  t.store("a", 2);
  CHECK(t.read("a") == "2 fresh");
  CHECK(t.cache->find("a").age == 10s - 1ns);
  CHECK(t.begins.size() == 2);
}

TEST_CASE("a stale value is served without waiting while its load is in progress, and counted") {
  auto policy = plain_policy();
  policy.load_deadline = 1h;
  cache_trial t(policy);
  t.fill("a", 1);
  t.advance_to(at(500s));
  t.read_later("a", "reader");
  CHECK(t.notes.take() == "reader: 1 stale;");
  CHECK(t.loads.size() == 1);
  CHECK(t.cache->stats().stale_hits == 1);
  CHECK(t.cache->count().stale == 1);
  t.store("a", 2);
  CHECK(t.read("a") == "2 stale");  // its load began 410 s ago
}

TEST_CASE("a thousand readers of a key begin one load, and all get its value") {
  cache_trial t;
  int served = 0;
  for (int i = 0; i != 1000; ++i) {
    t.cache->find("a", [&](const lookup<int>& got) { served += got.value && *got.value == 7 ? 1 : 0; });
  }
  CHECK(t.loads.size() == 1);
  CHECK(served == 0);
  t.store("a", 7);
  CHECK(served == 1000);
  CHECK(t.cache->stats().misses == 1000);
  CHECK(t.cache->stats().loads == 1);
}

// The times of the second loads of `keys` keys whose first loads began together.
std::vector<rondo::duration> second_loads(int keys, std::uint64_t seed) {
  auto policy = plain_policy();
  policy.jitter = 0.05;
  policy.seed = seed;
  cache_trial<int> t(policy);
  t.answer_all(1);
  for (int key = 0; key != keys; ++key) t.cache->find(key);
  t.begins.clear();
  t.advance_to(at(96s));
  std::vector<rondo::duration> when(static_cast<std::size_t>(keys));
  REQUIRE(t.begins.size() == when.size());
  for (const auto& each : t.begins) when[static_cast<std::size_t>(each.key)] = each.when.time_since_epoch();
  return when;
}

TEST_CASE("jitter spreads loads evenly within its bounds, and a seed repeats them") {
  const auto when = second_loads(2000, 1);
  std::array<int, 10> tenths{};
  for (const rondo::duration each : when) {
    REQUIRE(each >= 85s);
    REQUIRE(each <= 95s);
    ++tenths[static_cast<std::size_t>(std::min<long long>((each - 85s) / 1s, 9))];
  }
  for (const int count : tenths) {
    CHECK(count > 120);
    CHECK(count < 280);
  }
  CHECK(second_loads(2000, 1) == when);
  CHECK(second_loads(2000, 1000) != when);
}

// The most second loads that begin within one second, of 10,000 keys that were first loaded together.
std::size_t peak_of_10000_keys(double jitter) {
  auto policy = plain_policy();
  policy.jitter = jitter;
  cache_trial<int> t(policy);
  t.answer_all(1);
  for (int key = 0; key != 10'000; ++key) t.cache->find(key);
  t.begins.clear();
  t.advance_to(at(101s));
  REQUIRE(t.begins.size() == 10'000);
  std::map<long long, std::size_t> per_second;
  std::size_t most = 0;
  for (const auto& each : t.begins) most = std::max(most, ++per_second[each.when.time_since_epoch() / 1s]);
  return most;
}

TEST_CASE(
    "10,000 keys loaded together are all loaded again in one second without jitter, about a tenth with it") {
  CHECK(peak_of_10000_keys(0) == 10'000);
  const std::size_t peak = peak_of_10000_keys(0.05);
  CHECK(peak >= 1000);
  CHECK(peak < 1200);
}

TEST_CASE("not_modified() makes the existing value fresh again, without a copy") {
  cache_trial t;
  t.fill("a", 1);
  const auto held = t.cache->find("a").value;
  t.advance_to(at(90s));
  t.take("a").not_modified();
  CHECK(t.cache->find("a").value == held);
  t.advance_to(at(179s));
  CHECK(t.read("a") == "1 fresh");
  t.advance_to(at(180s));
  t.take("a").not_modified({.soft = 10s});
  t.advance_to(at(189s));
  CHECK(t.loads.size() == 1);
  CHECK(t.cache->stats().confirmed == 2);
  CHECK(t.cache->stats().loaded == 1);
}

TEST_CASE("not_modified() for a key without a value is a failure") {
  cache_trial t;
  t.read_later("a", "reader");
  t.take("a").not_modified();
  CHECK(t.notes.take() == "reader: nothing, after waiting;");
  CHECK(t.cache->stats().failed == 1);
  CHECK(t.cache->stats().confirmed == 0);
  CHECK(t.cache->count().failing == 1);
}

TEST_CASE("a load gets the existing value, even if that is too old to be served") {
  cache_trial t;
  t.fill("a", 1);
  t.fail_all();
  t.advance_to(at(1001s));
  t.origin = nullptr;
  CHECK(t.read("a") == "nothing");
  CHECK(*t.cache->held("a") == 1);
  t.advance_to(*t.next_load("a"));
  REQUIRE(t.loads.size() == 1);
  REQUIRE(t.loads.front().held() != nullptr);
  CHECK(*t.loads.front().held() == 1);
  t.take("a").not_modified();
  CHECK(t.read("a") == "1 fresh");
}

TEST_CASE("a load may set its own TTLs; the hard TTL is never less than the soft one") {
  cache_trial t;
  t.fill("short", 1, {.soft = 10s, .hard = 20s});
  t.fill("long", 2, {.soft = 2000s});
  t.fill("hard", 3, {.hard = 50s});
  CHECK(t.next_load("short") == at(9s));
  CHECK(t.next_load("long") == at(1800s));
  CHECK(t.next_load("hard") == at(90s));
  t.fail_all();
  t.advance_to(at(10s));
  CHECK(t.read("short") == "1 stale");
  t.advance_to(at(20s));
  CHECK(t.read("short") == "nothing");
  t.advance_to(at(99s));
  CHECK(t.read("hard") == "3 fresh");
  t.advance_to(at(100s));
  CHECK(t.read("hard") == "nothing");
  t.advance_to(at(1999s));
  CHECK(t.read("long") == "2 fresh");
  t.advance_to(at(2000s));
  CHECK(t.read("long") == "nothing");
}

TEST_CASE("a load that is slower than its period is followed by the next one after a pause, indefinitely") {
  auto policy = plain_policy();
  policy.load_deadline = 1h;
  cache_trial t(policy);
  t.cache->find("a");
  for (int i = 1; i <= 20; ++i) {
    REQUIRE(t.loads.size() == 1);
    t.time.advance(150s);
    t.store("a", i);
    CHECK(t.read("a") == std::to_string(i) + " stale");
    CHECK(t.next_load("a") == t.time.now() + 10s);  // a tenth of the soft TTL
    t.time.advance(10s);
  }
  CHECK(t.begins.size() == 21);
}

TEST_CASE("if a load takes longer than its value is served, readers do not wait for the next load") {
  auto policy = plain_policy();
  policy.hard_ttl = policy.soft_ttl;
  policy.load_deadline = 1h;
  cache_trial t(policy);
  t.read_later("a", "first");
  t.time.advance(150s);
  t.store("a", 1);
  CHECK(t.notes.take() == "first: 1 stale, after waiting;");
  t.read_later("a", "second");
  CHECK(t.loads.size() == 1);
  t.store("a", 2);
  CHECK(t.notes.take() == "second: 2 fresh, after waiting;");
}

TEST_CASE("loads may end before the function that begins them returns") {
  cache_trial t;
  int value = 0;
  t.origin = [&](cache_trial<>::load begun) { begun.store(++value); };
  t.read_later("a", "first");
  CHECK(t.notes.take() == "first: 1 fresh, after waiting;");
  t.advance_to(at(90s));
  CHECK(t.read("a") == "2 fresh");
  t.fail_all();
  t.read_later("b", "second");
  CHECK(t.notes.take() == "second: nothing, after waiting;");
  CHECK(t.cache->stats().in_progress == 0);
}

TEST_CASE(
    "prefetch() loads keys that are not fresh; it is not a read, and a first load is not an unread one") {
  auto policy = plain_policy();
  policy.mode = refresh_mode::on_read;
  cache_trial t(policy);
  t.cache->prefetch("a");
  t.cache->prefetch("a");
  REQUIRE(t.loads.size() == 1);
  t.store("a", 1);
  t.cache->prefetch("a");
  CHECK(t.loads.empty());
  t.advance_to(at(100s));
  t.cache->prefetch("a");
  CHECK(t.loads.size() == 1);
  CHECK(t.cache->stats().misses == 0);
  CHECK(t.cache->stats().hits == 0);
  CHECK(t.cache->stats().unread_loads == 1);
}

TEST_CASE("the hard TTL and the soft TTL may be infinite") {
  auto policy = plain_policy();
  policy.hard_ttl = rondo::duration::max();
  policy.first_retry = policy.longest_retry = 24h * 30;
  SUBCASE("the hard TTL") {
    cache_trial t(policy);
    t.fill("a", 1);
    t.fail_all();
    t.time.advance(24h * 365 * 100);
    CHECK(t.read("a") == "1 stale");
  }
  SUBCASE("both: the value is loaded once") {
    policy.soft_ttl = rondo::duration::max();
    policy.refresh_at = 1;
    cache_trial t(policy);
    t.fill("a", 1);
    t.time.advance(24h * 365 * 100);
    CHECK(t.read("a") == "1 fresh");
    CHECK(t.begins.size() == 1);
  }
  SUBCASE("on a clock that has run for a long time") {
    policy.soft_ttl = rondo::duration::max() - 1s;
    cache_trial t(policy);
    t.time.advance(24h * 365 * 200);
    t.fill("a", 1);
    CHECK(t.read("a") == "1 fresh");
    t.time.advance(24h * 365);
    CHECK(t.begins.size() == 1);
  }
}

TEST_CASE("count() and for_each() show all keys") {
  cache_trial t;
  t.fill("fresh", 1);
  t.fill("stale", 1, {.soft = 1s});
  t.time.advance(5s);
  t.fail("stale");
  t.cache->find("empty");
  const auto counts = t.cache->count();
  CHECK(counts.fresh == 1);
  CHECK(counts.stale == 1);
  CHECK(counts.empty == 1);
  CHECK(counts.failing == 1);
  std::vector<std::string> resting;
  std::vector<std::string> with_timer;
  t.cache->for_each([&](const std::string& key, const cache_refresh::key_state& now) {
    if (now.next_load) resting.push_back(key);
    if (now.timer_due) with_timer.push_back(key);
  });
  CHECK(with_timer.size() == 3);
  std::sort(resting.begin(), resting.end());
  CHECK(resting == std::vector<std::string>{"fresh", "stale"});
  CHECK(t.next_load("fresh") == at(90s));
  CHECK(t.cache->held("nowhere") == nullptr);
}

}  // namespace cache_refresh_refreshing_cache_loads
