// More threads than can have their own shards, and threads that come and go.
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/manual_timer.hpp>
#include <rondo/timer.hpp>

#include "sync/thread_numbers.hpp"
#include "threads/patience.hpp"

namespace threads_many_threads {

using namespace rondo;
using namespace rondo::test;

// MinGW may have freed the variable before it destroys it.
#ifndef __MINGW32__

TEST_CASE("a thread may use a scheduler until the last of its thread_local variables is destroyed") {
  timer t;
  struct late_user {
    timer* used = nullptr;
    ~late_user() {
      if (used != nullptr) used->cancel(used->schedule_after(1h, [] {}));
    }
  };
  for (int i = 0; i != 3; ++i) {
    std::thread([&] {
      thread_local late_user late;  // constructed first, so destroyed after what the call creates
      late.used = &t;
      t.cancel(t.schedule_after(1h, [] {}));
    }).join();
  }
  CHECK(t.stats().cancelled == 6);
  CHECK(t.pending() == 0);
}

#endif

TEST_CASE("no timer and no count is lost between a hundred threads and those that reuse their numbers") {
  timer t;
  constexpr std::size_t each = 200;
  for (int round = 0; round != 3; ++round) {
    on_threads(100, [&](std::size_t) {
      std::vector<timer_id> ids;
      for (std::size_t i = 0; i != each; ++i) ids.push_back(t.schedule_after(1h, [] {}));
      for (std::size_t i = 0; i != each; i += 2) t.cancel(ids[i]);
    });
  }
  const statistics s = t.stats();
  CHECK(s.scheduled == 3 * 100 * each);
  CHECK(s.cancelled == s.scheduled / 2);
  CHECK(s.pending == s.scheduled / 2);
  CHECK(t.stop().size() == s.pending);
}

TEST_CASE("the timers of a thread that has ended fire in order, and others may cancel and move them") {
  manual_timer t;
  std::vector<int> ran;
  const auto note = [&](int which) { return [&ran, which] { ran.push_back(which); }; };
  timer_id cancelled, moved;
  on_threads(1, [&](std::size_t) {
    t.schedule_after(3ms, note(3));
    cancelled = t.schedule_after(1ms, note(1));
    moved = t.schedule_after(2ms, note(7));
    t.schedule_after(1h, note(8));
  });
  CHECK(t.cancel(cancelled) == cancel_result::cancelled);
  CHECK(t.reschedule_after(moved, 7ms));
  on_threads(1, [&](std::size_t) { t.schedule_after(4ms, note(4)); });  // in the shard of the first thread
  t.schedule_after(5ms, note(5));
  CHECK(t.pending() == 5);
  t.advance(10ms);
  CHECK(ran == std::vector<int>{3, 4, 5, 7});
  CHECK(t.stop().size() == 1);
}

TEST_CASE("threads that only cancel, and drivers, take no shard from threads that schedule") {
  constexpr std::size_t many = 2 * detail::thread_numbers::exclusive;
  const auto another_has_its_own = [] {
    std::size_t number = 0;
    std::thread([&] { number = detail::thread_numbers::of_this_thread(); }).join();
    return number < detail::thread_numbers::exclusive;
  };
  manual_timer t;
  std::vector<timer_id> ids;
  for (std::size_t i = 0; i != many; ++i) ids.push_back(t.schedule_after(1h, [] {}));
  gate cancelled, over;
  std::vector<std::thread> threads;
  for (const timer_id id : ids)
    threads.emplace_back([&, id] {
      t.cancel(id);
      cancelled.open();
      over.wait();
    });
  CHECK(cancelled.wait(many));
  CHECK(another_has_its_own());
  over.open();
  for (std::thread& each : threads) each.join();

  gate ran;
  std::vector<std::unique_ptr<timer>> timers;
  for (std::size_t i = 0; i != many; ++i) {
    timers.push_back(std::make_unique<timer>());
    ids[i] = timers[i]->schedule_after(0s, [&] { ran.open(); });
  }
  CHECK(ran.wait(many));
  for (std::size_t i = 0; i != many; ++i)
    timers[i]->cancel_and_wait(ids[i]);  // until the driver has put the record back
  CHECK(another_has_its_own());
}

TEST_CASE("a thread that comes to a scheduler after its end is refused, and finds nothing") {
  timer t;
  const auto id = t.schedule_after(1h, [] {});
  CHECK(t.stop().size() == 1);
  on_threads(3, [&](std::size_t) {
    CHECK_THROWS_AS(t.schedule_after(1ms, [] {}), stopped_error);
    CHECK(t.cancel(id) == cancel_result::gone);
    CHECK(!t.reschedule_after(id, 1ms));
    CHECK(t.list().empty());
    CHECK(!t.next_due());
    t.shrink_to_fit();
  });
  CHECK(t.stats().scheduled == 1);
}

TEST_CASE("threads that come to a scheduler while it ends are refused, or their timers are handed back") {
  for (int round = 0; round != 100; ++round) {
    timer t;
    std::atomic<std::size_t> scheduled{0};
    std::size_t returned = 0;
    on_threads(4, [&](std::size_t which) {
      if (which == 0) {
        spin(static_cast<unsigned>(round) * 100);
        returned = t.stop().size();
        return;
      }
      try {
        t.schedule_after(1h, [] {});
        ++scheduled;
      } catch (const stopped_error&) {
      }
    });
    CHECK(returned == scheduled);
    CHECK(t.pending() == 0);
  }
}

}  // namespace threads_many_threads
