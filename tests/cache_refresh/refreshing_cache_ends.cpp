// How a refreshing_cache ends, what happens when its scheduler ends first, and calls from inside its callbacks.
#include "refreshing_cache.hpp"

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cache_refresh/cache_trial.hpp"

namespace cache_refresh_refreshing_cache_ends {

using namespace cache_refresh;
using namespace cache_refresh::test;

TEST_CASE(
    "close() during loads: readers get nothing, at once; answers are dropped; no load begins any more") {
  auto policy = plain_policy();
  policy.loads_at_once = 2;
  cache_trial t(policy);
  t.fill("a", 1);
  t.read_later("b", "of a load in progress");
  t.cache->find("c");
  t.read_later("d", "of one that waits");
  t.cache->close();
  const std::string told = t.notes.take();
  CHECK(told.find("of a load in progress: nothing, after waiting;") != std::string::npos);
  CHECK(told.find("of one that waits: nothing, after waiting;") != std::string::npos);
  CHECK(t.time.pending() == 0);
  CHECK(t.cache->stats().in_progress == 2);
  CHECK(t.cache->stats().waiting == 0);
  t.store("b", 1);
  t.take("c");
  t.time.advance(1h);
  CHECK(t.loads.empty());
  CHECK(t.begins.size() == 3);
  CHECK(t.cache->stats().late_answers == 2);
  CHECK(t.cache->stats().in_progress == 0);
  CHECK(t.cache->held("b") == nullptr);
}

TEST_CASE("a closed cache serves nothing, answers readers at once, and may be closed again") {
  cache_trial t;
  t.fill("a", 1);
  t.cache->close();
  CHECK(t.read("a") == "nothing");
  t.read_later("a", "reader");
  CHECK(t.notes.take() == "reader: nothing;");
  CHECK(t.cache->wait_for("a", 1h).value == nullptr);
  t.cache->refresh("a");
  t.cache->prefetch("b");
  CHECK(t.cache->remove("a"));
  t.cache->close();
  CHECK(t.loads.empty());
  CHECK(t.time.pending() == 0);
}

TEST_CASE("loads may outlive the cache and its scheduler, and then do nothing") {
  using cache_type = refreshing_cache<std::string, int>;
  std::list<cache_type::load> loads;
  journal notes;
  const auto captured = std::make_shared<int>(0);
  {
    rondo::manual_timer time;
    cache_type cache(time, plain_policy(),
                     [&loads, captured](cache_type::load begun) { loads.push_back(std::move(begun)); });
    for (const char* const key : {"a", "b", "c", "d"}) {
      cache.find(key, [&](const lookup<int>& got) { notes.add(text(got) + ";"); });
    }
  }
  CHECK(notes.take() ==
        "nothing, after waiting; nothing, after waiting; nothing, after waiting; nothing, after waiting;");
  REQUIRE(loads.size() == 4);
  CHECK(loads.front().deadline() == at(10s));
  loads.front().store(1);
  loads.pop_front();
  loads.front().fail();
  loads.pop_front();
  loads.front().not_modified();
  loads.pop_front();
  CHECK(captured.use_count() == 2);
  loads.clear();
  CHECK(captured.use_count() == 1);
}

TEST_CASE("values may outlive the cache") {
  std::shared_ptr<const int> value;
  {
    cache_trial t;
    t.fill("a", 7);
    value = t.cache->find("a").value;
  }
  CHECK(*value == 7);
}

TEST_CASE("after the scheduler has stopped nothing is refreshed ahead, but readers still load stale values") {
  cache_trial t;
  t.fill("a", 1);
  t.cache->find("b");
  t.time.stop();
  t.time.elapse(150s);
  CHECK(t.loads.size() == 1);
  CHECK(t.read("a") == "1 stale");
  CHECK(t.loads.size() == 2);
  t.store("a", 2);
  CHECK(t.read("a") == "2 fresh");
  t.store("b", 1);  // it no longer has a deadline
  CHECK(t.read("b") == "1 stale");
  t.time.elapse(10s);  // the pause after a slow load
  CHECK(t.read("b") == "1 stale");
  t.fail("b");
  CHECK(t.read("b") == "1 stale");
  CHECK(t.loads.empty());  // the backoff is still in effect
  t.time.elapse(2s);
  t.cache->find("b");
  CHECK(t.loads.size() == 1);
  t.cache->refresh("a");
  CHECK(t.loads.size() == 2);
  t.cache->find("c");
  CHECK(t.loads.size() == 3);
  t.cache->close();
}

TEST_CASE(
    "keys for which the scheduler has no room are loaded by readers, and refreshed once there is room") {
  auto options = exact_ticks();
  options.max_pending = 1;
  cache_trial t(plain_policy(), options);
  t.fill("a", 1);
  t.fill("b", 1);  // nothing throws
  CHECK(t.time.pending() == 1);
  t.advance_to(at(90s));
  REQUIRE(t.loads.size() == 1);
  t.store("a", 2);
  t.advance_to(at(120s));
  CHECK(t.read("b") == "1 stale");
  REQUIRE(t.loads.size() == 1);
  t.cache->remove("a");
  t.store("b", 2);
  CHECK(t.time.pending() == 1);
  t.advance_to(at(210s));
  CHECK(t.loads.size() == 1);
}

TEST_CASE("a reader that waits for a load without a deadline gives it one, if there is room") {
  auto options = exact_ticks();
  options.max_pending = 1;
  cache_trial t(plain_policy(), options);
  const auto other = t.time.schedule_after(1h, [] {});
  t.cache->find("a");
  t.time.advance(20s);
  CHECK(t.loads.size() == 1);
  CHECK(t.cache->stats().failed == 0);
  t.time.cancel(other);
  t.read_later("a", "reader");
  t.time.advance(10s);
  CHECK(t.notes.take() == "reader: nothing, after waiting;");
  CHECK(t.cache->stats().failed == 1);
}

TEST_CASE("an answered reader may read, refresh and remove keys; the slot of the ended load is free") {
  auto policy = plain_policy();
  policy.loads_at_once = 1;
  cache_trial t(policy);
  t.cache->find("a", [&](const lookup<int>& got) {
    t.notes.add("a: " + text(got) + ";");
    CHECK(t.read("a") == "1 fresh");
    t.read_later("b", "b");
    CHECK(t.loads.size() == 1);
    t.cache->refresh("a");
    CHECK(t.cache->stats().waiting == 1);
    CHECK(t.cache->remove("a"));
    CHECK(t.cache->count().empty == 1);
  });
  t.store("a", 1);
  CHECK(t.notes.take() == "a: 1 fresh, after waiting;");
  t.store("b", 2);
  CHECK(t.notes.take() == "b: 2 fresh, after waiting;");
  CHECK(t.cache->stats().in_progress == 0);
  CHECK(t.cache->stats().waiting == 0);
}

TEST_CASE(
    "a reader that gets nothing may read again, and waits for a load only after the backoff has ended") {
  cache_trial t;
  int calls = 0;
  std::function<void(const lookup<int>&)> again = [&](const lookup<int>&) {
    if (++calls < 5) t.cache->find("a", again);
  };
  t.cache->find("a", again);
  t.fail("a");
  CHECK(calls == 5);
  CHECK(t.begins.size() == 1);
}

TEST_CASE("the function that begins loads may read other keys, whose loads begin when it has returned") {
  cache_trial t;
  int depth = 0, deepest = 0;
  t.origin = [&](cache_trial<>::load begun) {
    deepest = std::max(deepest, ++depth);
    if (begun.key().size() < 1000) t.cache->find(begun.key() + "x");
    begun.store(1);
    --depth;
  };
  t.cache->find("x");
  CHECK(deepest == 1);
  CHECK(t.begins.size() == 1000);
  CHECK(t.cache->count().fresh == 1000);
}

TEST_CASE("an exception of a reader is dropped: the other readers are answered, and the load has ended") {
  cache_trial t;
  const auto throwing = [](const lookup<int>&) { throw std::runtime_error("the reader's"); };
  const auto read = [&] {
    t.read_later("a", "before");
    t.cache->find("a", throwing);
    t.read_later("a", "after");
  };
  read();
  SUBCASE("store()") {
    t.store("a", 1);
    CHECK(t.notes.take() == "before: 1 fresh, after waiting; after: 1 fresh, after waiting;");
    CHECK_THROWS_AS(t.cache->find("a", throwing), std::runtime_error);  // from its own call, at once
  }
  SUBCASE("the load is destroyed") { t.take("a"); }
  SUBCASE("its deadline") {
    t.time.advance(10s);
    CHECK(t.time.stats().failed == 0);
    t.take("a");
  }
  SUBCASE("remove()") {
    t.cache->remove("a");
    t.take("a");
  }
  SUBCASE("close()") {
    t.cache->close();
    t.take("a");
  }
  if (t.cache->stats().loaded == 0)
    CHECK(t.notes.take() == "before: nothing, after waiting; after: nothing, after waiting;");
  CHECK(t.cache->stats().in_progress == 0);
}

TEST_CASE("an answered reader may destroy the cache") {
  cache_trial t;
  const auto destroying = [&](const lookup<int>&) {
    t.notes.add("told");
    t.cache.reset();
  };
  SUBCASE("in the call that ends the load") {
    t.cache->find("a", destroying);
    t.cache->find("b");
    t.store("a", 1);
    t.store("b", 1);
  }
  SUBCASE("in a load that ends when it begins") {
    t.answer_all(1);
    t.cache->find("a", destroying);
  }
  SUBCASE("in a load that the timer begins and that fails at once") {
    t.cache->find("a");
    t.fail("a");
    auto next = *t.next_load("a");
    t.origin = [&](cache_trial<>::load begun) {
      t.cache->find("a", destroying);
      begun.store(1);
    };
    t.advance_to(next);
  }
  SUBCASE("at its load's deadline") {
    t.cache->find("a", destroying);
    t.time.advance(1h);
  }
  SUBCASE("in remove()") {
    t.cache->find("a", destroying);
    t.cache->remove("a");
  }
  SUBCASE("in close()") {
    t.cache->find("a", destroying);
    t.read_later("b", "other");
    t.cache->close();
    CHECK(t.notes.take().find("other: nothing") != std::string::npos);
    t.notes.add("told");
  }
  SUBCASE("at once") {
    t.fill("a", 1);
    t.cache->find("a", destroying);
  }
  CHECK(t.notes.take() == "told");
  CHECK(t.cache == nullptr);
  CHECK(t.time.pending() == 0);
}

TEST_CASE(
    "values and readers' functions are destroyed without a lock: their destructors may call the cache") {
  using cache_type = refreshing_cache<int, std::shared_ptr<void>>;
  rondo::manual_timer time;
  auto policy = plain_policy();
  policy.forget_after = 85s;
  int destroyed = 0;
  bool over = false;  // contents of the cache are then destroyed with it
  std::list<cache_type::load> loads;
  cache_type cache(time, policy, [&](cache_type::load begun) { loads.push_back(std::move(begun)); });
  const auto calling = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) {
      if (over) return;
      ++destroyed;
      for (int key = 0; key != 200; ++key) static_cast<void>(cache.held(key));
      static_cast<void>(cache.stats());
    });
  };
  const auto end_one = [&] {
    loads.front().store(calling());
    loads.pop_front();
  };
  cache.find(1, [held = calling()](const auto&) {});
  SUBCASE("a value is replaced") {
    end_one();
    CHECK(destroyed == 1);
    cache.refresh(1);
    end_one();
    CHECK(destroyed == 2);
  }
  SUBCASE("a key is dropped") {
    end_one();
    time.advance(90s);
    CHECK(destroyed == 2);
  }
  SUBCASE("a key is removed") {
    end_one();
    cache.remove(1);
    CHECK(destroyed == 2);
  }
  SUBCASE("an answer is dropped") {
    cache.remove(1);
    CHECK(destroyed == 1);
    end_one();
    CHECK(destroyed == 2);
  }
  SUBCASE("a deadline passes") {
    time.advance(10s);
    CHECK(destroyed == 1);
  }
  SUBCASE("the cache is closed") {
    cache.close();
    CHECK(destroyed == 1);
    cache.find(1, [held = calling()](const auto&) {});
    CHECK(destroyed == 2);
  }
  over = true;
}

