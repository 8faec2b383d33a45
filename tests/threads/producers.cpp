// Many threads at once: the counts are exact.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_producers {

using namespace rondo;
using namespace rondo::test;

struct account {
  std::atomic<std::uint64_t> scheduled{0}, ran{0}, cancelled{0};
};

/// Schedules, cancels and moves timers; some tasks schedule another one.
void produce(timer& t, account& a, unsigned state) {
  std::vector<timer_id> ids;
  for (int i = 0; i != 5000; ++i) {
    state = state * 1664525U + 1013904223U;
    const unsigned random = state >> 8;
    ids.push_back(t.schedule_after(random % 20'000 * 1us, [&t, &a, random] {
      if (random % 5 == 0) {
        t.schedule_after(random % 7 * 100us, [&a] { ++a.ran; });
        ++a.scheduled;
      }
      ++a.ran;
    }));
    ++a.scheduled;
    const timer_id any = ids[random % ids.size()];
    if (random % 4 == 0) a.cancelled += t.cancel(any) == cancel_result::cancelled;
    if (random % 4 == 1) t.reschedule_after(any, random % 10'000 * 1us);
  }
}

void check_accounts(executor run_on, std::size_t buckets) {
  account a;
  std::vector<std::thread> producers;
  gate passed;
  timer t(options{.tick = 50us, .buckets = buckets, .run_on = std::move(run_on)});
  for (unsigned i = 0; i != 4; ++i) producers.emplace_back([&, i] { produce(t, a, i); });
  for (std::thread& p : producers) p.join();
  // Each of these timers is due after all others, so none is left when one of these has run.
  const auto end = std::chrono::steady_clock::now() + patience;
  for (long i = 1; t.pending() != 0 && std::chrono::steady_clock::now() < end; ++i) {
    t.schedule_after(5ms, [&] { passed.open(); });
    ++a.scheduled;
    ++a.ran;
    REQUIRE(passed.wait(i));
  }
  t.stop();
  const statistics s = t.stats();
  CHECK(s.pending == 0);
  CHECK(s.returned == 0);
  CHECK(s.scheduled == a.scheduled);
  CHECK(s.fired == a.ran);
  CHECK(s.completed == a.ran);
  CHECK(s.cancelled == a.cancelled);
  CHECK(a.scheduled == a.ran + a.cancelled);
  CHECK(s.failed == 0);
  CHECK(s.rejected == 0);
}

TEST_CASE("the counts of four producers are exact, inline") { check_accounts({}, 512); }

TEST_CASE("the counts of four producers are exact, with few buckets") { check_accounts({}, 2); }

TEST_CASE("the counts of four producers are exact, on a pool") {
  pool workers(2);
  check_accounts(workers.executor(), 512);
}

TEST_CASE("threads that race for the last places under max_pending get exactly as many as there are") {
  constexpr std::size_t limit = 50;
  for (int round = 0; round != 200; ++round) {
    timer t(options{.max_pending = limit});
    std::atomic<int> ready{0};
    std::atomic<std::size_t> accepted{0};
    std::vector<std::thread> producers;
    for (int p = 0; p != 3; ++p)
      producers.emplace_back([&] {
        for (++ready; ready != 3;) std::this_thread::yield();
        for (int i = 0; i != 30; ++i) {
          try {
            t.schedule_after(1h, [] {});
            ++accepted;
          } catch (const rondo::capacity_error&) {
            return;
          }
        }
      });
    for (std::thread& p : producers) p.join();
    if (accepted != limit || t.pending() != limit) FAIL("it took more timers than it may, or fewer");
  }
}

TEST_CASE("races neither lose nor add places under max_pending") {
  constexpr std::size_t limit = 50;
  std::atomic<int> refused{0}, accepted{0};
  std::vector<std::thread> producers;
  gate passed;
  timer t(options{.tick = 10us, .max_pending = limit});
  for (unsigned p = 0; p != 4; ++p)
    producers.emplace_back([&, p] {
      unsigned state = p;
      for (int i = 0; i != 5000; ++i) {
        state = state * 1664525U + 1013904223U;
        try {
          const timer_id id = t.schedule_after((state >> 8) % 500 * 1us, [] {});
          ++accepted;
          if (state % 2 == 0) t.cancel(id);
        } catch (const rondo::capacity_error&) {
          ++refused;
        }
      }
    });
  for (std::thread& p : producers) p.join();
  CHECK(accepted + refused == 20'000);
  for (long scheduled = 0; t.pending() != 0;) {
    try {
      t.schedule_after(1ms, [&] { passed.open(); });
    } catch (const rondo::capacity_error&) {
      continue;
    }
    REQUIRE(passed.wait(++scheduled));
  }
  // All places are free again, and not one more.
  for (std::size_t i = 0; i != limit; ++i) t.schedule_after(1h, [] {});
  CHECK_THROWS_AS(t.schedule_after(1h, [] {}), rondo::capacity_error);
  CHECK(t.pending() == limit);
}

TEST_CASE("queries from several threads are right while another thread changes timers") {
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> askers;
  account a;
  timer t(options{.tick = 10us});
  const timer_id far = t.schedule_after(1h, [] {});
  for (int i = 0; i != 2; ++i)
    askers.emplace_back([&] {
      while (!over) {
        wrong += !t.pending(far);
        wrong += !t.next_due().has_value();
        static_cast<void>(t.stats());
        static_cast<void>(t.pending());
        wrong += t.pending(timer_id{});
      }
    });
  produce(t, a, 7);
  over = true;
  for (std::thread& asker : askers) asker.join();
  CHECK(wrong == 0);
}

}  // namespace threads_producers
