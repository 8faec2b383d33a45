// Timers by key, on real threads.
#include <rondo/keyed_timers.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rondo/manual_timer.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"
#include "times_slower.hpp"

namespace on_top_keyed_timers_threads {

using namespace rondo;
using namespace rondo::test;

/// Returns false if it takes too long.
template <class Done>
bool wait_until(Done&& done) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Checks the order in which the tasks of one key begin, by their numbers. Tasks run one at a time. A task may still be
/// in progress while it is replaced, but not after another task has begun.
struct succession {
  std::atomic<int> replaced_before{0};  // tasks with lower numbers were replaced and are not in progress
  std::atomic<int> late{0}, early{0}, backwards{0};
  std::atomic<int> last_begun{-1};

  void begin(int number, time_point due, const firing& f) {
    if (number < replaced_before) ++late;
    if (f.due != due || rondo::scheduler::clock::now() < due) ++early;
    if (last_begun.exchange(number) >= number) ++backwards;
  }
};

/// `run_on` must run tasks one at a time.
void set_while_it_fires(std::size_t max_pending, rondo::executor run_on, int rounds) {
  timer t(options{.tick = 10us, .max_pending = max_pending, .run_on = std::move(run_on)});
  keyed_timers<int> timers(t);
  succession s;
  for (int i = 0; i != rounds; ++i) {
    const time_point due = t.now() + i % 40 * 1us;
    timers.set_at(1, due, [&s, i, due](const firing& f) { s.begin(i, due, f); });
    if (max_pending != 1) t.schedule_after(0s, [&s, i] { s.replaced_before = i; });
    if (i % 100 == 0) {
      CHECK(wait_until([&] { return s.last_begun >= i; }));
      s.replaced_before = i;
    }
    spin(static_cast<unsigned>(i * 37 % 400));
  }
  gate last_ran;
  timers.set_after(1, 0s, [&] { last_ran.open(); });
  CHECK(last_ran.wait());
  timers.clear();
  t.stop();
  CHECK(s.late == 0);
  CHECK(s.early == 0);
  CHECK(s.backwards == 0);
  CHECK(adds_up(t.stats()));
}

TEST_CASE("setting a key as it fires: the old task does not start afterwards, and the last one is not lost") {
  set_while_it_fires(rondo::unlimited, {}, 20'000);
}

TEST_CASE("setting a key as it fires, at the limit, where the new timer takes the old one's place") {
  set_while_it_fires(1, {}, 20'000);
}

TEST_CASE("setting a key as it fires, on a pool") {
  pool workers(1);
  set_while_it_fires(rondo::unlimited, workers.executor(), 10'000);
  set_while_it_fires(1, workers.executor(), 10'000);
}

TEST_CASE("a key is forgotten while the table of keys grows") {
  manual_timer time;
  keyed_timers<std::string> timers(time);
  const int rounds = static_cast<int>(shortened(20'000));
  std::thread forgets([&] {
    for (int i = 0; i != rounds; ++i) {
      timers.set_after("a key that is longer than what a string holds inside", 1h, [] {});
      timers.cancel("a key that is longer than what a string holds inside");
    }
  });
  for (int i = 0; i != rounds; ++i) timers.set_after(std::to_string(i), 1h, [] {});
  forgets.join();
  CHECK(timers.size() == static_cast<std::size_t>(rounds));
}

TEST_CASE("timers of a key that are set one after another all run") {
  for (const std::size_t limit : {rondo::unlimited, std::size_t{1}}) {
    timer t(options{.tick = 1us, .max_pending = limit});
    keyed_timers<int> timers(t);
    int lost = 0;
    for (int i = 0; i != 3000; ++i) {
      const auto ran = std::make_shared<gate>();  // a late task may outlive this round
      timers.set_after(1, 0s, [ran] { ran->open(); });
      lost += ran->wait() ? 0 : 1;
      if (lost != 0) break;
    }
    CHECK(lost == 0);
  }
}

TEST_CASE("the call that sets a key does not undo what the task does when it re-arms the key") {
  timer t(options{.tick = 1us});
  keyed_timers<int> timers(t);
  int lost = 0;
  for (int i = 0; i != 5000 && lost == 0; ++i) {
    const auto second_ran = std::make_shared<gate>();  // a late task may outlive this round
    timers.set_after(
        1, 0s, [&timers, second_ran] { timers.set_after(1, 0s, [second_ran] { second_ran->open(); }); });
    lost += second_ran->wait() ? 0 : 1;
  }
  CHECK(lost == 0);
}

TEST_CASE("at the limit, a later timer does not run at the deadline of the timer that it replaces") {
  std::atomic<int> by_another_deadline{0};
  timer t(options{.tick = 1us, .max_pending = 1});
  keyed_timers<int> timers(t);
  for (int i = 0; i != 30'000; ++i) {
    timers.set_after(1, i % 8 * 1us, [] {});
    spin(static_cast<unsigned>(i * 37 % 300));
    timers.set_after(1, 1h, [&] { ++by_another_deadline; });
    if (i % 16 == 0) CHECK(timers.contains(1));
    if (i % 16 == 1) timers.cancel(1);
  }
  CHECK(by_another_deadline == 0);
  CHECK(timers.size() == 1);
}

TEST_CASE("while another thread replaces a key's timer, there is always one to move or cancel") {
  timer t;
  keyed_timers<int> timers(t);
  timers.set_after(1, 1h, [] {});
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) timers.set_after(1, 1h, [] {});
  });
  int not_moved = 0, not_cancelled = 0;
  for (int i = 0; i != a_million / 2; ++i) {
    not_moved += timers.reschedule_after(1, 2h) ? 0 : 1;
    timers.set_after(1, 2h, [] {});
    not_cancelled += timers.cancel(1) == rondo::cancel_result::cancelled ? 0 : 1;
    timers.set_after(1, 2h, [] {});
  }
  done = true;
  other.join();
  CHECK(not_moved == 0);
  CHECK(not_cancelled == 0);
}

TEST_CASE("of several threads that try to set a key, one succeeds, and its task runs") {
  for (int round = 0; round != 500; ++round) {
    std::atomic<int> set{0}, runs{0};
    timer t(options{.tick = 1us, .max_pending = round % 2 == 0 ? rondo::unlimited : 1});
    keyed_timers<int> timers(t);
    gate start;
    std::vector<std::thread> threads;
    for (int i = 0; i != 3; ++i)
      threads.emplace_back([&] {
        start.wait();
        set += timers.try_set_after(1, 1h, [&] { ++runs; }) ? 1 : 0;
      });
    start.open();
    for (std::thread& thread : threads) thread.join();
    CHECK(set == 1);
    CHECK(timers.size() == 1);
    CHECK(timers.reschedule_after(1, 0s));
    CHECK(wait_until([&] { return !timers.contains(1); }));
    timers.clear();
    t.stop();  // waits for the run in progress
    CHECK(runs == 1);
  }
}

TEST_CASE("exactly as many calls of try_set_after() succeed as tasks run") {
  timer t(options{.tick = 1us});
  std::atomic<long> set{0}, runs{0};
  {
    keyed_timers<int> timers(t);
    std::vector<std::thread> threads;
    for (int i = 0; i != 3; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k != 4000; ++k) set += timers.try_set_after(k % 3, 0s, [&] { ++runs; }) ? 1 : 0;
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wait_until([&] { return timers.size() == 0; }));
  }
  CHECK(set > 0);
  CHECK(runs == set);
}

/// Several threads do everything to a few keys. Checks that nothing is left and nothing runs afterwards.
void commotion(options o) {
  const auto token = std::make_shared<int>(0);
  timer t(std::move(o));
  std::atomic<bool> destroyed{false};
  std::atomic<long> ran{0}, ran_after{0};
  {
    const auto work = [&, token] {
      ran_after += destroyed.load();
      ++ran;
    };
    keyed_timers<unsigned> timers(t);
    const auto use = [&](unsigned state) {
      for (int i = 0; i != 3000; ++i) {
        state = state * 1664525U + 1013904223U;
        const unsigned key = (state >> 8) % 4;
        const auto delay = (state >> 12) % 60 * 1us;
        try {
          switch ((state >> 20) % 10) {
            case 0:
              timers.cancel(key);
              break;
            case 1:
              timers.reschedule_after(key, delay);
              break;
            case 2:
              static_cast<void>(timers.contains(key) || timers.size() == 0);
              break;
            case 3:
              timers.try_set_after(key, delay, work);
              break;
            case 4:
              timers.set(key, every(delay + 10us), work);
              break;
            case 5:
              timers.set_after(key, delay, [&, key, delay, token] {
                work();
                timers.set_after(key, delay, work);
              });
              break;
            case 6:
              if (i % 50 == 0) timers.clear();
              break;
            default:
              timers.set_after(key, delay, work);
          }
        } catch (const rondo::capacity_error&) {
        } catch (const stopped_error&) {
        }
      }
    };
    std::vector<std::thread> users;
    for (unsigned u = 0; u != 3; ++u) users.emplace_back(use, u * 7919);
    for (std::thread& u : users) u.join();
    CHECK(wait_until([&] {
      try {
        timers.try_set_after(4U, 0s, work);
      } catch (const rondo::capacity_error&) {
      }
      return ran > 0;
    }));
  }
  destroyed = true;
  CHECK(token.use_count() == 1);
  CHECK(t.pending() == 0);
  t.stop();
  CHECK(ran_after == 0);
  CHECK(adds_up(t.stats()));
}

TEST_CASE("keyed timers may be used by several threads at once, inline") {
  commotion(options{.tick = 10us, .on_error = [](std::exception_ptr, const firing&) {}});
}

TEST_CASE("keyed timers may be used by several threads at once, on a pool") {
  pool workers(2);
  commotion(options{
      .tick = 10us, .run_on = workers.executor(), .on_error = [](std::exception_ptr, const firing&) {}});
}

TEST_CASE("keyed timers may be used by several threads at once, at the limit") {
  pool workers(2);
  commotion(options{.tick = 10us,
                    .max_pending = 4,
                    .run_on = workers.executor(),
                    .on_error = [](std::exception_ptr, const firing&) {}});
  commotion(options{.tick = 10us, .max_pending = 2, .on_error = [](std::exception_ptr, const firing&) {}});
}

TEST_CASE("at the limit, after several threads have replaced and moved a key, it has the last timer") {
  for (int round = 0; round != 300; ++round) {
    std::atomic<int> runs{0};
    gate ran;
    timer t(options{.tick = 1us, .max_pending = 1});
    keyed_timers<int> timers(t);
    timers.set_after(1, 1h, [&] { ++runs; });
    std::vector<std::thread> threads;
    for (int i = 0; i != 3; ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k != 20; ++k) {
          if (i == 2)
            timers.reschedule_after(1, 1h + k * 1s);
          else
            timers.set_after(1, 2h + i * 1s + k * 1min, [&] { ++runs; });
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(t.pending() == 1);
    CHECK(timers.size() == 1);
    CHECK(runs == 0);
    timers.set_after(1, 0s, [&] { ran.open(); });
    CHECK(ran.wait());
    CHECK(runs == 0);
  }
}

TEST_CASE("at the limit, of several one-shots set at once, the one that stays has its own deadline") {
  for (int round = 0; round != 300; ++round) {
    rondo::manual_timer time(options{.max_pending = 1});
    keyed_timers<int> timers(time);
    std::atomic<int> runs{0}, elsewhen{0};
    const auto set = [&](std::chrono::microseconds at) {
      const time_point due(at);
      timers.set_at(1, due, [&, due](const firing& f) {
        ++runs;
        elsewhen += f.due == due ? 0 : 1;
      });
    };
    set(1us);
    std::vector<std::thread> threads;
    for (int i = 0; i != 3; ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k != 20; ++k) set(1ms + (3 * k + i) * 1us);
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(time.advance(1s) == 1);
    CHECK(runs == 1);
    CHECK(elsewhen == 0);
  }
}

TEST_CASE("at the limit, others find no free place while a timer is replaced, and no replacing call fails") {
  timer t(options{.max_pending = 1});
  keyed_timers<int> timers(t);
  timers.set_after(1, 1h, [] {});
  std::atomic<bool> done{false};
  std::atomic<int> slipped_in{0};
  std::vector<std::thread> others;
  others.emplace_back([&] {
    while (!done) {
      try {
        t.schedule_after(1h, [] {});
        ++slipped_in;
      } catch (const rondo::capacity_error&) {
      }
    }
  });
  others.emplace_back([&] {
    while (!done) timers.set(1, every(1h), [] {});
  });
  for (int i = 0; i != 5000; ++i) {
    timers.set_after(1, 1h, [] {});
    timers.set(1, every(1h), [] {});
  }
  done = true;
  for (std::thread& other : others) other.join();
  CHECK(slipped_in == 0);
  CHECK(timers.contains(1));
  CHECK(t.pending() == 1);
  CHECK(adds_up(t.stats()));
}

}  // namespace on_top_keyed_timers_threads
