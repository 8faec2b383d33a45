// How many loads are in progress and which come first, other changes of a key, and when a key is dropped.
#include "refreshing_cache.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "cache_refresh/cache_trial.hpp"
#include "failing_new.hpp"

namespace cache_refresh_refreshing_cache_limits {

using namespace cache_refresh;
using namespace cache_refresh::test;

refresh_policy at_once(std::size_t loads) {
  auto policy = plain_policy();
  policy.loads_at_once = loads;
  return policy;
}

std::string begun(cache_trial<>& t) {
  std::string keys;
  for (const auto& each : t.begins) keys += each.key;
  t.begins.clear();
  return keys;
}

TEST_CASE("at most loads_at_once loads are in progress; the others begin in the order of the requests") {
  cache_trial t(at_once(2));
  for (const char* const key : {"a", "b", "c", "d", "e"}) t.cache->find(key);
  CHECK(begun(t) == "ab");
  CHECK(t.cache->stats().in_progress == 2);
  CHECK(t.cache->stats().waiting == 3);
  CHECK(t.cache->stats().loads == 2);
  t.store("b", 1);
  CHECK(begun(t) == "c");
  t.fail("a");
  CHECK(begun(t) == "d");
  t.take("c");
  CHECK(begun(t) == "e");
  t.store("d", 1);
  t.store("e", 1);
  CHECK(t.cache->stats().in_progress == 0);
  CHECK(t.cache->stats().waiting == 0);
}

TEST_CASE("loads that readers wait for precede those that nobody waits for") {
  cache_trial t(at_once(1));
  t.cache->prefetch("a");
  t.cache->prefetch("b");
  t.cache->prefetch("c");
  t.cache->find("d");
  t.cache->find("e");
  t.origin = [&](cache_trial<>::load each) { each.store(1); };
  t.store("a", 1);
  CHECK(begun(t) == "adebc");
}

TEST_CASE("a reader moves the load that it waits for forward, once") {
  cache_trial t(at_once(1));
  for (const char* const key : {"a", "b", "c", "d"}) t.cache->prefetch(key);
  t.read_later("d", "reader");
  t.read_later("d", "another");
  CHECK(t.cache->stats().waiting == 3);
  t.store("a", 1);
  CHECK(begun(t) == "ad");
  CHECK(t.cache->stats().waiting == 2);
  t.store("d", 1);
  CHECK(t.notes.take() == "reader: 1 fresh, after waiting; another: 1 fresh, after waiting;");
  t.store("b", 1);
  t.store("c", 1);
  CHECK(begun(t) == "bc");
  CHECK(t.cache->stats().in_progress == 0);
  CHECK(t.cache->stats().waiting == 0);
}

TEST_CASE("refreshes of keys that still have a value wait for loads whose readers have none") {
  cache_trial t(at_once(1));
  for (const char* const key : {"a", "b", "c"}) t.fill(key, 1);
  begun(t);
  t.advance_to(at(90s));
  REQUIRE(t.loads.size() == 1);
  t.cache->find("d");
  t.origin = [&](cache_trial<>::load each) { each.store(1); };
  const std::string first = t.loads.front().key();
  t.store(first, 1);
  CHECK(begun(t).substr(0, 2) == first + "d");
}

TEST_CASE("a load that was given up keeps its slot until its answer arrives") {
  cache_trial t(at_once(2));
  t.cache->find("a");
  t.cache->find("b");
  t.cache->find("c");
  t.time.advance(1h);
  CHECK(begun(t) == "ab");
  CHECK(t.cache->stats().failed == 2);
  CHECK(t.cache->stats().in_progress == 2);
  t.take("a");
  CHECK(begun(t) == "c");
  CHECK(t.cache->stats().late_answers == 1);
}

TEST_CASE("readers whose load cannot begin are answered after the time that a load may take, and no later") {
  cache_trial t(at_once(1));
  t.cache->find("hangs");
  t.time.advance(5s);
  t.read_later("b", "early");
  t.time.advance(9s);
  t.read_later("b", "late");
  t.time.advance(1s - 1ns);
  CHECK(t.notes.take() == "");
  t.time.advance(1ns);
  CHECK(t.notes.take() == "early: nothing, after waiting; late: nothing, after waiting;");
  t.time.advance(1h);
  t.read_later("b", "next");
  t.time.advance(10s);
  CHECK(t.notes.take() == "next: nothing, after waiting;");
  t.read_later("b", "last");
  t.take("hangs");
  CHECK(begun(t) == "hangsb");
  t.time.advance(10s - 1ns);
  CHECK(t.notes.take() == "");
  t.store("b", 1);
  CHECK(t.notes.take() == "last: 1 fresh, after waiting;");
  CHECK(t.cache->stats().failed == 1);
}

TEST_CASE("a key that nobody has read for a while is dropped instead of being loaded again") {
  auto policy = plain_policy();
  policy.forget_after = 300s;
  cache_trial t(policy);
  t.answer_all(1);
  t.cache->find("a");
  t.cache->find("b");
  t.advance_to(at(200s));
  t.cache->find("b");
  t.advance_to(at(360s - 1ns));
  CHECK(t.cache->count().fresh == 2);
  t.advance_to(at(360s));
  CHECK(t.cache->count().fresh == 1);
  CHECK(t.cache->held("a") == nullptr);
  CHECK(t.cache->stats().forgotten == 1);
  t.advance_to(at(540s));
  CHECK(t.cache->count().fresh == 0);
  CHECK(t.time.pending() == 0);
  CHECK(t.read("a") == "nothing");
  CHECK(t.read("a") == "1 fresh");
}

TEST_CASE("a prefetched key is dropped if it is not read for a while after that") {
  auto policy = plain_policy();
  policy.forget_after = 300s;
  cache_trial t(policy);
  t.answer_all(1);
  t.time.advance(1000s);
  t.cache->prefetch("a");
  t.time.advance(299s);
  CHECK(t.cache->count().fresh == 1);
  t.cache->prefetch("a");
  t.time.advance(61s);
  CHECK(t.cache->count().fresh == 0);
}

TEST_CASE("a key whose loads fail and that nobody reads is dropped as well") {
  auto policy = plain_policy();
  policy.forget_after = 300s;
  cache_trial t(policy);
  t.fail_all();
  t.cache->find("a");
  t.time.advance(331s);
  CHECK(t.cache->count().empty == 0);
  CHECK(t.time.pending() == 0);
}

TEST_CASE("a key in the cache has exactly one timer, whatever happens to it") {
  cache_trial t;
  t.fill("a", 1);
  CHECK(t.time.pending() == 1);
  t.cache->refresh("a");
  CHECK(t.time.pending() == 1);
  t.cache->refresh("a");
  t.store("a", 2);
  CHECK(t.time.pending() == 1);
  t.time.advance(0s);
  t.fail("a");
  CHECK(t.time.pending() == 1);
  t.cache->remove("a");
  CHECK(t.time.pending() == 0);
}

TEST_CASE("a removed key is gone, and its timer with it; its next read loads it") {
  cache_trial t;
  t.fill("a", 1);
  CHECK(t.cache->remove("a"));
  CHECK_FALSE(t.cache->remove("a"));
  CHECK(t.time.pending() == 0);
  CHECK(t.read("a") == "nothing");
  CHECK(t.loads.size() == 1);
}

TEST_CASE(
    "if a key is removed during its load, readers get nothing and the answer is dropped, even if it is read "
    "again") {
  cache_trial t;
  t.read_later("a", "reader");
  CHECK(t.cache->remove("a"));
  CHECK(t.notes.take() == "reader: nothing, after waiting;");
  CHECK(t.cache->stats().in_progress == 1);
  SUBCASE("it is not read again") {
    t.store("a", 1);
    CHECK(t.cache->held("a") == nullptr);
    CHECK(t.cache->count().empty == 0);
  }
  SUBCASE("it is read again") {
    t.read_later("a", "another");
    REQUIRE(t.loads.size() == 2);
    t.store("a", 1);
    CHECK(t.notes.take() == "");
    t.store("a", 2);
    CHECK(t.notes.take() == "another: 2 fresh, after waiting;");
  }
  CHECK(t.cache->stats().late_answers == 1);
  CHECK(t.cache->stats().in_progress == 0);
}

TEST_CASE("a key that is removed while its load waits for its turn is not loaded") {
  cache_trial t(at_once(1));
  t.cache->find("a");
  t.read_later("b", "reader");
  t.cache->find("c");
  CHECK(t.cache->remove("b"));
  CHECK(t.notes.take() == "reader: nothing, after waiting;");
  CHECK(t.cache->stats().waiting == 1);
  t.store("a", 1);
  CHECK(begun(t) == "ac");
  t.time.advance(9s);
  CHECK(t.notes.take() == "");
}

TEST_CASE("refresh() loads a key now if it is in the cache, and its schedule continues from there") {
  cache_trial t;
  t.cache->refresh("a");
  CHECK(t.loads.empty());
  CHECK(t.cache->count().empty == 0);
  t.fill("a", 1);
  t.advance_to(at(50s));
  t.cache->refresh("a");
  REQUIRE(t.loads.size() == 1);
  CHECK(t.read("a") == "1 fresh");
  t.store("a", 2);
  CHECK(t.next_load("a") == at(140s));
}

TEST_CASE(
    "after refresh() during a load, one more load follows, whatever the first returns, and then no other") {
  refresh_policy policy = plain_policy();
  SUBCASE("ahead") {}
  SUBCASE("on read") { policy.mode = refresh_mode::on_read; }
  SUBCASE("expire") { policy.mode = refresh_mode::expire; }
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    cache_trial t(policy);
    t.fill("a", 1);
    t.cache->refresh("a");
    t.time.advance(1s);
    for (int i = 0; i != 10; ++i) t.cache->refresh("a");
    CHECK(t.loads.size() == 1);
    if (fails) {
      t.fail("a");
    } else {
      t.store("a", 2);
    }
    t.time.advance(0s);
    REQUIRE(t.loads.size() == 1);
    t.store("a", 3);
    CHECK(t.read("a") == "3 fresh");
    t.time.advance(80s);
    CHECK(t.loads.empty());
  }
}

