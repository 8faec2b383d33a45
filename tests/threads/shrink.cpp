// shrink_to_fit() while other threads schedule, cancel, move and query timers.
#include <atomic>
#include <cstdint>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_shrink {

using namespace rondo;
using namespace rondo::test;

struct account {
  std::atomic<std::uint64_t> scheduled{0}, ran{0}, cancelled{0};
};

/// Schedules bursts of timers, cancels some, and retries ids from all earlier bursts.
void produce(timer& t, account& a, unsigned state) {
  std::vector<timer_id> ids;
  for (int burst = 0; burst != 100; ++burst) {
    std::vector<timer_id> last;
    for (int i = 0; i != 300; ++i) {
      state = state * 1664525U + 1013904223U;
      const unsigned random = state >> 8;
      const auto work = [&a] { ++a.ran; };
      if (random % 16 == 0)
        last.push_back(t.schedule_every(1h, [owner = std::make_shared<int>(0)] {}));
      else
        last.push_back(t.schedule_after(random % 16 == 1 ? duration::max() : random % 2000 * 1us, work));
      ++a.scheduled;
      if (!ids.empty()) {
        const timer_id old = ids[random % ids.size()];
        if (random % 4 == 0) a.cancelled += t.cancel(old) == cancel_result::cancelled ? 1U : 0U;
        if (random % 4 == 1) t.reschedule_after(old, random % 1000 * 1us);
        if (random % 4 == 2) static_cast<void>(t.pending(old));
        if (random % 64 == 3) a.cancelled += t.cancel_and_wait(old) == cancel_result::cancelled ? 1U : 0U;
      }
    }
    for (const timer_id id : last)
      if (t.cancel(id) == cancel_result::cancelled) ++a.cancelled;
    ids.insert(ids.end(), last.begin(), last.end());
    if (burst % 5 == 4) t.shrink_to_fit();
  }
}

void check_accounts(executor run_on) {
  account a;
  timer t(options{.tick = 50us, .run_on = std::move(run_on)});
  std::atomic<bool> over{false};
  std::thread shrinker([&] {
    while (!over) t.shrink_to_fit();
  });
  std::thread onlooker([&] {
    while (!over) {
      std::ostringstream drawing;
      t.dump(drawing);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> producers;
  for (unsigned i = 0; i != 3; ++i) producers.emplace_back([&, i] { produce(t, a, i); });
  for (std::thread& p : producers) p.join();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (t.pending() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  over = true;
  shrinker.join();
  onlooker.join();
  t.shrink_to_fit();
  CHECK(t.stop().empty());
  const statistics s = t.stats();
  CHECK(s.scheduled == a.scheduled);
  CHECK(s.fired == a.ran);
  CHECK(s.cancelled == a.cancelled);
  CHECK(a.scheduled == a.ran + a.cancelled);
}

TEST_CASE("no timer is lost while memory is given back and three producers set, cancel and move timers") {
  check_accounts({});
}

TEST_CASE("no timer is lost while memory is given back and three producers' tasks run on a pool") {
  pool workers(2);
  check_accounts(workers.executor());
}

TEST_CASE("stop() misses no timer that is scheduled while memory is given back") {
  for (int round = 0; round != 100; ++round) {
    timer t;
    for (int i = 0; i != 200; ++i) t.cancel(t.schedule_after(1h, [] {}));
    std::atomic<std::uint64_t> scheduled{0};
    std::thread shrinker([&] {
      for (int i = 0; i != 20; ++i) t.shrink_to_fit();
    });
    std::thread producer([&] {
      try {
        for (;;) {
          t.schedule_after(duration::max(), [] {});
          ++scheduled;
        }
      } catch (const stopped_error&) {
        return;
      }
    });
    while (scheduled == 0) std::this_thread::yield();
    const auto left = t.stop();
    producer.join();
    shrinker.join();
    CHECK(left.size() == scheduled);
    CHECK(t.pending() == 0);
  }
}

}  // namespace threads_shrink
