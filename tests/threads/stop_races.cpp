// stop() while everything else is going on.
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_stop_races {

using namespace rondo;
using namespace rondo::test;

/// Threads that schedule, cancel and move until their calls report that the timer is stopped.
class crowd {
 public:
  crowd(timer& t, int threads) : timer_(t) {
    for (int i = 0; i != threads; ++i) threads_.emplace_back([this, i] { use(static_cast<unsigned>(i)); });
  }
  void join() {
    for (std::thread& t : threads_) t.join();
  }
  /// Waits until all threads have begun.
  bool under_way() { return begun_.wait(static_cast<long>(threads_.size())); }

  std::atomic<long> scheduled{0}, cancelled{0}, ran{0}, in_progress{0}, ran_after_stop{0};
  std::atomic<bool> stopped{false};

 private:
  void use(unsigned state) {
    std::vector<timer_id> ids;
    for (int i = 0;; ++i) {
      if (i == 100) begun_.open();
      state = state * 1664525U + 1013904223U;
      try {
        ids.push_back(schedule(state >> 8));
        ++scheduled;
      } catch (const rondo::stopped_error&) {
        if (i < 100) begun_.open();
        return;
      }
      const timer_id any = ids[(state >> 4) % ids.size()];
      if (state % 3 == 0) cancelled += timer_.cancel(any) == cancel_result::cancelled;
      if (state % 3 == 1) timer_.reschedule_after(any, (state >> 12) % 1000 * 1us);
      if (ids.size() > 200) ids.erase(ids.begin(), ids.begin() + 100);
    }
  }

  timer_id schedule(unsigned random) {
    const auto work = [this] {
      ++in_progress;
      ran_after_stop += stopped.load();
      ++ran;
      --in_progress;
    };
    if (random % 50 == 0) return timer_.schedule_after(std::chrono::hours::max(), work);
    return timer_.schedule_after(random % 3000 * 1us, work);
  }

  timer& timer_;
  gate begun_;
  std::vector<std::thread> threads_;
};

/// Stops a timer from `stoppers` threads at once while a crowd is using it.
void stop_in_the_middle(executor run_on, int stoppers) {
  timer t(options{.tick = 10us, .buckets = 64, .run_on = std::move(run_on)});
  crowd users(t, 3);
  REQUIRE(users.under_way());
  std::vector<std::vector<unfired>> lists(static_cast<std::size_t>(stoppers));
  std::atomic<int> runs_in_progress{0};
  std::vector<std::thread> threads;
  for (auto& list : lists)
    threads.emplace_back([&] {
      list = t.stop();
      runs_in_progress += users.in_progress != 0;
      users.stopped = true;
    });
  for (std::thread& thread : threads) thread.join();
  users.join();

  CHECK(runs_in_progress == 0);
  CHECK(users.ran_after_stop == 0);
  std::size_t returned = 0;
  int lists_with_timers = 0;
  std::set<std::size_t> ids;
  for (const auto& list : lists) {
    returned += list.size();
    lists_with_timers += !list.empty();
    for (const unfired& u : list) ids.insert(std::hash<timer_id>{}(u.id));
  }
  CHECK(lists_with_timers <= 1);
  CHECK(ids.size() == returned);
  CHECK(users.scheduled == users.ran + users.cancelled + static_cast<long>(returned));
  CHECK(t.pending() == 0);
  const auto s = t.stats();
  CHECK(s.returned == returned);
  CHECK(s.scheduled == static_cast<std::uint64_t>(users.scheduled));
  CHECK(adds_up(s));
}

TEST_CASE("after stop() in the middle of everything, no task runs and no timer is lost") {
  for (int round = 0; round != 15; ++round) stop_in_the_middle({}, 1);
}

TEST_CASE("after stop() in the middle of everything on a pool, no task runs and no timer is lost") {
  for (int round = 0; round != 15; ++round) {
    pool workers(2);
    stop_in_the_middle(workers.executor(), 1);
  }
}

TEST_CASE("of several stop() calls at once, all wait and one gets the timers") {
  for (int round = 0; round != 15; ++round) {
    pool workers(2);
    stop_in_the_middle(workers.executor(), 3);
  }
}

/// Stops `t` while user code is in progress. That code ends once `may_end` is open, and then counts itself in `ended`.
void check_stop_waits(timer& t, gate& may_end, const int& ended) {
  gate about_to_stop;
  int seen = -1;
  std::thread stopper([&] {
    about_to_stop.open();
    t.stop();
    seen = ended;
  });
  REQUIRE(about_to_stop.wait());
  may_end.open();
  stopper.join();
  CHECK(seen == 1);
}

/// Stops a timer with these options while a run of its task is in progress.
void check_waiting(const options& o) {
  gate begun, may_end;
  int ended = 0;
  timer t(o);
  t.schedule_after(0s, [&] {
    begun.open();
    may_end.wait();
    ++ended;
  });
  REQUIRE(begun.wait());
  check_stop_waits(t, may_end, ended);
}

TEST_CASE("stop() waits for a run in progress") {
  check_waiting({});
  pool workers(1);
  check_waiting(options{.run_on = workers.executor()});
}

TEST_CASE("no stop() returns before the timers are taken") {
  for (int round = 0; round != 5; ++round) {
    timer t;
    for (int i = 0; i != 10'000; ++i) t.schedule_after(1h, [] {});
    std::atomic<int> ready{0}, too_early{0};
    std::vector<std::thread> stoppers;
    for (int i = 0; i != 3; ++i)
      stoppers.emplace_back([&] {
        for (++ready; ready != 3;) std::this_thread::yield();
        const auto list = t.stop();
        too_early += t.pending() != 0;
      });
    for (std::thread& s : stoppers) s.join();
    CHECK(too_early == 0);
    CHECK(t.stats().returned == 10'000);
  }
}

TEST_CASE("stop() waits for the executor and for on_error") {
  gate begun, may_end;
  int ended = 0;
  const auto user_code = [&] {
    begun.open();
    may_end.wait();
    ++ended;
  };
  options o;
  SUBCASE("the executor") {
    o.run_on = [&](const rondo::job&) { user_code(); };
  }
  SUBCASE("on_error") {
    o.on_error = [&](std::exception_ptr, const rondo::firing&) { user_code(); };
  }
  timer t(o);
  t.schedule_after(0s, [] { throw 1; });
  REQUIRE(begun.wait());
  check_stop_waits(t, may_end, ended);
}

TEST_CASE("stop() inside a task on the driver does not wait for that task") {
  gate done;
  std::size_t returned = 0;
  timer t;
  t.schedule_after(1h, [] {});
  t.schedule_every(1h, [] {});
  t.schedule_after(0s, [&] {
    returned = t.stop().size();
    done.open();
  });
  REQUIRE(done.wait());
  CHECK(returned == 2);
  CHECK(t.stop().empty());
  CHECK(adds_up(t.stats()));
}

TEST_CASE("stop() inside a task on a pool works while other tasks run there") {
  for (int round = 0; round != 50; ++round) {
    pool workers(2);
    std::atomic<long> ran{0};
    std::atomic<std::size_t> returned{0};
    gate done;
    timer t(options{.tick = 10us, .run_on = workers.executor()});
    long scheduled = 0;
    for (; scheduled != 200; ++scheduled) t.schedule_after(scheduled * 5us, [&] { ++ran; });
    t.schedule_after(300us, [&] {
      returned = t.stop().size();
      done.open();
    });
    REQUIRE(done.wait());
    t.stop();  // not from inside: waits for the runs in progress
    CHECK(ran + static_cast<long>(returned) == scheduled);
    CHECK(adds_up(t.stats()));
  }
}

}  // namespace threads_stop_races
