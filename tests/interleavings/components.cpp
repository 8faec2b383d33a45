// The small components that threads share.
#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "scheduler/checked.hpp"
#include "scheduler/handoff.hpp"
#include "scheduler/ready_list.hpp"
#include "scheduler/record_pool.hpp"
#include "sync/short_lock.hpp"

namespace interleavings_components {

using namespace rondo::test;
using rondo::detail::counters;
using rondo::detail::record;
using rondo::detail::record_pool;

/// These scenes are small enough for wider bounds than others have.
void check_small(const std::function<scenario()>& make) {
  check_every_schedule(make);
  const exploration weak = explore_and_tell(make, 1, 2);
  CHECK_MESSAGE(weak.failure.empty(), weak.failure);
}

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

struct own_shards {
  own_shards() { rondo::detail::sync::threads_have_own_shards = true; }
  ~own_shards() { rondo::detail::sync::threads_have_own_shards = false; }
  own_shards(const own_shards&) = delete;
  own_shards& operator=(const own_shards&) = delete;
};

TEST_CASE("records go through the depot from thread to thread, and each goes to one thread") {
  const own_shards here;
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

TEST_CASE(
    "the destruction of a job is reported once: by its destroyer, or at the end of the call that it was "
    "given "
    "to") {
  check_small([] {
    struct state {
      rondo::detail::executor_call call;
      bool end_was_told = false, dropped_inside = false;
    };
    const auto s = std::make_shared<state>();
    s->call.begin(7);
    const auto drive = [s] {
      s->end_was_told = s->call.end();
      s->call.begin(8);
      expect(!s->call.end(), "the next call has nothing to do with it");
    };
    const auto destroy = [s] { s->dropped_inside = s->call.note_drop(7); };
    return scenario{{{"driver", drive}, {"destroys the job", destroy}},
                    [s] { expect(s->end_was_told == s->dropped_inside, "one of the two tells"); }};
  });
}

/// One thread reads the list while the driver pops its entries.
TEST_CASE("a timer is in the list of a pass until it is popped") {
  check_small([] {
    struct state {
      rondo::detail::ready_list list;
      record first{0}, second{1};
      explored_atomic<int> popping;
    };
    const auto s = std::make_shared<state>();
    const auto drive = [s] {
      expect(s->list.make_room() > 1, "there is room");
      s->list.push(s->second, 2);
      for (int i = 0; i != 2; ++i) {
        expect(s->list.front()->timer == (i == 0 ? &s->first : &s->second), "in order");
        s->popping.fetch_add(1, std::memory_order_relaxed);
        s->list.pop();
      }
    };
    const auto read = [s] {
      int found = 0;
      s->list.for_each_current([&](const auto&, bool) { ++found; });
      expect(found + s->popping.load(std::memory_order_relaxed) >= 1, "one is there, or is being popped");
      const auto due = s->list.next_due();
      expect(!due || *due == 1 || s->popping.load(std::memory_order_relaxed) >= 1,
             "what is due next is there");
    };
    s->list.make_room();
    s->list.push(s->first, 1);
    return scenario{{{"driver", drive}, {"reader", read}},
                    [s] { expect(s->list.empty(), "all have been popped"); }};
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
