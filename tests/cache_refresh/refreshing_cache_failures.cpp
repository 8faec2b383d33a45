// Loads that fail, are too slow, or never answer.
#include "refreshing_cache.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache_refresh/cache_trial.hpp"

namespace cache_refresh_refreshing_cache_failures {

using namespace cache_refresh;
using namespace cache_refresh::test;

TEST_CASE("while loads fail, the stale value is served until its hard TTL, and nothing after that") {
  cache_trial t;
  t.fill("a", 1);
  t.fail_all();
  t.advance_to(at(100s));
  CHECK(t.read("a") == "1 stale");
  t.advance_to(at(1000s - 1ns));
  CHECK(t.read("a") == "1 stale");
  t.advance_to(at(1000s));
  CHECK(t.read("a") == "nothing");
  t.advance_to(at(2000s));
  CHECK(t.read("a") == "nothing");
  CHECK(t.cache->count().failing == 1);
  CHECK(t.cache->count().empty == 1);
}

TEST_CASE("an origin that comes back after the hard TTL is noticed without a read") {
  cache_trial t;
  t.fill("a", 1);
  t.fail_all();
  t.advance_to(at(5000s));
  CHECK(t.read("a") == "nothing");
  t.answer_all(2);
  t.time.advance(30s);  // the longest retry
  CHECK(t.read("a") == "2 fresh");
  CHECK(t.cache->count().failing == 0);
  t.begins.clear();
  t.time.advance(900s);
  CHECK(t.begins.size() == 10);  // as before
}

TEST_CASE(
    "a load fails at its deadline: readers are answered, another load follows, the late answer is dropped") {
  cache_trial t;
  t.read_later("a", "reader");
  t.advance_to(at(10s - 1ns));
  CHECK(t.notes.take() == "");
  t.advance_to(at(10s));
  CHECK(t.notes.take() == "reader: nothing, after waiting;");
  CHECK(t.cache->stats().failed == 1);
  CHECK(t.cache->stats().in_progress == 1);  // its answer is still awaited
  const auto retry = t.next_load("a");
  REQUIRE(retry.has_value());
  CHECK(*retry >= at(10s));
  CHECK(*retry <= at(11s));
  t.advance_to(at(11s));
  REQUIRE(t.loads.size() == 2);
  t.store("a", 1);  // the answer of the first load
  CHECK(t.cache->stats().late_answers == 1);
  CHECK(t.read("a") == "nothing");
  t.store("a", 2);
  CHECK(t.read("a") == "2 fresh");
  CHECK(t.cache->stats().in_progress == 0);
}

TEST_CASE("a dropped answer does not end the load that has followed") {
  cache_trial t;
  t.fill("a", 1);
  t.advance_to(at(90s + 10s + 1s));
  REQUIRE(t.loads.size() == 2);
  SUBCASE("a value") { t.store("a", 2); }
  SUBCASE("a failure") { t.fail("a"); }
  SUBCASE("not modified") { t.take("a").not_modified(); }
  SUBCASE("nothing: the load is destroyed") { t.take("a"); }
  CHECK(t.cache->stats().late_answers == 1);
  CHECK(t.cache->stats().failed == 1);
  CHECK_FALSE(t.next_load("a").has_value());
  t.store("a", 3);
  CHECK(t.read("a") == "3 fresh");
}

TEST_CASE("an answer after the deadline and before the next load is dropped as well") {
  auto policy = plain_policy();
  policy.first_retry = policy.longest_retry = 1000s;
  cache_trial t(policy);
  t.fill("a", 1);
  t.advance_to(at(100s));
  const auto next = t.next_load("a");
  REQUIRE(next.has_value());
  REQUIRE(*next > at(101s));
  t.time.advance(1s);
  t.store("a", 2);
  CHECK(t.cache->stats().late_answers == 1);
  CHECK(t.read("a") == "1 stale");
  CHECK(t.next_load("a") == next);
}

TEST_CASE("without a load deadline a load may take indefinitely") {
  auto policy = plain_policy();
  policy.load_deadline = rondo::duration::max();
  cache_trial t(policy);
  t.time.advance(1h);
  t.read_later("a", "reader");
  REQUIRE(t.loads.size() == 1);
  CHECK(t.loads.front().deadline() == rondo::time_point::max());
  t.time.advance(24h * 365);
  CHECK(t.loads.size() == 1);
  t.store("a", 1);
  CHECK(t.notes.take() == "reader: 1 stale, after waiting;");
}

// For each of `keys` keys: the times from its n-th consecutive failure to its next load.
std::vector<std::vector<rondo::duration>> retries(int keys, std::size_t failures) {
  auto policy = plain_policy();
  policy.loads_at_once = 100;
  cache_trial<int> t(policy);
  t.fail_all();
  for (int key = 0; key != keys; ++key) t.cache->find(key);
  t.time.advance(30s * static_cast<long>(failures));
  std::vector<std::vector<rondo::time_point>> when(static_cast<std::size_t>(keys));
  for (const auto& each : t.begins) when[static_cast<std::size_t>(each.key)].push_back(each.when);
  std::vector<std::vector<rondo::duration>> result(failures);
  for (const auto& of_key : when) {
    REQUIRE(of_key.size() > failures);
    for (std::size_t i = 0; i != failures; ++i) result[i].push_back(of_key[i + 1] - of_key[i]);
  }
  return result;
}

TEST_CASE(
    "after consecutive failures the next load follows after a random time, whose bound doubles up to a cap") {
  const auto after = retries(1000, 8);
  for (std::size_t n = 0; n != after.size(); ++n) {
    CAPTURE(n);
    const rondo::duration bound = std::min<rondo::duration>(1s * (1 << n), 30s);
    rondo::duration sum{};
    for (const rondo::duration each : after[n]) {
      REQUIRE(each >= 0s);
      REQUIRE(each <= bound);
      sum += each;
    }
    const auto [least, most] = std::minmax_element(after[n].begin(), after[n].end());
    CHECK(*least < bound / 20);
    CHECK(*most > bound - bound / 20);
    CHECK(sum / 1000 > bound * 45 / 100);
    CHECK(sum / 1000 < bound * 55 / 100);
  }
}

TEST_CASE("a success resets the backoff: the next failure is treated like a first one") {
  cache_trial t;
  t.fail_all();
  t.cache->find("a");
  t.time.advance(1h);
  t.answer_all(1);
  t.time.advance(30s);
  REQUIRE(t.cache->count().failing == 0);
  t.origin = nullptr;
  for (int i = 0; i != 20; ++i) {
    t.advance_to(*t.next_load("a"));
    t.fail("a");
    CHECK(*t.next_load("a") <= t.time.now() + 1s);
    t.advance_to(*t.next_load("a"));
    t.store("a", i);
  }
}

TEST_CASE("reads do not bypass the backoff: they are answered at once with what there is") {
  auto policy = plain_policy();
  policy.first_retry = policy.longest_retry = 1000s;
  SUBCASE("ahead") {}
  SUBCASE("on read") { policy.mode = refresh_mode::on_read; }
  SUBCASE("expire") { policy.mode = refresh_mode::expire; }
  cache_trial t(policy);
  t.cache->find("empty");
  t.fail("empty");
  const auto next = t.next_load("empty");
  REQUIRE(next.has_value());
  REQUIRE(*next > at(1s));
  for (int i = 0; i != 100; ++i) t.read_later("empty", "reader");
  CHECK(t.notes.take().find("waiting") == std::string::npos);
  CHECK(t.cache->wait_for("empty", 1h).value == nullptr);
  t.cache->prefetch("empty");
  CHECK(t.loads.empty());
  t.advance_to(*next - 1ns);
  CHECK(t.read("empty") == "nothing");
  CHECK(t.loads.empty());
  t.advance_to(*next);
  t.cache->find("empty");
  CHECK(t.loads.size() == 1);
}

TEST_CASE("a load fails if it is destroyed, or if the function that begins it throws") {
  cache_trial t;
  SUBCASE("destroyed") {
    t.read_later("a", "reader");
    t.take("a");
  }
  SUBCASE("destroyed while it begins") {
    t.origin = [](cache_trial<>::load) {};
    t.read_later("a", "reader");
  }
  SUBCASE("it throws") {
    t.origin = [](cache_trial<>::load) { throw std::runtime_error("the pool is full"); };
    t.read_later("a", "reader");
  }
  SUBCASE("it throws something that is not a std::exception") {
    t.origin = [](cache_trial<>::load) { throw 1; };
    t.read_later("a", "reader");
  }
  CHECK(t.notes.take() == "reader: nothing, after waiting;");
  CHECK(t.cache->stats().failed == 1);
  CHECK(t.cache->stats().in_progress == 0);
  t.answer_all(1);
  t.time.advance(1s);
  CHECK(t.read("a") == "1 fresh");
}

TEST_CASE("if the function that begins a load throws after passing it on, the load stays where it is") {
  cache_trial t;
  t.origin = [&](cache_trial<>::load begun) {
    t.loads.push_back(std::move(begun));
    throw std::runtime_error("after all");
  };
  t.read_later("a", "reader");
  t.store("a", 1);
  CHECK(t.notes.take() == "reader: 1 fresh, after waiting;");
}

TEST_CASE("without a function that begins loads, all loads fail") {
  rondo::manual_timer time;
  refreshing_cache<int, int> cache(time, plain_policy(), {});
  journal notes;
  cache.find(1, [&](const lookup<int>& got) { notes.add(text(got)); });
  CHECK(notes.take() == "nothing, after waiting");
  CHECK(cache.stats().in_progress == 0);
}

TEST_CASE("a load ends once: later calls on it are ignored") {
  cache_trial t;
  t.cache->find("a");
  auto load = t.take("a");
  load.store(1);
  load.store(2);
  load.fail();
  load.not_modified();
  CHECK(t.read("a") == "1 fresh");
  CHECK(t.cache->stats().loaded == 1);
  CHECK(t.cache->stats().failed == 0);
  CHECK(t.cache->stats().late_answers == 0);
}

TEST_CASE("retry_delay() stays within its bounds, whatever the number of failures and the bounds") {
  random_source random(1);
  refresh_policy policy;
  policy.first_retry = 100ms;
  policy.longest_retry = rondo::duration::max();
  for (const unsigned failures : {1u, 2u, 60u, 61u, 62u, 1000u, 4'000'000'000u}) {
    for (int i = 0; i != 100; ++i) CHECK(retry_delay(policy, failures, random) >= 0s);
  }
  policy.longest_retry = 5s;
  for (int i = 0; i != 1000; ++i) CHECK(retry_delay(policy, 4'000'000'000u, random) <= 5s);
  policy.first_retry = 0s;
  CHECK(retry_delay(policy, 7, random) == 0s);
}

// What for_each() tells about the key "a": its error, when it began and when it came last; or "-".
std::string failure_of(const cache_trial<>& t) {
  std::string said;
  t.cache->for_each([&](const std::string&, const key_state& now) {
    const auto seconds = [](rondo::time_point when) {
      return std::to_string((when - rondo::time_point{}) / 1s);
    };
    said = now.failing
               ? now.failing->why + ", " + seconds(now.failing->since) + " to " + seconds(now.failing->latest)
               : "-";
  });
  return said;
}

TEST_CASE("a failure is told with its reason, its start and its latest time, until a load succeeds") {
  cache_trial t;
  t.fill("a", 1);
  CHECK(failure_of(t) == "-");
  t.origin = [](auto load) { load.fail("no route"); };
  t.advance_to(at(90s));
  CHECK(failure_of(t) == "no route, 90 to 90");
  t.origin = nullptr;
  t.advance_to(at(91s));  // the longest first retry
  t.take("a").fail("no such host");
  const auto latest = std::to_string((t.time.now() - rondo::time_point{}) / 1s);
  CHECK(failure_of(t) == "no such host, 90 to " + latest);
  t.answer_all(2);
  t.time.advance(30s);
  CHECK(failure_of(t) == "-");
}

TEST_CASE("a load that ends without an answer, or not in time, has failed with \"no answer\"") {
  cache_trial t;
  t.cache->find("a");
  SUBCASE("at its deadline") { t.advance_to(at(10s)); }
  SUBCASE("destroyed") {
    t.advance_to(at(10s - 1ns));
    t.take("a");
  }
  CHECK(failure_of(t).find("no answer, ") == 0);
}

TEST_CASE("failures in a row are those of all keys since a load succeeded") {
  cache_trial t;
  t.cache->find("a");
  t.cache->find("b");
  t.cache->find("c");
  t.time.advance(3s);
  CHECK(t.cache->stats().failed_in_a_row == 0);
  t.fail("a");
  t.time.advance(0s);
  CHECK(t.cache->stats().failed_in_a_row == 1);
  CHECK(t.cache->stats().failing_since == at(3s));
  t.advance_to(at(10s));  // the deadline of b and c, and perhaps the end of a's pause
  CHECK(t.cache->stats().failed_in_a_row == 3);
  CHECK(t.cache->stats().failing_since == at(3s));
  t.store("a", 1);
  CHECK(t.cache->stats().failed_in_a_row == 0);
  CHECK(t.cache->count().failing == 2);
}

TEST_CASE("count() tells until when all values are served that are served now") {
  cache_trial t;
  CHECK(!t.cache->count().served_until);
  t.cache->find("empty");
  CHECK(!t.cache->count().served_until);
  t.fill("a", 1, {.soft = 1s, .hard = 50s});
  t.fill("b", 1, {.soft = 1s, .hard = 70s});
  t.fail_all();
  CHECK(t.cache->count().served_until == at(50s));
  t.advance_to(at(50s));
  CHECK(t.cache->count().served_until == at(70s));
  t.advance_to(at(70s));
  CHECK(!t.cache->count().served_until);
}

}  // namespace cache_refresh_refreshing_cache_failures