TEST_CASE("refresh() while a load waits for its turn adds none, because that load will find the change") {
  cache_trial t(at_once(1));
  t.cache->find("a");
  t.cache->find("b");
  t.cache->refresh("b");
  t.store("a", 1);
  t.store("b", 1);
  t.time.advance(80s);
  CHECK(begun(t) == "ab");
}

TEST_CASE("reads between changes of a key begin no further loads") {
  cache_trial t;
  t.fill("a", 1);
  for (int i = 0; i != 1000; ++i) t.cache->find("a");
  t.cache->refresh("a");
  for (int i = 0; i != 1000; ++i) t.cache->find("a");
  CHECK(t.begins.size() == 2);
  CHECK(t.cache->stats().hits == 2000);
}

struct poor_hash {
  std::size_t operator()(int key) const noexcept { return key < 0 ? 0 : std::size_t(key) << 40; }
};

TEST_CASE("keys with a poor hash are kept apart") {
  cache_trial<int, poor_hash> t;
  t.origin = [](cache_trial<int, poor_hash>::load begun) {
    const int key = begun.key();
    begun.store(key * 10);
  };
  for (int key = -200; key != 200; ++key) t.cache->find(key);
  t.time.advance(1000s);
  for (int key = -200; key != 200; ++key) CHECK(*t.cache->find(key).value == key * 10);
  CHECK(t.cache->count().fresh == 400);
}

