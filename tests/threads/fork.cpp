// A child of fork() has a copy of the timer, but no driver: calls there are refused, and none waits for threads that
// exist only in the parent.
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/polled_timer.hpp>
#include <rondo/timer_scope.hpp>

#include "drivers/fork_watch.hpp"
#include "threads/child.hpp"
#include "threads/patience.hpp"

namespace threads_fork {

using namespace rondo;
using namespace rondo::test;

bool refuses(rondo::scheduler& s) {
  try {
    s.schedule_after(1ms, [] {});
  } catch (const rondo::stopped_error& e) {
    return std::string(e.what()).find("fork") != std::string::npos;
  }
  return false;
}

std::string drawing_of(const rondo::scheduler& s) {
  std::ostringstream out;
  s.dump(out);
  return out.str();
}

TEST_CASE("in a child every call reports that there is no driver, and none hangs") {
  const auto token = std::make_shared<int>(0);
  gate running, may_end;
  std::optional<timer> t(std::in_place);
  t->schedule_after(0s, [&] {  // so that the driver is busy when the process forks
    running.open();
    CHECK(may_end.wait());
  });
  const auto id = t->schedule_after(1h, [token] {});
  const auto often = t->schedule_every(1h, [token] {});
  REQUIRE(running.wait());
  CHECK(in_child([&] {
          const bool refused = refuses(*t);
          const bool ids_are_gone = t->cancel(id) == cancel_result::gone &&
                                    t->cancel_and_wait(often) == cancel_result::gone && !t->pending(id) &&
                                    !t->reschedule_after(id, 1ms) && !t->reschedule_at(often, t->now());
          const bool is_empty = t->pending() == 0 && !t->next_due() && t->stats().scheduled == 0;
          const bool is_stopped = t->stop().empty() && t->drain(1h);
          const bool is_drawn = drawing_of(*t).find("fork") != std::string::npos;
          t.reset();
          return first_wrong({refused, ids_are_gone, is_empty, is_stopped, is_drawn, token.use_count() == 3});
        }) == "");
  may_end.open();
  CHECK(t->pending(id));
  CHECK(t->cancel(id) == cancel_result::cancelled);
  gate ran;
  t->schedule_after(0s, [&] { ran.open(); });
  CHECK(ran.wait());
  t.reset();
  CHECK(token.use_count() == 1);
}

TEST_CASE("a child ends, whatever other threads were doing when the process forked") {
  timer t;
  std::atomic<bool> over{false};
  std::vector<std::thread> users;
  for (int i = 0; i != 2; ++i) {
    users.emplace_back([&] {
      while (!over) {
        const auto id = t.schedule_after(20us, [] {});
        // A starved driver fires fewer than these threads could set.
        if (t.stats().pending < 1'000) t.schedule_after(1ms, [] {});
        t.cancel(id);
      }
    });
  }
  const auto id = t.schedule_after(1h, [] {});
  std::string wrong;
  for (int i = 0; i != 200 && wrong.empty(); ++i) {
    wrong = in_child([&] {
      const bool right = refuses(t) && t.cancel(id) == cancel_result::gone && t.pending() == 0 &&
                         t.stats().scheduled == 0 && t.stop().empty() && !t.next_due();
      std::destroy_at(&t);
      return right ? 0 : 1;
    });
  }
  over = true;
  for (std::thread& u : users) u.join();
  CHECK(wrong == "");
}

TEST_CASE("jobs that a child finds in a queue do nothing in the child, and run in the parent") {
  std::vector<rondo::job> jobs;
  gate handed, ran;
  rondo::timer_id id;
  std::optional<timer> t(std::in_place, rondo::options{.run_on = [&](rondo::job j) {
                           jobs.push_back(std::move(j));
                           handed.open();
                         }});
  for (int i = 0; i != 2; ++i) id = t->schedule_after(0s, [&] { ran.open(); });
  REQUIRE(handed.wait(2));
  std::atomic<bool> over{false};
  std::thread asks([&] {
    while (!over) static_cast<void>(t->pending(id));
  });
  std::string wrong;
  for (int i = 0; i != 100 && wrong.empty(); ++i) {
    wrong = in_child([&] {
      t.reset();
      jobs.back()();
      jobs.clear();
      return first_wrong({ran.count() == 0});
    });
  }
  over = true;
  asks.join();
  CHECK(wrong == "");
  for (rondo::job& j : jobs) j();
  CHECK(ran.count() == 2);
}

TEST_CASE("a scope and keyed timers can be destroyed in a child") {
  timer t;
  std::optional<rondo::timer_scope> scope(t);
  std::optional<rondo::keyed_timers<int>> keyed(t);
  scope->schedule_every(1h, [] {});
  keyed->set_after(1, 1h, [] {});
  CHECK(in_child([&] {
          scope.reset();
          keyed.reset();
          std::destroy_at(&t);
          return 0;
        }) == "");
  CHECK(keyed->contains(1));
  CHECK(t.pending() == 2);
}

/// The number of the first call that does not say that key 1 has no timer, or 0.
template <class Keyed>
int first_wrong_of_dead(Keyed& keyed) {
  bool is_refused = false;
  try {
    keyed.try_set_after(1, 1ms, [] {});
  } catch (const rondo::stopped_error&) {
    is_refused = true;
  }
  keyed.clear();
  return first_wrong({is_refused, !keyed.contains(1), !keyed.due(1), keyed.size() == 0,
                      !keyed.reschedule_after(1, 1ms), keyed.cancel(1) == cancel_result::gone,
                      keyed.cancel_and_wait(1) == cancel_result::gone});
}

TEST_CASE("in a child no key has a timer, and no callable is destroyed") {
  const auto token = std::make_shared<int>(0);
  timer t;
  rondo::keyed_timers<int> keyed(t);
  keyed.set_after(1, 1h, [token] {});
  CHECK(in_child([&] {
          const int wrong = first_wrong_of_dead(keyed);
          return wrong != 0 || token.use_count() == 2 ? wrong : 50;
        }) == "");
  CHECK(keyed.due(1).has_value());
  CHECK(keyed.reschedule_after(1, 2h));
  CHECK(keyed.size() == 1);
  CHECK(keyed.cancel(1) == cancel_result::cancelled);
  CHECK(token.use_count() == 1);
}

/// Runs under the lock of the keyed timers.
struct hash_of_zero_waits {
  static inline gate *begun = nullptr, *may_end = nullptr;
  std::size_t operator()(int key) const {
    if (key == 0) {
      begun->open();
      CHECK(may_end->wait());
    }
    return 0;
  }
};

TEST_CASE("in a child no call for a key hangs, although a thread of the parent was inside one") {
  gate begun, may_end;
  hash_of_zero_waits::begun = &begun;
  hash_of_zero_waits::may_end = &may_end;
  timer t;
  std::optional<rondo::keyed_timers<int, hash_of_zero_waits>> keyed(t);
  keyed->set_after(1, 1h, [] {});
  std::thread asks([&] { CHECK_FALSE(keyed->contains(0)); });
  CHECK(begun.wait());
  CHECK(in_child([&] {
          const int wrong = first_wrong_of_dead(*keyed);
          keyed.reset();
          return wrong;
        }) == "");
  may_end.open();
  asks.join();
  CHECK(keyed->size() == 1);
}

TEST_CASE("the timers of a polled timer are pending in parent and child, which then go separate ways") {
  rondo::polled_timer timer;
  int runs = 0;
  const auto due = timer.schedule_after(-1s, [&] { ++runs; });
  const auto hour = timer.schedule_after(1h, [&] { ++runs; });
  const auto often = timer.schedule_every(1h, [&] { ++runs; });
  CHECK(in_child([&] {
          const bool known =
              timer.pending(due) && timer.pending(hour) && timer.pending(often) && timer.pending() == 3;
          const bool runs_here = timer.poll() == 1 && runs == 1;
          const bool cancels = timer.cancel(hour) == cancel_result::cancelled;
          const bool moves = timer.reschedule_after(often, -1s) && timer.poll() == 1 && runs == 2;
          timer.schedule_after(0s, [&] { ++runs; });
          const bool goes_on = timer.poll() == 1 && timer.stats().fired == 3;
          return first_wrong({known, runs_here, cancels, moves, goes_on, timer.stop().size() == 1});
        }) == "");
  CHECK(runs == 0);
  CHECK(timer.pending() == 3);
  CHECK(timer.stats().fired == 0);
  CHECK(timer.poll() == 1);
  CHECK(timer.pending(hour));
  CHECK(timer.pending(often));
  CHECK(in_child([&] { return first_wrong({timer.stop().size() == 2, timer.poll() == 0}); }) == "");
  CHECK(timer.stop().size() == 2);
}

TEST_CASE("a fork watch that has ended is not called, and the others are") {
  for (std::size_t ended = 0; ended != 3; ++ended) {
    CAPTURE(ended);
    std::array<int, 3> told{};
    std::array<std::optional<rondo::detail::fork_watch>, 3> watches;
    for (std::size_t i = 0; i != 3; ++i)
      watches[i].emplace([](void* who) noexcept { ++*static_cast<int*>(who); }, &told[i]);
    watches[ended].reset();
    std::array<int, 3> expected{1, 1, 1};
    expected[ended] = 0;
    REQUIRE(in_child([&] { return first_wrong({told == expected}); }) == "");
  }
}

TEST_CASE("a polled and a manual timer keep working in a child, independently of the parent") {
  rondo::polled_timer polled;
  rondo::manual_timer manual;
  int runs = 0;
  polled.schedule_after(-1s, [&] { ++runs; });
  manual.schedule_after(1s, [&] { ++runs; });
  CHECK(in_child([&] {
          return first_wrong({polled.poll() == 1, manual.advance(1s) == 1, runs == 2});
        }) == "");
  CHECK(runs == 0);
  CHECK(polled.poll() == 1);
  CHECK(manual.advance(1s) == 1);
}

#if !defined(RONDO_TEST_CHILD_HAS_NO_THREADS)
TEST_CASE("a timer whose driver had ended before the fork can be destroyed in a child") {
  struct opens_at_thread_end {
    gate* what = nullptr;
    ~opens_at_thread_end() {
      if (what != nullptr) what->open();
    }
  };
  gate ran, driver_ended;
  std::optional<timer> t(std::in_place);
  t->schedule_after(0s, [&] {
    thread_local opens_at_thread_end opens;
    opens.what = &driver_ended;
    ran.open();
  });
  REQUIRE(ran.wait());
  t->stop();
  REQUIRE(driver_ended.wait());  // and the thread has released its part of the timer
  CHECK(in_child([&] {
          t.reset();
          return 0;
        }) == "");
}

TEST_CASE("a child may create timers, and so may its own child") {
  timer t;
  const auto has_its_own = [](auto&& then) {
    gate ran;
    timer own;
    own.schedule_after(1ms, [&] { ran.open(); });
    return ran.wait() ? then(own) : 1;
  };
  CHECK(in_child([&] {
          return has_its_own([&](timer& own) {
            const std::string wrong = in_child([&] {
              if (!refuses(t) || !refuses(own)) return 2;
              std::destroy_at(&own);
              return has_its_own([](timer&) { return 0; });
            });
            return wrong.empty() ? 0 : 3;
          });
        }) == "");
}
#endif

}  // namespace threads_fork
