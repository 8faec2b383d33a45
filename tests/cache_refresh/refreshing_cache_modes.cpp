// The three modes, compared.
#include "refreshing_cache.hpp"

#include <string>

#include "cache_refresh/cache_trial.hpp"

namespace cache_refresh_refreshing_cache_modes {

using namespace cache_refresh;
using namespace cache_refresh::test;

refresh_policy in_mode(refresh_mode mode) {
  auto policy = plain_policy();
  policy.mode = mode;
  return policy;
}

TEST_CASE("on read: a load begins only when a reader finds a stale value, which it gets") {
  cache_trial t(in_mode(refresh_mode::on_read));
  t.fill("a", 1);
  t.advance_to(at(99s));
  CHECK(t.read("a") == "1 fresh");
  t.advance_to(at(500s));
  CHECK(t.loads.empty());
  t.read_later("a", "first");
  t.read_later("a", "second");
  CHECK(t.notes.take() == "first: 1 stale; second: 1 stale;");
  REQUIRE(t.loads.size() == 1);
  t.store("a", 2);
  CHECK(t.read("a") == "2 fresh");
  CHECK(t.cache->stats().unread_loads == 0);
}

TEST_CASE(
    "on read: while loads fail, a stale value is served until its hard TTL, and reads trigger the retries") {
  cache_trial t(in_mode(refresh_mode::on_read));
  t.fill("a", 1);
  t.advance_to(at(100s));
  t.cache->find("a");
  t.fail("a");
  t.advance_to(at(200s));
  CHECK(t.loads.empty());
  CHECK(t.read("a") == "1 stale");
  CHECK(t.loads.size() == 1);
  t.fail("a");
  t.advance_to(at(1000s - 1ns));
  CHECK(t.read("a") == "1 stale");
  t.advance_to(at(1000s));
  CHECK(t.read("a") == "nothing");
}

TEST_CASE("expire: a stale value is not served; its readers wait for one load") {
  cache_trial t(in_mode(refresh_mode::expire));
  t.fill("a", 1);
  t.advance_to(at(100s - 1ns));
  CHECK(t.read("a") == "1 fresh");
  t.advance_to(at(100s));
  CHECK(t.loads.empty());
  CHECK(t.cache->count().empty == 1);
  t.read_later("a", "first");
  t.read_later("a", "second");
  CHECK(t.notes.take() == "");
  REQUIRE(t.loads.size() == 1);
  CHECK(*t.loads.front().held() == 1);
  t.store("a", 2);
  CHECK(t.notes.take() == "first: 2 fresh, after waiting; second: 2 fresh, after waiting;");
  t.advance_to(at(250s));
  t.read_later("a", "third");
  t.fail("a");
  CHECK(t.notes.take() == "third: nothing, after waiting;");
  CHECK(t.cache->stats().stale_hits == 0);
}

TEST_CASE(
    "expire: a value that arrives out of date goes to the readers that waited, and the next reader waits") {
  cache_trial t(in_mode(refresh_mode::expire));
  t.read_later("a", "first");
  t.store("a", 1, {.soft = 0s, .hard = 0s});
  CHECK(t.notes.take() == "first: 1 stale, after waiting;");
  t.read_later("a", "second");
  CHECK(t.notes.take() == "");
  REQUIRE(t.loads.size() == 1);
  t.store("a", 2);
  CHECK(t.notes.take() == "second: 2 fresh, after waiting;");
}

TEST_CASE("ahead: there is a pause between loads even for a value with a soft TTL of zero") {
  cache_trial t(in_mode(refresh_mode::ahead));
  t.origin = [](cache_trial<>::load begun) { begun.store(1, {.soft = 0s}); };
  t.cache->find("a");
  t.time.advance(1s);
  CHECK(t.begins.size() == 1001);
  CHECK(t.read("a") == "1 stale");
}

TEST_CASE("on read and expire: a key that nobody reads is dropped when its value may no longer be served") {
  auto policy = in_mode(refresh_mode::on_read);
  SUBCASE("on read") {}
  SUBCASE("expire") { policy.mode = refresh_mode::expire; }
  cache_trial t(policy);
  t.fill("a", 1);
  t.advance_to(at(1000s - 1ns));
  CHECK(t.cache->held("a") != nullptr);
  t.advance_to(at(1000s));
  CHECK(t.cache->held("a") == nullptr);
  CHECK(t.cache->stats().forgotten == 1);
  CHECK(t.begins.size() == 1);
  CHECK(t.time.pending() == 0);
}

TEST_CASE("on read and expire: a key that never had a value is dropped after its backoff") {
  auto policy = in_mode(refresh_mode::on_read);
  SUBCASE("on read") {}
  SUBCASE("expire") { policy.mode = refresh_mode::expire; }
  cache_trial t(policy);
  t.cache->find("a");
  t.fail("a");
  CHECK(t.cache->count().empty == 1);
  t.time.advance(1s + 30s);
  CHECK(t.cache->count().empty == 0);
  CHECK(t.begins.size() == 1);
}

TEST_CASE("on read and expire: refresh() loads a key that nobody reads") {
  auto policy = in_mode(refresh_mode::on_read);
  SUBCASE("on read") {}
  SUBCASE("expire") { policy.mode = refresh_mode::expire; }
  cache_trial t(policy);
  t.fill("a", 1);
  t.cache->refresh("a");
  t.store("a", 2);
  CHECK(t.read("a") == "2 fresh");
}

TEST_CASE(
    "with the same reads, ahead serves fresh values, on read stale ones, and expire makes readers wait") {
  for (const auto mode : {refresh_mode::ahead, refresh_mode::on_read, refresh_mode::expire}) {
    cache_trial t(in_mode(mode));
    t.answer_all(1);
    t.cache->find("a");
    for (int i = 1; i <= 9; ++i) {
      t.advance_to(at(i * 105s));
      t.cache->find("a");
    }
    const auto stats = t.cache->stats();
    CAPTURE(static_cast<int>(mode));
    CHECK(stats.hits == (mode == refresh_mode::expire ? 0 : 9));
    CHECK(stats.stale_hits == (mode == refresh_mode::on_read ? 9 : 0));
    CHECK(stats.misses == (mode == refresh_mode::expire ? 10 : 1));
    CHECK(stats.loads == (mode == refresh_mode::ahead ? 11 : 10));
  }
}

}  // namespace cache_refresh_refreshing_cache_modes
