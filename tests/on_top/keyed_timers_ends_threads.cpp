// How keyed timers end, on real threads.
#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace on_top_keyed_timers_ends_threads {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("the destructor of keyed timers waits for tasks in progress, including replaced ones") {
  pool workers(3);
  timer t(options{.run_on = workers.executor()});
  gate begun, may_end;
  int first_ended = 0, second_ended = 0;  // not atomic: a thread that has waited for the run may read them
  std::optional<keyed_timers<int>> timers(t);
  timers->set_after(1, 0s, [&] {
    begun.open();
    may_end.wait();
    ++first_ended;
  });
  REQUIRE(begun.wait());
  timers->set_after(1, 0s, [&] {
    begun.open();
    may_end.wait();
    ++second_ended;
  });
  REQUIRE(begun.wait(2));
  timers->set_after(1, 1h, [] {});
  CHECK(timers->cancel(1) == cancel_result::cancelled);
  CHECK(timers->cancel(1) == cancel_result::running);
  std::thread other([&] { may_end.open(); });
  timers.reset();
  CHECK(first_ended == 1);
  CHECK(second_ended == 1);
  other.join();
}

TEST_CASE("a task in progress cannot set a key once destruction has begun") {
  for (int round = 0; round != 200; ++round) {
    timer t(options{.tick = 1us});
    std::atomic<int> set{0};
    gate begun;
    {
      keyed_timers<int> timers(t);
      timers.set_after(1, 0s, [&] {
        begun.open();
        try {
          for (;;) {
            timers.set_after(1, 0s, [&] { ++set; });
            timers.set_after(2, 1h, [&] { ++set; });
            spin(300);  // otherwise the destructor may find the lock taken every time
          }
        } catch (const stopped_error&) {
        }
      });
      REQUIRE(begun.wait());
    }
    CHECK(t.pending() == 0);
    const int before = set;
    t.stop();
    CHECK(set == before);
    CHECK(adds_up(t.stats()));
  }
}

TEST_CASE("keyed timers may be destroyed by one of their tasks while others run") {
  for (int round = 0; round != 50; ++round) {
    std::atomic<bool> gone{false};
    std::atomic<int> ran_after{0};
    gate destroyed;
    pool workers(3);
    timer t(options{.tick = 10us, .run_on = workers.executor()});
    auto timers = std::make_unique<keyed_timers<int>>(t);
    auto* const raw = timers.get();
    for (int i = 0; i != 20; ++i) raw->set(i, every(20us + i * 3us), [&] { ran_after += gone.load(); });
    raw->set_after(100, 200us, [&] {
      timers.reset();
      gone = true;
      destroyed.open();
    });
    REQUIRE(destroyed.wait());
    t.stop();
    CHECK(ran_after == 0);
    CHECK(adds_up(t.stats()));
  }
}

/// A key whose destructor runs user code.
struct telling_key {
  telling_key(int n, std::function<void()>& tell) : number(n), when_destroyed(&tell) {}
  telling_key(telling_key&& other) noexcept
      : number(other.number), when_destroyed(std::exchange(other.when_destroyed, nullptr)) {}
  telling_key& operator=(telling_key&&) = delete;
  ~telling_key() {
    if (when_destroyed != nullptr) (*when_destroyed)();
  }
  friend bool operator==(const telling_key& a, const telling_key& b) { return a.number == b.number; }
  int number;
  std::function<void()>* when_destroyed;
};
struct telling_key_hash {
  std::size_t operator()(const telling_key& k) const { return static_cast<std::size_t>(k.number); }
};

TEST_CASE("no lock is held while a key is destroyed") {
  gate asked, destroyed;
  std::thread other;
  std::atomic<bool> was_free{false};
  std::function<void()> ask;  // the key refers to it
  timer t;
  keyed_timers<telling_key, telling_key_hash> timers(t);
  ask = [&] {
    other = std::thread([&] {
      static_cast<void>(timers.size());
      asked.open();
    });
    was_free = asked.wait();
    destroyed.open();
  };
  timers.set_after(telling_key(1, ask), 0s, [] {});
  REQUIRE(destroyed.wait());
  other.join();
  CHECK(was_free);
}

TEST_CASE(
    "a key's destructor may destroy the keyed timers, and does not wait for the call that destroys the key") {
  rondo::manual_timer time;
  std::optional<keyed_timers<telling_key, telling_key_hash>> timers(time);
  bool destroys = false;
  int destroyed = 0;
  const auto token = std::make_shared<int>(0);
  std::function<void()> tell = [&] {
    if (!std::exchange(destroys, false)) return;
    ++destroyed;
    timers.reset();
  };
  std::function<void()> nothing = [] {};
  const telling_key same(1, nothing);
  timers->set_after(telling_key(2, nothing), 1h, [token] { FAIL("it ran"); });
  timers->set_after(telling_key(1, tell), 1ms, [token] {});
  destroys = true;
  SUBCASE("when its timer is cancelled") { CHECK(timers->cancel(same) == cancel_result::cancelled); }
  SUBCASE("when its task has run") { time.advance(1ms); }
  SUBCASE("when all timers are cancelled") { timers->clear(); }
  CHECK(destroyed == 1);
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("stop() while threads set keys neither loses nor leaks a timer") {
  for (int round = 0; round != 50; ++round) {
    std::vector<rondo::unfired> list;
    std::atomic<int> made{0}, ended{0};
    const auto ticket = [&] { return std::shared_ptr<void>(nullptr, [&](void*) { ++ended; }); };
    {
      timer t(options{.tick = 10us});
      keyed_timers<int> timers(t);
      gate under_way;
      std::vector<std::thread> users;
      for (int u = 0; u != 2; ++u)
        users.emplace_back([&, u] {
          for (int i = 0;; ++i) {
            if (i == 50) under_way.open();
            ++made;
            try {
              timers.set_after(u * 2 + i % 3, i % 100 * 10us, [held = ticket()] {});
            } catch (const stopped_error&) {
              return;
            }
          }
        });
      REQUIRE(under_way.wait(2));
      list = t.stop();
      for (std::thread& u : users) u.join();
      CHECK(timers.size() == 0);
    }
    CHECK(ended + static_cast<int>(list.size()) == made);
    for (auto& u : list) u.work();
    list.clear();
    CHECK(ended == made);
  }
}

}  // namespace on_top_keyed_timers_ends_threads
