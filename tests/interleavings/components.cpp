// The small components that threads share.
#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "scheduler/checked.hpp"
#include "scheduler/handoff.hpp"
#include "scheduler/ready_list.hpp"
#include "scheduler/record_pool.hpp"
#include "sync/number_set.hpp"
#include "sync/short_lock.hpp"
#include "sync/wait_point.hpp"

namespace interleavings_components {

using namespace rondo::test;
using rondo::detail::counters;
using rondo::detail::record;
using rondo::detail::record_pool;

/// Waits until another check can succeed.
struct until_it_changes {
  void wait(const explored_atomic<bool>& held) { held.await_other_than(true); }
};

std::function<scenario()> counting_inside(std::size_t threads) {
  return [=] {
    struct state {
      rondo::detail::spinning_lock<explored_atomic<bool>, until_it_changes> lock;
      explored_atomic<int> inside;
      int count = 0;
    };
    const auto s = std::make_shared<state>();
    scenario what;
    for (std::size_t i = 0; i != threads; ++i)
      what.threads.push_back({"user", [s] {
                                const std::lock_guard hold(s->lock);
                                expect(s->inside.fetch_add(1, std::memory_order_relaxed) == 0,
                                       "one thread at a time is inside");
                                ++s->count;
                                s->inside.fetch_sub(1, std::memory_order_relaxed);
                              }});
    what.check = [s, threads] {
      expect(s->count == static_cast<int>(threads), "all threads have been inside");
    };
    return what;
  };
}

TEST_CASE("short_lock lets one thread in at a time, and all in the end") {
  check_small(counting_inside(2));
  check_small(counting_inside(3));
}

TEST_CASE("a number belongs to one thread at a time, and what its last owner did is known to the next one") {
  check_small([] {
    struct state {
      rondo::detail::number_set<explored_atomic<std::uint32_t>> numbers;
      std::array<int, 32> used{};
    };
    const auto s = std::make_shared<state>();
    const auto use = [s] {
      const std::size_t own = s->numbers.take();
      ++s->used[own];
      s->numbers.give_back(own);
    };
    return scenario{{{"user", use}, {"user", use}}, [s] {
                      expect(s->used[0] + s->used[1] == 2, "each thread has used its number");
                      expect(s->numbers.take() == 0, "all are free again");
                    }};
  });
}

TEST_CASE("a thread that waits notices what another one has made true") {
  check_small([] {
    struct state {
      rondo::detail::wait_point waiting;
      explored_atomic<bool> is_true;
    };
    const auto s = std::make_shared<state>();
    const auto wait = [s] {
      s->waiting.wait_until([&] { return s->is_true.load(std::memory_order_relaxed); });
    };
    const auto make_true = [s] {
      s->is_true.store(true, std::memory_order_relaxed);
      s->waiting.wake();
    };
    return scenario{{{"waits", wait}, {"makes it true", make_true}}};
  });
}

/// A pool with 192 free records: 128 in the shared shard, and 64 in the depot. The first two threads have a shard each;
/// the others, and the thread that prepares, share one.
struct pool_in_use {
  record_pool pool;
  std::vector<record*> kept;

