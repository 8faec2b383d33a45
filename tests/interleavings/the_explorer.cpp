// The explorer of interleavings itself: what it finds, and how many schedules it runs.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "interleavings/watched.hpp"
#include "scheduler/seeds.hpp"
#include "scheduler/virtual_time.hpp"

namespace interleavings_the_explorer {

using namespace rondo::test;

bool says(const exploration& e, const char* what) { return e.failure.find(what) != std::string::npos; }

TEST_CASE("threads that share nothing have one schedule") {
  const auto e = explore([] {
    struct state {
      explored_atomic<int> a, b;
    };
    auto s = std::make_shared<state>();
    return scenario{{{"a",
                      [s] {
                        s->a.store(1);
                        s->a.store(2);
                      }},
                     {"b",
                      [s] {
                        s->b.store(1);
                        s->b.store(2);
                      }}},
                    [s] { expect(s->a.load() == 2 && s->b.load() == 2, "both have run to their end"); }};
  });
  CHECK(e.failure == "");
  CHECK(e.schedules == 1);
  CHECK(e.repeated == 0);
}

/// Each thread writes `writes` times to a shared object.
exploration writers(std::size_t threads, int writes, std::optional<std::size_t> preemptions = {}) {
  return explore(
      [=] {
        auto shared = std::make_shared<explored_atomic<int>>();
        scenario s;
        for (std::size_t i = 0; i != threads; ++i)
          s.threads.push_back({"writer", [=] {
                                 for (int w = 0; w != writes; ++w) shared->store(w);
                               }});
        return s;
      },
      preemptions);
}

TEST_CASE("steps that depend on each other are tried in every order") {
  CHECK(writers(2, 1).schedules == 2);
  CHECK(writers(2, 3).schedules == 20);     // 6! / (3! 3!)
  CHECK(writers(3, 2).schedules == 90);     // 6! / (2! 2! 2!)
  CHECK(writers(3, 3).schedules == 1'680);  // 9! / (3! 3! 3!)
}

TEST_CASE("a bound counts how often a thread that could continue has to wait") {
  CHECK(writers(2, 3, 0).schedules == 2);
  CHECK(writers(2, 3, 1).schedules == 6);   // either first, in one piece or preempted after 1 or 2 writes
  CHECK(writers(2, 3, 5).schedules == 20);  // more than any of them needs
}

TEST_CASE("a lost update is found") {
  const auto e = explore([] {
    auto counter = std::make_shared<explored_atomic<int>>();
    const auto add = [=] { counter->store(counter->load() + 1); };
    return scenario{{{"a", add}, {"b", add}}, [=] { expect(counter->load() == 2, "both were counted"); }};
  });
  CHECK(says(e, "both were counted"));
  CHECK(says(e, "a: load atomic 1 = 0\n"));
}

TEST_CASE("an update under a lock is not lost") {
  const auto e = explore([] {
    struct state {
      explored_mutex mutex;
      int counter = 0;
    };
    auto s = std::make_shared<state>();
    const auto add = [=] {
      const std::lock_guard hold(s->mutex);
      ++s->counter;
    };
    return scenario{{{"a", add}, {"b", add}, {"c", add}},
                    [=] { expect(s->counter == 3, "all were counted"); }};
  });
  CHECK(e.failure == "");
  CHECK(e.schedules == 6);
}

/// Threads a and b lock two mutexes, in the same or in opposite orders.
exploration two_mutexes(bool same_order) {
  return explore([=] {
    struct state {
      explored_mutex first, second;
    };
    auto s = std::make_shared<state>();
    const auto lock_both = [](explored_mutex& outer, explored_mutex& inner) {
      const std::lock_guard hold(outer);
      const std::lock_guard hold_inner(inner);
    };
    return scenario{{{"a", [=] { lock_both(s->first, s->second); }}, {"b", [=] {
                                                                        if (same_order)
                                                                          lock_both(s->first, s->second);
                                                                        else
                                                                          lock_both(s->second, s->first);
                                                                      }}}};
  });
}

TEST_CASE("taking two locks in opposite orders is found to be a deadlock") {
  CHECK(two_mutexes(true).failure == "");
  const auto e = two_mutexes(false);
  CHECK(says(e, "nobody can go on"));
  CHECK(says(e, "never: a: lock mutex 2\n"));
  CHECK(says(e, "never: b: lock mutex 1\n"));
}

/// One thread waits for a notification by another, with a predicate or only for the call.
exploration message(bool with_predicate, std::optional<rondo::time_point> until = {}) {
  return explore([=] {
    struct state {
      explored_mutex mutex;
      explored_condition told;
      bool said = false;
    };
    auto s = std::make_shared<state>();
    const auto listen = [=] {
      std::unique_lock hold(s->mutex);
      if (with_predicate && s->said) return;
      if (until)
        s->told.wait_until(hold, *until);
      else
        s->told.wait(hold);
    };
    const auto say = [=] {
      {
        const std::lock_guard hold(s->mutex);
        s->said = true;
      }
      s->told.notify_one();
    };
    return scenario{{{"listener", listen}, {"speaker", say}},
                    [=] { expect(virtual_time::now() == at(0s), "it was not too late"); }};
  });
}

TEST_CASE("a lost wake-up is found") {
  CHECK(message(true).failure == "");
  const auto e = message(false);
  CHECK(says(e, "nobody can go on"));
  CHECK(says(e, "never: listener: wake, lock mutex 1\n"));
}

TEST_CASE("if a thread waits until a moment, a lost wake-up makes time pass") {
  CHECK(message(true, at(5s)).failure == "");
  CHECK(says(message(false, at(5s)), "it was not too late"));
}

TEST_CASE("the time that a thread waits for comes before, after and without a call") {
  struct outcomes {
    int in_time = 0, too_late = 0;
  };
  const auto seen = std::make_shared<outcomes>();
  const auto e = explore([=] {
    struct state {
      explored_mutex mutex;
      explored_condition called;
    };
    auto s = std::make_shared<state>();
    const auto wait = [=] {
      std::unique_lock hold(s->mutex);
      const bool in_time = s->called.wait_until(hold, at(5s)) == std::cv_status::no_timeout;
      ++(in_time ? seen->in_time : seen->too_late);
      expect(in_time || virtual_time::now() >= at(5s), "time had come");
    };
    return scenario{{{"waits", wait},
                     {"calls", [=] { s->called.notify_one(); }},
                     {"time", [] { virtual_time::move_to(at(6s)); }}}};
  });
  CHECK(e.failure == "");
  CHECK(seen->in_time > 0);
  CHECK(seen->too_late > 0);
}

/// One thread stores, and another one reads after it has waited.
exploration reading_later(bool also_plain_data) {
  return explore(
      [=] {
        struct state {
          int plain = 0;
          explored_atomic<int> stored;
          explored_mutex mutex;
          explored_condition never;
        };
        const auto s = std::make_shared<state>();
        const auto store = [s] {
          s->plain = 1;
          s->stored.store(1, std::memory_order_release);
        };
        const auto read = [=] {
          std::unique_lock hold(s->mutex);
          s->never.wait_until(hold, at(1ms));
          expect(s->stored.load(std::memory_order_relaxed) == 1, "the last value is there");
          if (also_plain_data) expect(s->plain <= 1, "it is a number");
        };
        return scenario{{{"stores", store}, {"reads", read}}};
      },
      {}, 2);
}

TEST_CASE("a thread that has waited for a moment sees what was stored before, but that is no order") {
  CHECK(reading_later(false).failure == "");
  if (plain_data_is_watched) CHECK(says(reading_later(true), "a data race"));
}

TEST_CASE("an endless schedule is found") {
  const auto e = explore([] {
    auto flag = std::make_shared<explored_atomic<bool>>();
    const auto spin = [=] {
      while (!flag->load()) {
      }
    };
    return scenario{{{"spins", spin}, {"sets", [=] { flag->store(true); }}}};
  });
  CHECK(says(e, "it does not come to an end"));
}

TEST_CASE("threads that behave differently each time are found") {
  const auto times = std::make_shared<int>(0);
  const auto e = explore([=] {
    auto shared = std::make_shared<explored_atomic<int>>();
    const auto capricious = [=] {
      for (int i = (*times)++ % 2; i != 2; ++i) shared->store(1);
    };
    return scenario{{{"a", capricious}, {"b", [=] { shared->store(2); }}}};
  });
  CHECK(says(e, "do not do the same"));
}

// A thread that waits for a lock might have come before its holder, even if this schedule does not get that far.

TEST_CASE("a thread that waits for a lock in a schedule that is cut off is tried before the holder") {
  struct state {
    explored_atomic<int> stored;
    explored_mutex inner, outer;
    explored_condition told;
    std::string order;
  };
  std::set<std::string> orders;
  const auto e = explore([&] {
    auto s = std::make_shared<state>();
    const auto load_inside = [=] {
      const std::lock_guard hold(s->inner);
      s->order += s->stored.load() != 0 ? "late load, " : "early load, ";
    };
    const auto wait_and_store = [=] {
      {
        std::unique_lock hold(s->outer);
        if (s->told.wait_until(hold, at(1s)) == std::cv_status::no_timeout) s->order += "told, ";
      }
      s->stored.store(1);
    };
    const auto tell_and_lock_both = [=] {
      s->told.notify_all();
      const std::lock_guard hold(s->outer);
      const std::lock_guard hold_too(s->inner);
      s->order += "both, ";
    };
    return scenario{{{"loads", load_inside}, {"waits", wait_and_store}, {"tells", tell_and_lock_both}},
                    [s, &orders] { orders.insert(s->order); }};
  });
  CHECK(e.failure == "");
  CHECK(orders.contains("told, late load, both, "));
}

TEST_CASE("a thread that waits for a lock while time passes is tried before the holder") {
  struct state {
    explored_mutex mutex, own;
    explored_condition never;
    std::string order;
  };
  std::set<std::string> orders;
  const auto e = explore([&] {
    auto s = std::make_shared<state>();
    const auto sleep_inside = [=] {
      const std::lock_guard hold(s->mutex);
      std::unique_lock hold_too(s->own);
      s->never.wait_until(hold_too, at(1s));
      s->order += 'a';
    };
    const auto go_inside = [=] {
      const std::lock_guard hold(s->mutex);
      s->order += 'b';
    };
    return scenario{{{"a", sleep_inside}, {"b", go_inside}}, [s, &orders] { orders.insert(s->order); }};
  });
  CHECK(e.failure == "");
  CHECK(orders == std::set<std::string>{"ab", "ba"});
}

/// Three threads, each of which does a few random things with two atomics, two locks and a condition.
class program {
 public:
  explicit program(std::uint64_t seed) {
    dice d(seed);
    for (auto& steps : threads_)
      for (std::uint64_t left = 1 + d.roll(2); left != 0; --left)
        steps.push_back({static_cast<kind>(d.roll(6)), d.roll(2), d.roll(3)});
  }

  /// The values of the atomics, and what the threads have read, at the end of each schedule.
  std::set<std::string> outcomes(std::optional<std::size_t> preemptions, std::size_t stale) const {
    std::set<std::string> all;
    const exploration e = explore(
        [&] {
          auto s = std::make_shared<state>();
          scenario what;
          for (std::size_t i = 0; i != threads_.size(); ++i)
            what.threads.push_back({"thread", [this, s, i] { run(*s, i); }});
          what.check = [&all, s] { all.insert(s->text()); };
          return what;
        },
        preemptions, stale);
    CHECK(e.failure == "");
    return all;
  }

 private:
  enum class kind { load, store, locked_load, both_locks, wait, notify_or_move_time };
  struct step {
    kind what;
    std::size_t on;
    std::size_t strength;
  };
  struct state {
    std::array<explored_atomic<int>, 2> atomics;
    std::array<explored_mutex, 2> locks;
    explored_condition told;
    std::array<int, 2> locked{};
    std::array<std::string, 3> read;

    std::string text() const {
      std::string all;
      for (const auto& a : atomics) all += std::to_string(a.load()) + ' ';
      for (const int l : locked) all += std::to_string(l) + ' ';
      for (const auto& r : read) all += r + "; ";
      return all;
    }
  };

  void run(state& s, std::size_t thread) const {
    int number = static_cast<int>(thread) * 10;
    for (const step& next : threads_[thread]) {
      ++number;
      std::string& read = s.read[thread];
      if (next.what == kind::load)
        read += std::to_string(s.atomics[next.on].load(loads[next.strength])) + ' ';
      if (next.what == kind::store) s.atomics[next.on].store(number, stores[next.strength]);
      if (next.what == kind::locked_load) {
        const std::lock_guard hold(s.locks[next.on]);
        read += std::to_string(s.atomics[0].load()) + ' ';
        s.locked[next.on] = number;
      }
      if (next.what == kind::both_locks) {
        const std::lock_guard hold(s.locks[0]);
        const std::lock_guard hold_too(s.locks[1]);
        read += std::to_string(std::exchange(s.locked[0], number)) + ' ';
        s.locked[1] = number;
      }
      if (next.what == kind::wait) {
        std::unique_lock hold(s.locks[0]);
        const bool told = s.told.wait_until(hold, at(1s)) == std::cv_status::no_timeout;
        read += (told ? "told " : "not told ") + std::to_string(std::exchange(s.locked[0], number)) + ' ';
      }
      if (next.what == kind::notify_or_move_time && next.on == 0) s.told.notify_all();
      if (next.what == kind::notify_or_move_time && next.on == 1) virtual_time::move_to(at(1s));
    }
  }

  using order = std::memory_order;
  static constexpr std::array loads{order::relaxed, order::acquire, order::seq_cst};
  static constexpr std::array stores{order::relaxed, order::release, order::seq_cst};

  std::array<std::vector<step>, 3> threads_;
};

/// Checks that the reduction leaves out no outcome, by comparing with the outcomes of all schedules.
TEST_CASE("the schedules that are left out have no new outcome") {
  for (const std::uint64_t seed : seeds("random threads", 100)) {
    CAPTURE(seed);
    const program p(seed);
    for (const std::size_t stale : {0U, 1U, 10U}) CHECK(p.outcomes({}, stale) == p.outcomes(1'000, stale));
  }
}

}  // namespace interleavings_the_explorer