TEST_CASE("the function that begins loads may close the cache") {
  cache_trial t;
  t.origin = [&](cache_trial<>::load begun) {
    t.cache->close();
    begun.store(1);
  };
  t.read_later("a", "reader");
  CHECK(t.notes.take() == "reader: nothing, after waiting;");
  CHECK(t.cache->stats().late_answers == 1);
  CHECK(t.begins.size() == 1);
}

TEST_CASE("wait_for() returns an existing value at once, and does not wait without a positive limit") {
  cache_trial t;
  t.fill("a", 1);
  CHECK(text(t.cache->wait_for("a", rondo::duration::max())) == "1 fresh");
  for (const rondo::duration limit : {rondo::duration(0s), rondo::duration(-1s), rondo::duration::min()}) {
    CHECK(text(t.cache->wait_for("b", limit)) == "nothing, after waiting");
  }
  CHECK(t.loads.size() == 1);
  t.store("b", 2);  // also answers the calls that have returned, which do nothing
  t.answer_all(3);
  CHECK(text(t.cache->wait_for("c", 1h)) == "3 fresh, after waiting");
}

TEST_CASE("wait_for() waits at least until its limit") {
  cache_trial t;
  const auto began = std::chrono::steady_clock::now();
  CHECK(text(t.cache->wait_for("a", 20ms)) == "nothing, after waiting");
  CHECK(std::chrono::steady_clock::now() - began >= 20ms);
}

}  // namespace cache_refresh_refreshing_cache_ends
