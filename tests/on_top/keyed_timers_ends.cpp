// How keyed timers end: one by one, all together, with the scheduler, or on an executor.
#include <rondo/keyed_timers.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <rondo/errors.hpp>

#include "scheduler/virtual_time.hpp"

namespace on_top_keyed_timers_ends {

using namespace rondo;
using namespace rondo::test;

using by_name = keyed_timers<std::string>;

TEST_CASE("clear() cancels all timers of all keys") {
  manual_timer time;
  by_name timers(time);
  const auto token = std::make_shared<int>(0);
  for (int i = 0; i != 100; ++i) timers.set_after(std::to_string(i), i * 1ms, [token] { FAIL("it ran"); });
  timers.set("r", every(1ms), [token] { FAIL("it ran"); });
  timers.clear();
  CHECK(timers.size() == 0);
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 0);
  int runs = 0;
  timers.set_after("own", 1ms, [&] {
    timers.set_after("other", 1ms, [] { FAIL("it ran"); });
    timers.clear();
    timers.set_after("third", 1ms, counting(runs));
  });
  time.advance(1s);
  CHECK(runs == 1);
}

TEST_CASE("the destructor of keyed timers cancels all timers and destroys their callables at once") {
  manual_timer time;
  const auto token = std::make_shared<int>(0);
  {
    by_name timers(time);
    timers.set_after("a", 1ms, [token] { FAIL("it ran"); });
    timers.set("b", every(1ms), [token] { FAIL("it ran"); });
  }
  CHECK(token.use_count() == 1);
  CHECK(time.advance(1s) == 0);
  CHECK(time.stats().cancelled == 2);
}

TEST_CASE("a task, or the destructor of its callable, may destroy the keyed timers") {
  manual_timer time;
  std::optional<by_name> timers(time);
  journal notes;
  const auto destroying = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) {
      notes.add("destroyed");
      timers.reset();
    });
  };
  SUBCASE("a one-shot") {
    timers->set_after("a", 1ms, [held = destroying()]() mutable { held.reset(); });
  }
  SUBCASE("a recurring task") {
    timers->set("a", every(1ms), [held = destroying()]() mutable { held.reset(); });
  }
  SUBCASE("after its run") {
    timers->set_after("a", 1ms, [held = destroying()] {});
  }
  SUBCASE("that is cancelled") {
    timers->set_after("a", 1ms, [held = destroying()] {});
    CHECK(timers->cancel("a") == cancel_result::cancelled);
  }
  SUBCASE("that is replaced") {
    timers->set_after("a", 1ms, [held = destroying()] {});
    timers->set_after("a", 1ms, notes.noting("ran"));
  }
  if (timers) timers->set_after("b", 1h, notes.noting("ran"));
  time.advance(1ms);
  CHECK_FALSE(timers.has_value());
  time.advance(2h);
  CHECK(notes.take() == "destroyed");
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("tasks of keys that stop() hands back can be run by hand, even when everything else is gone") {
  std::vector<rondo::unfired> list;
  journal ran;
  const auto token = std::make_shared<int>(0);
  {
    manual_timer time;
    by_name timers(time);
    timers.set_after("a", 1ms, [&, token] { ran.add("a"); });
    timers.set("b", every(2ms), [&, token] { ran.add("b"); });
    timers.set_after("c", 3ms, [&, token] { ran.add("c"); });
    timers.set_after("c", 4ms, [&, token] { ran.add("C"); });
    list = time.stop();
    REQUIRE(list.size() == 3);
    CHECK(timers.size() == 0);
    CHECK_FALSE(timers.contains("a"));
    CHECK_FALSE(timers.reschedule_after("a", 1ms));
    CHECK(timers.cancel("a") == cancel_result::gone);
    CHECK(timers.cancel("c") == cancel_result::gone);
    CHECK_THROWS_AS(timers.set_after("b", 1ms, doing_nothing()), stopped_error);
    CHECK_THROWS_AS(timers.try_set_after("b", 1ms, doing_nothing()), stopped_error);
    list[0].work();
    list.erase(list.begin());
    CHECK(ran.take() == "a");
  }
  for (auto& u : list) u.work();
  CHECK(ran.take() == "b C");
  CHECK(token.use_count() == 3);
  list.clear();
  CHECK(token.use_count() == 1);
}

TEST_CASE("drain() lets the keys' one-shots fire") {
  manual_timer time;
  by_name timers(time);
  journal ran;
  timers.set_after("a", 1ms, ran.noting("once"));
  timers.set("b", every(1ms), ran.noting("often"));
  CHECK(time.drain(1s));
  CHECK(ran.take() == "once");
  CHECK(timers.size() == 0);
}

