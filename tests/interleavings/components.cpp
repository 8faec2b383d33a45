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
#include "scheduler/shards.hpp"
#include "scheduler/shown.hpp"
#include "sync/number_set.hpp"
#include "sync/short_lock.hpp"
#include "sync/wait_point.hpp"

namespace interleavings_components {

using namespace rondo::test;
using rondo::detail::record;
using rondo::detail::shards;

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

/// 192 records of the shard that the first thread has.
struct shards_in_use {
  shards all{2, 0};
  std::vector<record*> kept;

  shards_in_use() {
    for (int i = 0; i != 192; ++i) kept.push_back(&all.take());
  }
  void give_back(record& r) {
    all.of(r).mutex.lock();
    shards::give_back(r, all.of(r));
  }
  void check(std::size_t most) {
    const std::set<record*> different(kept.begin(), kept.end());
    expect(different.size() == kept.size(), "a record is given to one thread only");
    expect(census_of(all).free + kept.size() == all.slots(), "no record is lost");
    expect(all.slots() <= most, "records are used again");
  }
};

TEST_CASE("records go back to their shard from other threads, and each is given to one thread") {
  check_small([] {
    rondo::detail::sync::number_of_all = 0;
    const auto s = std::make_shared<shards_in_use>();
    rondo::detail::sync::number_of_all = rondo::detail::sync::own_shards;
    rondo::detail::sync::threads_have_own_shards = true;
    record* const last = s->kept.back();
    s->kept.pop_back();
    const auto take = [s] {
      record& taken = s->all.take();
      const unwatched its_own;
      s->kept.push_back(&taken);
    };
    return scenario{{{"takes", take}, {"gives back", [s, last] { s->give_back(*last); }}}, [s] {
                      rondo::detail::sync::threads_have_own_shards = false;
                      s->check(256);
                    }};
  });
}

TEST_CASE("threads that share a shard lose no records") {
  check_small([] {
    struct state {
      shards all{2, 0};  // with one shard
      std::size_t count_after_taking_all() {
        for (std::size_t left = census_of(all).free; left != 0; --left) all.take();
        return all.slots();
      }
    };
    const auto s = std::make_shared<state>();
    const auto take = [s] { s->all.take(); };
    return scenario{{{"takes", take}, {"takes too", take}}, [s] {
                      const std::size_t slots = s->all.slots();
                      expect(s->count_after_taking_all() == slots, "all free records can be taken");
                    }};
  });
}

TEST_CASE("a slot that another thread has not handed over is unknown, or has a record") {
  check_small([] {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    struct state {
      shards all{2, 0};
      explored_atomic<std::uint32_t> slot{none};
    };
    const auto s = std::make_shared<state>();
    const auto take = [s] { s->slot.store(s->all.take().slot, std::memory_order_relaxed); };
    const auto find = [s] {
      const std::uint32_t slot = s->slot.load(std::memory_order_relaxed);
      rondo::detail::shard_lock hold;
      const record* const found = slot != none ? s->all.find(slot, hold) : nullptr;
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
  record first, second;
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

TEST_CASE("a record is deleted when nobody reads the list of a pass any more in which it was") {
  struct state {
    shards all{2, 0};
    rondo::detail::ready_list list;
    record& cancelled = all.take();

    state() {
      list.make_room();
      list.push(cancelled, 1);
      shards::note_listed(all.of(cancelled), 1);
      cancelled.invalidate_wait();
      all.of(cancelled).mutex.lock();
      shards::give_back(cancelled, all.of(cancelled));
    }
    void pop_and_shrink() {
      list.front();
      list.pop();
      all.note_unlisted(cancelled);
      all.shrink_to_fit(list);
      expect(all.slots() == 0, "its block is deleted");
    }
  };
  check_small([] {
    const auto s = std::make_shared<state>();
    return scenario{{{"driver", [s] { s->pop_and_shrink(); }}, {"reader", [s] { s->list.next_due(); }}},
                    [] {}};
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