TEST_CASE("removed keys leave no memory behind" * doctest::skip(!rondo::test::failing_new::available)) {
  cache_trial<int> t;
  t.begins.reserve(10'000);
  const auto pass = [&](int key) {
    t.cache->find(key, [](const lookup<int>&) {});
    t.store(key, 1);
    t.cache->remove(key);
    t.cache->find(key, [](const lookup<int>&) {});
    t.cache->remove(key);
    t.take(key);
  };
  for (int key = 0; key != 1000; ++key) pass(key);
  const auto before = rondo::test::bytes_held();
  for (int key = 1000; key != 5000; ++key) pass(key);
  CHECK(rondo::test::bytes_held() - before < 10'000);
}

TEST_CASE("timers of short string keys allocate nothing once the scheduler has had as many" *
          doctest::skip(!rondo::test::failing_new::available)) {
  cache_trial t;
  const std::string key = "a short key";
  t.fill(key, 1);
  for (int i = 0; i != 3; ++i) {
    t.advance_to(*t.next_load(key));
    t.take(key).not_modified();
  }
  t.origin = [](cache_trial<>::load begun) { begun.not_modified(); };
  t.begins.reserve(1000);
  const auto before = rondo::test::allocations();
  t.time.advance(900s);
  CHECK(t.begins.size() == 14);
  CHECK(rondo::test::allocations() - before <= 1);  // an occasional one of the queue of loads
}

}  // namespace cache_refresh_refreshing_cache_limits