TEST_CASE("if an executor drops a job, its key no longer has a timer") {
  manual_timer time(options{.run_on = [](const job&) {}});
  by_name timers(time);
  const auto token = std::make_shared<int>(0);
  timers.set_after("a", 1ms, [token] {});
  time.advance(1ms);
  CHECK(token.use_count() == 1);
  CHECK_FALSE(timers.contains("a"));
  CHECK(timers.cancel("a") == cancel_result::gone);
  CHECK(time.stats().rejected == 1);
}

TEST_CASE("a key's timer can be replaced, moved and cancelled until its job on an executor has started") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  by_name timers(time);
  journal ran;
  timers.set_after("a", 1ms, ran.noting("old"));
  timers.set_after("b", 1ms, ran.noting("b"));
  timers.set_after("c", 1ms, ran.noting("c"));
  time.advance(1ms);
  REQUIRE(jobs.size() == 3);
  CHECK(timers.contains("a"));
  timers.set_after("a", 1ms, ran.noting("new"));
  CHECK(timers.reschedule_after("b", 1ms));
  CHECK(timers.cancel("c") == cancel_result::cancelled);
  for (job& j : jobs) j();
  CHECK(ran.take() == "");
  jobs.clear();
  time.advance(1ms);
  for (job& j : jobs) j();
  CHECK(ran.take() == "new b");
}

TEST_CASE("keyed timers may outlive their scheduler, and then behave as after stop()") {
  std::optional<manual_timer> time(std::in_place);
  by_name timers(*time);
  const auto token = std::make_shared<int>(0);
  timers.set_after("a", 1ms, [token] { FAIL("it ran"); });
  timers.set("b", every(1ms), [token] { FAIL("it ran"); });
  time.reset();
  CHECK(token.use_count() == 1);
  CHECK(timers.size() == 0);
  CHECK_FALSE(timers.contains("a"));
  CHECK(timers.cancel("a") == cancel_result::gone);
  CHECK_FALSE(timers.reschedule_after("a", 1ms));
  CHECK_THROWS_AS(timers.set_after("a", 1ms, [token] {}), stopped_error);
  CHECK_THROWS_AS(timers.try_set_after("b", 1ms, [token] {}), stopped_error);
  CHECK(token.use_count() == 1);
  timers.clear();
}

/// A key that counts its live objects.
struct counted_key {
  static inline int alive = 0;
  explicit counted_key(int n) : number(n) { ++alive; }
  counted_key(const counted_key& k) : number(k.number) { ++alive; }
  ~counted_key() { --alive; }
  friend bool operator==(const counted_key& a, const counted_key& b) { return a.number == b.number; }
  int number;
};
struct counted_key_hash {
  static inline int alive = 0;  // one in each object that has keys
  counted_key_hash() { ++alive; }
  ~counted_key_hash() { --alive; }
  counted_key_hash(const counted_key_hash&) = delete;
  counted_key_hash& operator=(const counted_key_hash&) = delete;
  std::size_t operator()(const counted_key& k) const { return static_cast<std::size_t>(k.number % 7); }
};

TEST_CASE("keyed timers keep nothing of a key that has no timer") {
  manual_timer time(options{.run_on = [n = 0](job j) mutable {
    if (++n % 5 != 0) j();
  }});
  {
    keyed_timers<counted_key, counted_key_hash> timers(time);
    for (int i = 0; i != 1000; ++i) {
      const counted_key key(i);
      timers.set_after(key, 1ms, [&timers, i] {
        if (i % 3 == 0) timers.set_after(counted_key(i), 1ms, [] {});
      });
      if (i % 2 == 0) timers.set_after(key, 1ms, [] {});
      if (i % 7 == 0) timers.cancel(key);
      if (i % 11 == 0) timers.set(key, every(1ms).times(2), [] {});
      static_cast<void>(timers.contains(counted_key(-1)));
      timers.cancel(counted_key(-1));
      timers.reschedule_after(counted_key(-1), 1ms);
      CHECK_THROWS_AS(timers.set_after(counted_key(-1), 1ms, rondo::task()), std::invalid_argument);
      time.advance(i % 4 * 1ms);
    }
    time.advance(10ms);
    CHECK(counted_key::alive == 0);
    timers.set_after(counted_key(1), 1ms, [] {});
    CHECK(counted_key::alive == 1);
    CHECK(counted_key_hash::alive == 1);
  }
  CHECK(counted_key::alive == 0);
  CHECK(counted_key_hash::alive == 0);
}

}  // namespace on_top_keyed_timers_ends
