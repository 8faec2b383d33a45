// Events between the beginning of a timer's run and its lock, on one thread: the run asks for the key's hash in
// between. Also calls without memory.
#include "refreshing_cache.hpp"

#include <functional>
#include <new>
#include <utility>

#include "cache_refresh/cache_trial.hpp"
#include "failing_new.hpp"

namespace cache_refresh_refreshing_cache_races {

using namespace cache_refresh;
using namespace cache_refresh::test;

struct hooked_hash {
  static inline std::function<void()> next;  // called once, when a hash is computed
  std::size_t operator()(int key) const {
    if (next) std::exchange(next, nullptr)();
    return static_cast<std::size_t>(key);
  }
};

using trial = cache_trial<int, hooked_hash>;

// Calls `act` when the timer's run that is due at `when` has begun and has not locked anything yet.
template <class Act>
void between(trial& t, rondo::time_point when, Act act) {
  t.advance_to(when - 1ns);
  bool acted = false;
  hooked_hash::next = [&] {
    acted = true;
    act();
  };
  t.advance_to(when);
  REQUIRE(acted);
}

TEST_CASE("a load that begins as its timer fires is a single load, and has not failed") {
  trial t;
  t.fill(1, 1);
  between(t, at(90s), [&] { t.cache->refresh(1); });
  CHECK(t.loads.size() == 1);
  CHECK(t.cache->stats().failed == 0);
  t.time.advance(9s);
  t.store(1, 2);
  CHECK(*t.cache->find(1).value == 2);
}

TEST_CASE("a load that is requested as its timer fires, and waits for its turn, has not failed") {
  auto policy = plain_policy();
  policy.loads_at_once = 1;
  trial t(policy);
  t.fill(1, 1);
  t.time.advance(85s);
  t.cache->find(2);
  between(t, at(90s), [&] { t.cache->refresh(1); });
  CHECK(t.cache->stats().failed == 0);
  CHECK(t.cache->stats().waiting == 1);
  t.store(2, 2);
  t.store(1, 2);
  CHECK(*t.cache->find(1).value == 2);
}

TEST_CASE("a firing timer does not answer a reader that arrives just then and whose load is still queued") {
  auto policy = plain_policy();
  policy.loads_at_once = 1;
  trial t(policy);
  t.cache->find(1);
  t.fail(1);
  const auto next = t.next_load(1);
  REQUIRE(next.has_value());
  t.cache->find(2);
  between(t, *next, [&] { t.cache->find(1, [&](const lookup<int>& got) { t.notes.add(text(got)); }); });
  CHECK(t.notes.take() == "");
  t.time.advance(10s - 1ns);
  CHECK(t.notes.take() == "");
  t.time.advance(1ns);
  CHECK(t.notes.take() == "nothing, after waiting");
}

TEST_CASE("a load that begins and ends as its timer fires is followed by the next one on time") {
  trial t;
  t.fill(1, 1);
  between(t, at(90s), [&] {
    t.cache->refresh(1);
    t.store(1, 2);
  });
  CHECK(t.loads.empty());
  CHECK(t.next_load(1) == at(180s));
  CHECK(t.time.pending() == 1);
}

TEST_CASE("an answer that arrives as the deadline's timer fires is in time") {
  trial t;
  t.cache->find(1);
  between(t, at(10s), [&] { t.store(1, 1); });
  CHECK(t.cache->stats().failed == 0);
  CHECK(t.cache->stats().late_answers == 0);
  CHECK(*t.cache->find(1).value == 1);
  CHECK(t.time.pending() == 1);
}

TEST_CASE("a key that is removed as its timer fires is gone, and has a new load if it is read again") {
  trial t;
  t.fill(1, 1);
  SUBCASE("removed") {
    between(t, at(90s), [&] { t.cache->remove(1); });
    CHECK(t.loads.empty());
    CHECK(t.time.pending() == 0);
  }
  SUBCASE("and read again") {
    between(t, at(90s), [&] {
      t.cache->remove(1);
      t.cache->find(1);
    });
    CHECK(t.loads.size() == 1);
    CHECK(t.cache->stats().failed == 0);
  }
}

TEST_CASE("a key that is read just as its timer would drop it stays") {
  auto policy = plain_policy();
  policy.forget_after = 90s;
  trial t(policy);
  t.fill(1, 1);
  between(t, at(90s), [&] { t.cache->find(1); });
  CHECK(t.cache->stats().forgotten == 0);
  CHECK(t.loads.size() == 1);
}

TEST_CASE("a cache that is closed as a timer fires loads nothing") {
  trial t;
  t.fill(1, 1);
  between(t, at(90s), [&] { t.cache->close(); });
  CHECK(t.loads.empty());
  CHECK(t.time.pending() == 0);
}

// Runs `operation` with the 1st, 2nd, … allocation failing, until none fails. Whatever the outcome, later reads load
// the key, and nothing stays in progress.
template <class Operation>
int without_memory(Operation operation) {
  for (int k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    cache_trial t;
    t.begins.reserve(1000);
    t.fill("a key that is too long to be held in place", 1);
    bool struck = false;
    int asked = 0, told = 0;
    {
      const rondo::test::failing_new failing(static_cast<std::size_t>(k), 1);
      try {
        operation(t, asked, told);
      } catch (const std::bad_alloc&) {
      }
      struck = failing.struck();
    }
    t.answer_all(2);
    t.loads.clear();
    t.time.advance(300s);
    for (const std::string key :
         {"a key that is too long to be held in place", "another one that is as long as it"}) {
      t.cache->find(key);
      t.time.advance(40s);
      CHECK(t.cache->find(key).value != nullptr);
    }
    CHECK(t.cache->stats().in_progress == 0);
    CHECK(t.cache->stats().waiting == 0);
    CHECK(told == asked);
    if (!struck) return k;
  }
}

TEST_SUITE_BEGIN("without memory" * doctest::skip(!rondo::test::failing_new::available));

TEST_CASE("a read without memory throws or is answered, and does not keep others from loading the key") {
  const int points = without_memory([](cache_trial<>& t, int& asked, int& told) {
    ++asked;
    bool waits = false;
    try {
      t.cache->find("another one that is as long as it", [&told](const lookup<int>&) { ++told; });
      waits = true;
    } catch (const std::bad_alloc&) {
    }
    if (!waits) --asked;
  });
  CHECK(points > 5);
}

TEST_CASE("refreshes that failed without memory are made up for") {
  const int points = without_memory([](cache_trial<>& t, int&, int&) {
    t.time.advance(90s);
    if (!t.loads.empty()) t.loads.front().fail();
    t.loads.clear();
    t.time.advance(1s);
  });
  CHECK(points > 2);
}

TEST_CASE("a refresh that failed without memory is tried again, even if nobody reads") {
  for (int k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    cache_trial t;
    t.begins.reserve(1000);
    t.fill("a key that is too long to be held in place", 1);
    bool struck = false;
    {
      const rondo::test::failing_new failing(static_cast<std::size_t>(k), 1);
      try {
        t.time.advance(90s);
      } catch (const std::bad_alloc&) {
        t.time.advance(0s);
      }
      struck = failing.struck();
    }
    CHECK((t.time.pending() == 1 || t.loads.size() == 1));
    if (!struck) break;
  }
}

TEST_CASE("refresh(), prefetch() and remove() may throw without memory, and leave the cache consistent") {
  const int points = without_memory([](cache_trial<>& t, int&, int&) {
    t.cache->prefetch("another one that is as long as it");
    t.cache->refresh("a key that is too long to be held in place");
    t.cache->refresh("a key that is too long to be held in place");
    t.cache->remove("a key that is too long to be held in place");
  });
  CHECK(points > 5);
}

TEST_SUITE_END();

}  // namespace cache_refresh_refreshing_cache_races
