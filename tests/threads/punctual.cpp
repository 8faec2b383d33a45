// Real time: no task is early, and none is lost.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "platform.hpp"
#include "threads/patience.hpp"

#if RONDO_HAS_THREAD_NAMES
#include <pthread.h>
#endif
#if RONDO_HAS_TIMER_SLACK
#include <sys/prctl.h>
#endif

namespace threads_punctual {

using namespace rondo;
using namespace rondo::test;

using clock_type = rondo::scheduler::clock;

struct seen_run {
  firing fact;
  time_point began;
};

TEST_CASE("no one-shot starts before its deadline, and each gets its lateness") {
  for (const duration tick : {duration(1ms), duration(10us), duration(1us)}) {
    gate done;
    constexpr std::size_t many = 200;
    std::vector<seen_run> runs(many);
    std::vector<time_point> dues(many);
    timer t(options{.tick = tick});
    for (std::size_t i = 0; i != many; ++i) {
      dues[i] = t.now() + (i * 7919 % 20'000) * 1us;
      t.schedule_at(dues[i], [&done, &run = runs[i]](const firing& f) {
        run = {f, clock_type::now()};
        done.open();
      });
    }
    REQUIRE(done.wait(many));
    for (std::size_t i = 0; i != many; ++i) {
      CHECK(runs[i].began >= dues[i]);
      CHECK(runs[i].fact.due == dues[i]);
      CHECK(runs[i].fact.lateness >= duration::zero());
      CHECK(runs[i].fact.due + runs[i].fact.lateness <= runs[i].began);
    }
  }
}

TEST_CASE("a delay counts from the call") {
  gate done;
  time_point began;
  timer t;
  const time_point before = clock_type::now();
  t.schedule_after(10ms, [&] {
    began = clock_type::now();
    done.open();
  });
  REQUIRE(done.wait());
  CHECK(began >= before + 10ms);
}

TEST_CASE("a periodic task keeps its grid, and each point is accounted for") {
  gate done;
  std::vector<seen_run> runs;
  constexpr auto period = 1'300us;
  timer t(options{.tick = 100us});
  const auto id = t.schedule_every(period, [&](const firing& f) {
    if (runs.size() == 20) return;
    runs.push_back({f, clock_type::now()});
    if (runs.size() == 20) done.open();
  });
  REQUIRE(done.wait());
  t.cancel_and_wait(id);
  for (std::size_t i = 0; i != runs.size(); ++i) {
    CHECK(runs[i].began >= runs[i].fact.due);
    CHECK(runs[i].fact.run == i + 1);
    if (i == 0) continue;
    const auto& last = runs[i - 1].fact;
    CHECK(runs[i].fact.due == last.due + static_cast<int>(last.missed + 1) * period);
  }
}

TEST_CASE("tasks with zero and negative delays run at once, on the driver and not inside the call") {
  gate ran;
  std::thread::id where;
  timer t;
  for (const duration d : {duration(0), duration(-1h), duration::min()})
    t.schedule_after(d, [&] {
      where = std::this_thread::get_id();
      ran.open();
    });
  REQUIRE(ran.wait(3));
  CHECK(where != std::this_thread::get_id());
}

TEST_CASE("all inline tasks run on the driver's thread") {
  gate ran;
  std::vector<std::thread::id> where(50);
  timer t;
  for (std::size_t i = 0; i != where.size(); ++i)
    t.schedule_after(i % 3 * 1ms, [&, i] {
      where[i] = std::this_thread::get_id();
      ran.open();
    });
  REQUIRE(ran.wait(50));
  CHECK(where == std::vector(50, where[0]));
}

#if RONDO_HAS_THREAD_NAMES
TEST_CASE("the driver thread has the name from the options, truncated if necessary") {
  struct {
    const char *given, *seen;
  } const rows[] = {{"rondo", "rondo"}, {"a-name-that-is-much-too-long", "a-name-that-is-"}, {"", ""}};
  for (const auto& row : rows) {
    gate ran;
    char name[32] = {};
    timer t(options{.name = row.given});
    t.schedule_after(0s, [&] {
      pthread_getname_np(pthread_self(), name, sizeof name);
      ran.open();
    });
    REQUIRE(ran.wait());
    CHECK(std::string(name) == row.seen);
  }
}
#endif

#if RONDO_HAS_TIMER_SLACK
TEST_CASE(
    "the driver thread's timer slack is minimal: the kernel does not delay its wake-ups to batch them") {
  gate ran;
  int slack = 0;
  timer t;
  t.schedule_after(0s, [&] {
    slack = prctl(PR_GET_TIMERSLACK);
    ran.open();
  });
  REQUIRE(ran.wait());
  CHECK(slack <= 1);  // ns; by default 50,000, and 0 for real-time priorities
}
#endif

TEST_CASE("a task that throws does not end the driver") {
  gate reported, ran;
  timer t(options{.on_error = [&](std::exception_ptr, const firing&) { reported.open(); }});
  t.schedule_after(0s, [] { throw 1; });
  REQUIRE(reported.wait());
  t.schedule_after(0s, [&] { ran.open(); });
  CHECK(ran.wait());
}

TEST_CASE("many timers with few deadlines all run") {
  gate ran;
  constexpr long many = 20'000;
  timer t(options{.buckets = 8});
  for (long i = 0; i != many; ++i) t.schedule_after(i % 10 * 1ms, [&] { ran.open(); });
  CHECK(ran.wait(many));
}

}  // namespace threads_punctual
