// Destroying a timer while its tasks schedule, cancel and move each other, and its pool is busy.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_destruction_under_load {

using namespace rondo;
using namespace rondo::test;

/// Tasks that keep each other going: each schedules another one, and cancels, moves and queries others.
class swarm {
 public:
  /// The tasks share `token`; some of them use the executor `side`.
  swarm(timer& t, std::shared_ptr<int> token, executor side)
      : timer_(t), token_(std::move(token)), side_(std::move(side)) {}

  void begin(int tasks) {
    for (int i = 0; i != tasks; ++i) schedule(static_cast<unsigned>(i) * 2654435761U);
    timer_.schedule_every(50us, [this, held = token_] { note(); });
    timer_.schedule(
        rondo::after_completion(20us), [this, held = token_] { note(); }, on(side_));
  }
  /// From now on no task may run.
  void end() { ended_ = true; }

  gate runs;
  std::atomic<long> ran_after{0};

 private:
  void note() {
    ran_after += ended_.load();
    runs.open();
  }

  void schedule(unsigned state) {
    const auto work = [this, state, held = token_] { run(state * 1664525U + 1013904223U); };
    timer_id id;
    if (state >> 28 == 0)
      id = timer_.schedule_after(1h, work);
    else if (state >> 30 == 1)
      id = timer_.schedule_after((state >> 8) % 200 * 1us, work, on(side_));
    else
      id = timer_.schedule_after((state >> 8) % 200 * 1us, work);
    const std::lock_guard hold(mutex_);
    some_[(state >> 12) % some_.size()] = id;
  }

  timer_id any(unsigned state) {
    const std::lock_guard hold(mutex_);
    return some_[(state >> 20) % some_.size()];
  }

  void run(unsigned state) {
    note();
    try {
      schedule(state);
      if (state % 5 == 0) schedule(~state);
      if (state % 5 == 1) timer_.cancel(any(state));
      if (state % 5 == 2) timer_.reschedule_after(any(state), (state >> 8) % 300 * 1us);
      if (state % 64 == 3) static_cast<void>(timer_.stats());
      if (state % 64 == 4) static_cast<void>(timer_.next_due());
    } catch (const rondo::stopped_error&) {
    }
  }

  timer& timer_;
  const std::shared_ptr<int> token_;
  const executor side_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::vector<timer_id> some_ = std::vector<timer_id>(50);
};

enum class ends_first { timer, pools };

/// `workers`: threads of the pool that runs most tasks; if 0, these run inline.
void check_destruction(std::size_t workers, ends_first first) {
  for (int round = 0; round != 25; ++round) {
    const auto token = std::make_shared<int>(0);
    std::optional<swarm> tasks;
    {
      pool most(workers), side(1);
      executor run_on;
      if (workers != 0) run_on = most.executor();
      std::optional<timer> t;
      t.emplace(options{.tick = 10us, .buckets = 16, .run_on = run_on});
      tasks.emplace(*t, token, side.executor());
      tasks->begin(100);
      REQUIRE(tasks->runs.wait(200 + 100 * (round % 5)));
      if (first == ends_first::pools) {  // queued jobs are dropped, and so are later ones
        side.shut_down();
        most.shut_down();
      }
      t.reset();
      tasks->end();
      CHECK(token.use_count() == 2);  // no callable is left, whether or not jobs remain
    }
    CHECK(tasks->ran_after == 0);
  }
}

TEST_CASE("a timer may be destroyed while its tasks schedule each other, inline and on another executor") {
  check_destruction(0, ends_first::timer);
}

TEST_CASE("a timer may be destroyed while its tasks schedule each other on a pool") {
  check_destruction(2, ends_first::timer);
}

TEST_CASE("a timer may be destroyed after the executor of some of its tasks") {
  check_destruction(0, ends_first::pools);
}

TEST_CASE("a timer may be destroyed after the pool of all its tasks") {
  check_destruction(2, ends_first::pools);
}

TEST_CASE("every job that a pool drops as it ends is counted") {
  for (int round = 0; round != 25; ++round) {
    const auto token = std::make_shared<int>(0);
    std::atomic<std::uint64_t> ran{0};
    std::optional<pool> workers(std::in_place, 2);
    timer t(options{.tick = 10us, .run_on = [&](rondo::job j) { workers->post(std::move(j)); }});
    for (int i = 0; i != 2000; ++i)
      t.schedule_after(i % 100 * 5us, [&, held = token] {
        ++ran;
        spin(50);
      });
    while (ran < 100) std::this_thread::yield();
    workers->shut_down();
    while (t.pending() != 0) std::this_thread::yield();
    t.stop();
    const auto s = t.stats();
    CHECK(s.fired == ran);
    CHECK(s.fired + s.rejected == 2000);
    CHECK(s.completed == 2000);
    CHECK(adds_up(s));
    CHECK(token.use_count() == 1);
  }
}

}  // namespace threads_destruction_under_load
