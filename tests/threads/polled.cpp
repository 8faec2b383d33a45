// polled_timer: driven by a user's loop, while other threads schedule.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/polled_timer.hpp>

#include "threads/patience.hpp"

namespace threads_polled {

using namespace rondo;
using namespace rondo::test;
using namespace std::chrono_literals;

/// Polls until done().
template <class Done>
void poll_until(polled_timer& timer, Done&& done) {
  const auto end = rondo::scheduler::clock::now() + 1min;
  while (!done() && rondo::scheduler::clock::now() < end) timer.poll();
  CHECK(done());
}

TEST_CASE("tasks run only inside poll(), and not before they are due") {
  polled_timer timer;
  std::vector<firing> runs;
  timer.schedule_after(100ms, [&](const firing& f) {
    CHECK(timer.now() >= f.due);
    runs.push_back(f);
  });
  CHECK(timer.poll() == 0);
  std::this_thread::sleep_until(timer.next_due().value());
  CHECK(runs.empty());
  CHECK(timer.poll() == 1);
  CHECK(runs.size() == 1);
  CHECK(timer.poll() == 0);
  CHECK(!timer.next_due());
}

TEST_CASE("a timer that is due now waits for poll(), and never runs in the scheduling call") {
  polled_timer timer;
  int runs = 0;
  timer.schedule_after(0s, [&] { ++runs; });
  timer.schedule_after(-1h, [&] { ++runs; });
  CHECK(runs == 0);
  CHECK(timer.poll() == 2);
  CHECK(runs == 2);
}

TEST_CASE("poll() runs at most as many tasks as its limit, and the next call continues in order") {
  polled_timer timer;
  std::vector<int> order;
  for (int i = 0; i != 10; ++i) timer.schedule_after(-1s, [&, i] { order.push_back(i); });
  CHECK(timer.poll(3) == 3);
  CHECK(timer.poll(0) == 0);
  CHECK(timer.pending() == 7);
  CHECK(timer.poll(3) == 3);
  CHECK(timer.poll() == 4);
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("timers that a limit left over run first, then in the same poll() those that became due since") {
  polled_timer timer;
  std::vector<int> order;
  const auto noting = [&](int i) { return [&order, i] { order.push_back(i); }; };
  for (int i = 0; i != 3; ++i) timer.schedule_after(-1s, noting(i));
  CHECK(timer.poll(1) == 1);
  timer.schedule_after(0s, noting(4));
  timer.schedule_after(-1s, noting(3));
  CHECK(timer.poll() == 4);
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("polls that never catch up keep no memory of timers that have run") {
  polled_timer timer;
  std::uint64_t runs = 0;
  for (int i = 0; i != 3; ++i) timer.schedule_after(-1s, [&] { ++runs; });
  for (int i = 0; i != 100'000; ++i) {
    timer.schedule_after(-1s, [&] { ++runs; });
    timer.poll(1);
  }
  CHECK(runs == 100'000);
  CHECK(timer.poll() == 3);
}

TEST_CASE("a second drain() observes its own limit, and poll() works during a drain") {
  polled_timer timer;
  timer.schedule_after(1h, [] {});
  gate draining;
  std::thread other([&] {
    draining.open();
    timer.drain(1h);
  });
  CHECK(draining.wait());
  CHECK(!timer.drain(5ms));
  CHECK(timer.poll() == 0);
  CHECK(timer.stop().size() == 1);
  other.join();
}

TEST_CASE("a task that reschedules itself without delay does not starve other timers") {
  polled_timer timer;
  int chain = 0, others = 0;
  std::function<void()> link = [&] {
    ++chain;
    timer.schedule_after(0s, [&] { link(); });
  };
  timer.schedule_after(0s, [&] { link(); });
  timer.schedule_every(1ms, [&] { ++others; });
  poll_until(timer, [&] { return others >= 3; });
  CHECK(chain > 3);
  CHECK(timer.poll() >= 1);  // and each poll() ends
}

TEST_CASE("with a limit of one, a burst that never catches up does not starve other timers") {
  polled_timer timer;
  int often = 0, others = 0;
  timer.schedule(rondo::every(1us).on_missed(rondo::missed_runs::burst, 3), [&] {
    ++often;
    let_pass(10us);  // ten more points pass
  });
  timer.schedule_after(1ms, [&] { ++others; });
  const auto end = rondo::scheduler::clock::now() + 1min;
  while (others == 0 && rondo::scheduler::clock::now() < end) timer.poll(1);
  CHECK(others == 1);
  CHECK(often > 0);
}

TEST_CASE("poll() from inside is refused") {
  polled_timer timer;
  int refused = 0;
  timer.schedule_after(0s, [&] {
    try {
      timer.poll();
    } catch (const std::logic_error&) {
      ++refused;
    }
  });
  timer.poll();
  CHECK(refused == 1);
}

TEST_CASE("on_earlier is called for earlier timers, and not for later ones") {
  polled_timer timer;
  int told = 0;
  timer.on_earlier([&] { ++told; });
  timer.schedule_after(1h, [] {});
  CHECK(told == 1);
  timer.schedule_after(2h, [] {});
  timer.schedule_after(3h, [] {});
  CHECK(told == 1);
  const auto id = timer.schedule_after(1min, [] {});
  CHECK(told == 2);
  timer.reschedule_after(id, 1s);
  CHECK(told == 3);
  timer.cancel(id);
  CHECK(told == 3);
  timer.on_earlier(nullptr);
  timer.schedule_after(1ms, [] {});
  CHECK(told == 3);
}

TEST_CASE("on_earlier is called for a run that waited for the end of a job") {
  std::vector<rondo::job> jobs;
  polled_timer timer({.run_on = [&](rondo::job j) { jobs.push_back(std::move(j)); }});
  timer.schedule(rondo::after_completion(1h).first_after(0s), [] {});
  CHECK(timer.poll() == 1);
  int told = 0;
  timer.on_earlier([&] { ++told; });
  CHECK(!timer.next_due());
  SUBCASE("the job ran") { jobs.at(0)(); }
  SUBCASE("the job was dropped") { jobs.clear(); }
  CHECK(told == 1);
  CHECK(timer.next_due());
}

TEST_CASE("an exception of on_earlier is reported, and the scheduling call succeeds") {
  int reported = 0;
  polled_timer timer({.on_error = [&](std::exception_ptr, const firing&) { ++reported; }});
  timer.on_earlier([] { throw std::runtime_error("no"); });
  const auto id = timer.schedule_after(1h, [] {});
  CHECK(timer.pending(id));
  CHECK(reported == 1);
  CHECK(timer.stats().failed == 0);  // no run has failed
}

TEST_CASE("on_earlier may schedule, replace itself and call stop(), but not poll()") {
  polled_timer timer;
  int told = 0;
  bool refused = false;
  timer.on_earlier([&] {
    ++told;
    try {
      timer.poll();
    } catch (const std::logic_error&) {
      refused = true;
    }
    timer.on_earlier([&] { told += 100; });
    timer.schedule_after(1min, [] {});
  });
  timer.schedule_after(1h, [] {});
  CHECK(refused);
  CHECK(told == 101);
  timer.on_earlier([&] { CHECK(timer.stop().size() == 3); });
  timer.schedule_after(1s, [] {});
  CHECK(timer.pending() == 0);
}

/// A call of on_earlier that is in progress on another thread, and takes a while.
struct slow_on_earlier {
  polled_timer timer;
  gate inside;
  std::atomic<bool> over{false};
  std::thread scheduling;

  slow_on_earlier() {
    timer.on_earlier([this] {
      inside.open();
      let_pass(20ms);  // callers that wait for its end must not return during this
      over = true;
    });
    scheduling = std::thread([this] { timer.schedule_after(1h, [] {}); });
    REQUIRE(inside.wait());
  }
  ~slow_on_earlier() { scheduling.join(); }
};

TEST_CASE("on_earlier() returns once no call of the old function is in progress") {
  slow_on_earlier slow;
  slow.timer.on_earlier(nullptr);
  CHECK(slow.over);
}

TEST_CASE("inside a task, too, on_earlier() waits for a call on another thread") {
  polled_timer timer;
  gate inside;
  std::atomic<bool> over{false};
  timer.schedule_after(0s, [&] {
    timer.on_earlier(nullptr);
    CHECK(over);
  });
  timer.on_earlier([&] {
    inside.open();
    let_pass(20ms);  // the task must not go on during this
    over = true;
  });
  std::thread scheduling([&] { timer.schedule_after(-1s, [] {}); });
  CHECK(inside.wait());
  CHECK(timer.poll() == 2);
  scheduling.join();
}

TEST_CASE("stop() waits for on_earlier, which is not called afterwards") {
  slow_on_earlier slow;
  CHECK(slow.timer.stop().size() == 1);
  CHECK(slow.over);
  slow.over = false;
  CHECK_THROWS_AS(slow.timer.schedule_after(1s, [] {}), rondo::stopped_error);
  CHECK(!slow.over);
}

TEST_CASE("on_earlier is released with its timer, even if a job outlives the timer") {
  const auto token = std::make_shared<int>(0);
  std::vector<rondo::job> jobs;
  {
    polled_timer timer({.run_on = [&](rondo::job j) { jobs.push_back(std::move(j)); }});
    timer.on_earlier([token] {});
    timer.schedule_after(0s, [] {});
    timer.poll();
    CHECK(token.use_count() == 2);
  }
  CHECK(token.use_count() == 1);
  CHECK(jobs.size() == 1);
}

TEST_CASE("a polled timer may be destroyed by on_earlier and by its own tasks") {
  auto timer = std::make_unique<polled_timer>();
  timer->schedule_after(0s, [&] { timer.reset(); });
  CHECK(timer->poll() == 1);
  CHECK(timer == nullptr);
  timer = std::make_unique<polled_timer>();
  timer->on_earlier([&] { timer.reset(); });
  timer->schedule_after(0s, [] {});
  CHECK(timer == nullptr);
}

TEST_CASE("drain() polls a polled timer") {
  polled_timer timer;
  int runs = 0;
  timer.schedule_after(10ms, [&] { ++runs; });
  timer.schedule_every(1ms, [&] { ++runs; });
  CHECK(timer.drain(1min));
  CHECK(runs == 1);
  polled_timer other;
  other.schedule_after(1h, [&] { ++runs; });
  CHECK(!other.drain(5ms));
  CHECK(other.stop().size() == 1);
}

/// A loop that sleeps, and is woken only by on_earlier.
class loop {
 public:
  explicit loop(polled_timer& timer) : timer_(timer) {
    timer_.on_earlier([this] {
      const std::lock_guard hold(mutex_);
      woken_ = true;
      wake_.notify_one();
    });
  }
  template <class Done>
  void run(Done&& done) {
    for (;;) {
      timer_.poll();
      if (done()) return;
      const auto due = timer_.next_due();
      std::unique_lock hold(mutex_);
      wake_.wait_until(hold, due.value_or(rondo::scheduler::clock::now() + 1min), [&] { return woken_; });
      woken_ = false;
    }
  }

 private:
  polled_timer& timer_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false;
};

TEST_CASE("a loop that sleeps until next_due() and is woken by on_earlier misses nothing") {
  polled_timer timer({.tick = 10us});
  loop sleeper(timer);
  constexpr int each = 500;
  std::atomic<int> runs{0};
  std::vector<std::thread> producers;
  for (int p = 0; p != 2; ++p)
    producers.emplace_back([&, p] {
      for (int i = 0; i != each; ++i) {
        timer.schedule_after((i * 7919 + p) % 3000 * 1us, [&] { ++runs; });
        if (i % 16 == 0) let_pass(100us);
      }
    });
  sleeper.run([&] { return runs == 2 * each; });
  for (auto& p : producers) p.join();
  CHECK(timer.stats().completed == 2 * each);
}

}  // namespace threads_polled
