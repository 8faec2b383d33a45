// A driver that shares its processor with threads that never sleep is late, but correct.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "threads/one_processor.hpp"
#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_starved {

using namespace rondo;
using namespace rondo::test;

/// Threads that spin without pause.
class restless {
 public:
  explicit restless(int threads) {
    for (int i = 0; i != threads; ++i)
      threads_.emplace_back([this] {
        while (!over_) spin(1000);
      });
  }
  ~restless() {
    over_ = true;
    for (std::thread& t : threads_) t.join();
  }
  restless(const restless&) = delete;
  restless& operator=(const restless&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

/// Sums of what a periodic task was told about its runs.
struct points {
  std::atomic<std::uint64_t> runs{0}, missed{0};
  auto counting(gate& ran) {
    return [this, &ran](const firing& f) {
      ++runs;
      missed += f.missed;
      ran.open();
    };
  }
};

void check_starved(std::size_t workers) {
  const one_processor for_all;
  std::optional<pool> pool_of_workers;
  if (workers != 0) pool_of_workers.emplace(workers);
  constexpr long many = 500;
  gate ran, often;
  std::atomic<int> early{0};
  points skip, burst, delay;
  timer t(options{.tick = 100us, .run_on = workers != 0 ? pool_of_workers->executor() : rondo::executor()});
  {
    const restless others(4);
    const rondo::timer_id periodic[] = {
        t.schedule(every(1ms), skip.counting(often)),
        t.schedule(every(1ms).on_missed(missed_runs::burst, 1'000'000), burst.counting(often)),
        t.schedule(every(1ms).on_missed(missed_runs::delay), delay.counting(often))};
    const auto run = [&](const firing& f) {
      early += t.now() < f.due || f.lateness < 0ns;
      ran.open();
    };
    for (long i = 0; i != many; ++i) {
      t.schedule_after(i % 50 * 2ms, run);
      const auto far = t.schedule_after(1h, run);
      if (i % 2 == 0)
        t.cancel(far);
      else
        t.reschedule_after(far, i % 7 * 5ms);
    }
    CHECK(ran.wait(many + many / 2));
    CHECK(often.wait(30));
    for (const auto id : periodic) t.cancel_and_wait(id);
  }
  CHECK(t.stop().empty());
  CHECK(early == 0);
  CHECK(ran.count() == many + many / 2);
  CHECK(burst.missed == 0);
  const auto s = t.stats();
  CHECK(s.fired == static_cast<std::uint64_t>(ran.count()) + skip.runs + burst.runs + delay.runs);
  CHECK(s.missed == skip.missed + delay.missed);
  CHECK(s.completed == many + many / 2);
  CHECK(s.cancelled == many / 2 + 3);
  CHECK(s.failed + s.rejected == 0);
  CHECK(adds_up(s));
}

TEST_CASE("a driver that gets little processor time is never early, and loses nothing") { check_starved(0); }

TEST_CASE("a driver and a pool that get little processor time are never early, and lose nothing") {
  check_starved(2);
}

}  // namespace threads_starved