  pool_in_use() {
    std::vector<record*> taken;
    for (int i = 0; i != 192; ++i) taken.push_back(&pool.take());
    for (record* const r : taken) give_back(*r);
  }
  void give_back(record& r) {
    ++record_pool::own_shard(pool).here.counts.ended;
    pool.give_back(r);
  }
  void check() {
    const std::set<record*> different(kept.begin(), kept.end());
    expect(different.size() == kept.size(), "a record is given to one thread only");
    expect(pool.total().pending() == kept.size(), "all are counted");
    std::size_t records = 0;
    pool.for_each([&](const record& r) { expect(r.slot == records++, "each slot has a record"); });
    expect(records == 192 || records == 256, "records stay, and one batch is new at most");
    expect(pool.free() == records - kept.size(), "no record is lost");
  }
};

TEST_CASE("records go through the depot from thread to thread, and each goes to one thread") {
  const rondo::detail::sync::with_own_shards here;
  check_small([] {
    const auto p = std::make_shared<pool_in_use>();
    const auto take = [p] {
      record& taken = p->pool.take();
      const unwatched its_own;
      p->kept.push_back(&taken);
    };
    const auto give_back = [p] { p->give_back(p->pool.take()); };
    return scenario{{{"takes", take}, {"takes too", take}, {"gives back", give_back}}, [p] { p->check(); }};
  });
}

TEST_CASE("threads that share a shard lose no records") {
  check_small([] {
    struct state {
      record_pool pool;  // with one shard
      std::size_t count_after_taking_all() {
        for (std::size_t left = pool.free(); left != 0; --left) pool.take();
        return pool.slots();
      }
    };
    const auto s = std::make_shared<state>();
    const auto take = [s] { s->pool.take(); };
    return scenario{{{"takes", take}, {"takes too", take}}, [s] {
                      const std::size_t slots = s->pool.slots();
                      expect(s->count_after_taking_all() == slots, "all free records can be taken");
                    }};
  });
}

TEST_CASE("a slot that another thread has not handed over is unknown, or has a record") {
  check_small([] {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    struct state {
      record_pool pool;
      explored_atomic<std::uint32_t> slot{none};
    };
    const auto s = std::make_shared<state>();
    const auto take = [s] { s->slot.store(s->pool.take().slot, std::memory_order_relaxed); };
    const auto find = [s] {
      const std::uint32_t slot = s->slot.load(std::memory_order_relaxed);
      const record* const found = slot != none ? s->pool.find(slot) : nullptr;
      expect(found == nullptr || found->slot == slot, "it is that of the slot");
    };
    return scenario{{{"takes", take}, {"finds", find}}};
  });
}

TEST_CASE(
    "the destruction of a job is reported once: by its destroyer, or at the end of the call that it was "
    "given "
    "to") {
  check_small([] {
    struct state {
      rondo::detail::executor_call call;
      bool end_was_told = false, dropped_inside = false, is_destroyed = false;
    };
    const auto s = std::make_shared<state>();
    s->call.begin(7);
    const auto drive = [s] {
      s->end_was_told = s->call.end();
      expect(!s->end_was_told || s->is_destroyed, "what the destroyer did before is known");
      s->call.begin(8);
      expect(!s->call.end(), "the next call has nothing to do with it");
    };
    const auto destroy = [s] {
      s->is_destroyed = true;
      s->dropped_inside = s->call.note_drop(7);
    };
    return scenario{{{"driver", drive}, {"destroys the job", destroy}},
                    [s] { expect(s->end_was_told == s->dropped_inside, "one of the two tells"); }};
  });
}

/// The list of a pass with one entry, whose timer may have been cancelled. The driver adds another one and pops both.
struct list_in_use {
  rondo::detail::ready_list list;
  record first{0}, second{1};
  explored_atomic<int> popping;

  explicit list_in_use(bool first_is_cancelled) {
    list.make_room();
    list.push(first, 1);
    if (first_is_cancelled) first.invalidate_wait();
  }
  void drive() {
    expect(list.make_room() > 1, "there is room");
    list.push(second, 2);
    for (record* const r : {&first, &second}) {
      expect(list.front()->timer == r, "in order");
      popping.fetch_add(1, std::memory_order_relaxed);
      list.pop();
    }
  }
  bool is_popping() const { return popping.load(std::memory_order_relaxed) >= 1; }
  void check() { expect(!list.front(), "all have been popped"); }
};

void check_list(bool first_is_cancelled, const std::function<void(list_in_use&)>& read) {
  check_small([=] {
    const auto s = std::make_shared<list_in_use>(first_is_cancelled);
    return scenario{{{"driver", [s] { s->drive(); }}, {"reader", [s, read] { read(*s); }}},
                    [s] { s->check(); }};
  });
}

TEST_CASE("a timer is in the list of a pass until it is popped") {
  check_list(false, [](list_in_use& s) {
    int found = 0;
    s.list.for_each_current([&](const auto&, bool) { ++found; });
    expect(found >= 1 || s.is_popping(), "one is there, or is being popped");
  });
}

TEST_CASE("what is due next is in the list of a pass until it is popped") {
  check_list(false, [](list_in_use& s) {
    const auto due = s.list.next_due();
    expect(due == 1 || s.is_popping(), "the first is there, or is being popped");
  });
  check_list(true, [](list_in_use& s) {
    const auto due = s.list.next_due();
    expect(!due || due == 2, "a cancelled timer is not due");
  });
}

/// Each call changes two values, one after the other.
scenario reading_when_quiescent() {
  struct state {
    rondo::detail::call_checks calls;
    explored_atomic<int> first, second;
  };
  const auto s = std::make_shared<state>();
  scenario what;
  what.threads.push_back({"user", [s] {
                            s->calls.begin();
                            s->first.fetch_add(1, std::memory_order_relaxed);
                            s->second.fetch_add(1, std::memory_order_relaxed);
                            s->calls.end();
                          }});
  what.threads.push_back({"reader", [s] {
                            int difference = 0;
                            s->calls.begin();
                            const bool was_alone = s->calls.alone_during([&] {
                              difference = s->first.load(std::memory_order_relaxed) -
                                           s->second.load(std::memory_order_relaxed);
                            });
                            s->calls.end();
                            expect(!was_alone || difference == 0, "when quiescent, no call is half done");
                          }});
  what.check = [] {};
  return what;
}

TEST_CASE("a thread that was alone while it read has not seen a call half done") {
  check_small(reading_when_quiescent);
}

}  // namespace interleavings_components
