// What trace::late() says on virtual time: exactly.
#include "scheduler/virtual_time.hpp"

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rondo/polled_timer.hpp>
#include <rondo/trace.hpp>

#include "threads/patience.hpp"

namespace scheduler_late_runs {

using namespace rondo;
using namespace rondo::test;

using late_run = trace::late_run;

/// A scheduler that is traced.
struct traced_time {
  std::shared_ptr<trace> into = std::make_shared<trace>();
  std::deque<job> jobs;
  manual_timer time;

  explicit traced_time(options o = {}) : time(with_trace(std::move(o))) {}

  options with_trace(options o) const {
    o.traced_by = into;
    return o;
  }
  /// An executor whose jobs run when the test says so.
  executor queue() {
    return [this](job j) { jobs.push_back(std::move(j)); };
  }
  void run_next_job() {
    job next = std::move(jobs.front());
    jobs.pop_front();
    next();
  }
  /// A task that takes that long.
  auto taking(duration d) {
    return [this, d] { time.elapse(d); };
  }
  /// The only run that is late; the parts add up.
  late_run only() const {
    const std::vector<late_run> all = into->late(0ns);
    REQUIRE(all.size() == 1);
    return all[0];
  }
};

bool adds_up(const late_run& r) {
  const bool is_negative =
      r.woken_late < 0ns || r.behind_tasks < 0ns || r.in_executor < 0ns || r.in_pass < 0ns;
  return !is_negative && r.woken_late + r.behind_tasks + r.in_executor + r.in_pass == r.lateness;
}

/// As text: the parts in milliseconds, and what the run waited for.
std::string parts(const late_run& r) {
  CHECK(adds_up(r));
  const auto ms = [](duration d) {
    std::string text = std::to_string(d / 1ms);
    const auto rest = d % 1ms / 1us;
    return rest == 0 ? text : text + "." + std::to_string(1000 + rest).substr(1);
  };
  std::string text;
  const auto add = [&](const char* what, duration d) {
    if (d == 0ns) return;
    if (!text.empty()) text += ", ";
    text += what + (" " + ms(d));
  };
  add("woken", r.woken_late);
  add("behind", r.behind_tasks);
  add("executor", r.in_executor);
  add("pass", r.in_pass);
  if (!r.longest_name.empty()) text += " <- " + r.longest_name;
  return text;
}

TEST_CASE("a driver that stalls wakes late") {
  traced_time t;
  const timer_id id = t.time.schedule_after(5ms, doing_nothing(), {.name = "report"});
  t.time.elapse(25ms);
  t.time.advance(0ms);
  const late_run late = t.only();
  CHECK(parts(late) == "woken 20");
  CHECK(late.id == id);
  CHECK(late.name == "report");
  CHECK(late.run == 1);
  CHECK(late.due == at(5ms));
  CHECK(late.lateness == 20ms);
  CHECK(late.longest == timer_id());
}

TEST_CASE("a run waits behind the tasks of the driver") {
  traced_time t;
  const timer_id slow = t.time.schedule_after(5ms, t.taking(20ms), {.name = "slow"});
  t.time.schedule_after(10ms, t.taking(3ms), {.name = "short"});
  t.time.schedule_after(11ms, doing_nothing(), {.name = "last"});
  t.time.advance(100ms);
  const std::vector<late_run> all = t.into->late(0ns);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "short");
  CHECK(parts(all[0]) == "behind 15 <- slow");
  CHECK(all[1].name == "last");
  CHECK(parts(all[1]) == "behind 17 <- slow");
  CHECK(all[1].longest == slow);
}

TEST_CASE("the task that a run waited for most is the one whose runs took most") {
  traced_time t;
  t.time.schedule_after(1ms, t.taking(8ms), {.name = "once"});
  for (int i = 0; i != 3; ++i) t.time.schedule_after(1ms, t.taking(1ms));
  t.time.schedule(every(1ms).on_missed(missed_runs::burst).times(3), t.taking(2ms), {.name = "often"});
  t.time.schedule_after(4ms, doing_nothing(), {.name = "last"});
  t.time.advance(100ms);
  const late_run last = t.into->late(13ms).at(0);
  CHECK(last.name == "last");
  CHECK(parts(last) == "behind 14 <- often");  // 6 ms, and 5 ms of the longest run
}

TEST_CASE("a run waits in its executor") {
  traced_time t;
  t.time.schedule_after(5ms, doing_nothing(), on(t.queue()));
  t.time.advance(5ms);
  t.time.elapse(30ms);
  t.run_next_job();
  CHECK(parts(t.only()) == "executor 30");
}

TEST_CASE("a run in an executor waits for others on the thread that runs it") {
  traced_time t;
  t.time.schedule_after(5ms, t.taking(8ms), {.run_on = t.queue(), .name = "slow"});
  t.time.schedule_after(5ms, doing_nothing(), {.run_on = t.queue(), .name = "next"});
  t.time.advance(5ms);
  t.run_next_job();
  t.run_next_job();
  CHECK(t.only().name == "next");
  CHECK(parts(t.only()) == "executor 8 <- slow");
}

TEST_CASE("an executor that does not return keeps others waiting") {
  traced_time t;
  const auto busy = [&](job j) {
    t.time.elapse(7ms);
    t.jobs.push_back(std::move(j));
  };
  t.time.schedule_after(5ms, doing_nothing(), {.run_on = busy, .name = "handed over"});
  t.time.schedule_after(6ms, doing_nothing(), {.name = "inline"});
  t.time.advance(6ms);
  CHECK(t.only().name == "inline");
  CHECK(parts(t.only()) == "executor 6");
}

TEST_CASE("an executor that runs jobs at once makes others wait for these") {
  traced_time t;
  const auto at_once = [&](job j) {
    t.time.elapse(2ms);
    j();
  };
  t.time.schedule_after(5ms, t.taking(10ms), {.run_on = at_once, .name = "at once"});
  t.time.schedule_after(5ms, doing_nothing(), {.name = "inline"});
  t.time.advance(5ms);
  const std::vector<late_run> all = t.into->late(0ns);
  REQUIRE(all.size() == 2);
  CHECK(parts(all[0]) == "executor 2");
  CHECK(parts(all[1]) == "behind 10, executor 2 <- at once");
}

TEST_CASE("a run waits for its tick in a pass") {
  traced_time t({.tick = 10ms});
  t.time.schedule_after(4ms, doing_nothing());
  t.time.advance(10ms);
  CHECK(parts(t.only()) == "pass 6");
}

TEST_CASE("slack is a wait in a pass, and what comes after it is not") {
  traced_time t;
  t.time.schedule_after(5ms, doing_nothing(), {.slack = 3ms});
  t.time.elapse(20ms);
  t.time.advance(0ms);
  CHECK(parts(t.only()) == "woken 12, pass 3");
}

TEST_CASE("what a pass does between runs is the wheel's own work") {
  traced_time t;
  struct slow_end {
    manual_timer& time;
    bool is_last = true;
    explicit slow_end(manual_timer& of) : time(of) {}
    slow_end(slow_end&& from) noexcept : time(from.time), is_last(std::exchange(from.is_last, false)) {}
    ~slow_end() {
      if (is_last) time.elapse(6ms);
    }
  };
  t.time.schedule_after(5ms, [kept = slow_end(t.time)] {});
  t.time.schedule_after(7ms, doing_nothing());
  t.time.advance(7ms);
  CHECK(parts(t.only()) == "pass 4");
}

TEST_CASE("all four parts in one run") {
  traced_time t({.tick = 10ms});
  const auto slow_executor = [&](job j) { t.jobs.push_back(std::move(j)); };
  t.time.schedule_after(8ms, t.taking(40ms), {.name = "slow"});
  t.time.schedule_after(9ms, doing_nothing(), {.run_on = slow_executor, .name = "unlucky"});
  t.time.elapse(13ms);
  t.time.advance(0ms);
  t.time.elapse(5ms);
  t.run_next_job();
  const std::vector<late_run> all = t.into->late(40ms);
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "unlucky");
  CHECK(parts(all[0]) == "woken 3, behind 40, executor 5, pass 1 <- slow");
}

TEST_CASE("a run that waits for the previous one of its timer waits for what that waits for") {
  traced_time t;
  // (Of a std::binary_semaphore, g++ 12's library for Windows can lose the wake-up.)
  gate begun, may_end;
  long runs = 0;
  const auto job = [&] {
    begun.open();
    may_end.wait(++runs);
  };
  t.time.schedule(every(10ms).on_overlap(overlapping_runs::queue_one), job,
                  {.run_on = t.queue(), .name = "job"});
  t.time.advance(23ms);  // the executor has the first run, and the second one is kept back
  std::thread other([&] { t.run_next_job(); });
  REQUIRE(begun.wait());
  t.time.elapse(4ms);
  may_end.open();
  other.join();
  t.time.elapse(2ms);
  t.time.advance(0ms);
  REQUIRE(t.jobs.size() == 1);
  may_end.open();
  t.time.elapse(1ms);
  t.run_next_job();
  const std::vector<late_run> all = t.into->late(0ns);
  REQUIRE(all.size() == 2);
  CHECK(parts(all[0]) == "executor 13");
  CHECK(all[1].due == at(20ms));
  CHECK(parts(all[1]) == "woken 2, behind 4, executor 4 <- job");
}

TEST_CASE("what an executor's thread does keeps nobody from the driver's thread") {
  traced_time t;
  t.time.schedule_after(5ms, t.taking(4ms), {.run_on = t.queue(), .name = "job"});
  t.time.schedule_after(6ms, doing_nothing(), {.name = "inline"});
  t.time.advance(5ms);
  std::thread([&] { t.run_next_job(); }).join();
  t.time.advance(0ms);
  CHECK(t.only().name == "inline");
  CHECK(parts(t.only()) == "woken 3");
}

TEST_CASE("late runs of a burst are all late because the driver was") {
  traced_time t;
  t.time.schedule(every(10ms).on_missed(missed_runs::burst), t.taking(1ms), {.name = "tick"});
  t.time.elapse(35ms);
  t.time.advance(0ms);
  const std::vector<late_run> all = t.into->late(0ns);
  REQUIRE(all.size() == 3);
  CHECK(parts(all[0]) == "woken 25");
  CHECK(parts(all[1]) == "woken 15, behind 1 <- tick");
  CHECK(parts(all[2]) == "woken 5, behind 2 <- tick");
  CHECK(all[2].run == 3);
}

TEST_CASE("late() leaves out what is not later, and what has not started") {
  traced_time t;
  t.time.schedule_after(5ms, t.taking(10ms));
  t.time.schedule_after(6ms, doing_nothing());
  t.time.schedule_after(5ms, doing_nothing(), on(t.queue()));
  t.time.advance(7ms);
  CHECK(t.into->late(0ns).size() == 1);
  CHECK(t.into->late(9ms).empty());
  CHECK(t.into->late(8'999us).size() == 1);
  CHECK(t.into->late(std::chrono::hours::max()).empty());
}

TEST_CASE("a run that is in progress is late, and others wait for it") {
  traced_time t;
  std::vector<late_run> seen;
  t.time.schedule_after(5ms, [&] {
    t.time.elapse(2ms);
    seen = t.into->late(0ns);
  });
  t.time.elapse(6ms);
  t.time.advance(0ms);
  REQUIRE(seen.size() == 1);
  CHECK(parts(seen[0]) == "woken 1");
}

TEST_CASE("schedulers that share a trace have their own times") {
  const auto into = std::make_shared<trace>();
  manual_timer a({.traced_by = into});
  manual_timer b({.traced_by = into});
  const timer_id of_a = a.schedule_after(1ms, [&] { a.elapse(50ms); }, {.name = "slow in a"});
  const timer_id of_b = b.schedule_after(2ms, doing_nothing());
  a.schedule_after(2ms, doing_nothing());
  a.advance(2ms);
  b.elapse(10ms);
  b.advance(0ms);
  const std::vector<late_run> all = into->late(0ns);
  REQUIRE(all.size() == 2);
  CHECK(parts(all[0]) == "woken 8");
  CHECK(all[0].id == of_b);
  CHECK(parts(all[1]) == "behind 49 <- slow in a");
  CHECK(all[1].longest == of_a);
}

TEST_CASE("one thread that polls two schedulers: each waits for the tasks of the other one") {
  const auto into = std::make_shared<trace>();
  polled_timer a({.traced_by = into});
  polled_timer b({.traced_by = into});
  const auto busy = [] {
    const auto end = std::chrono::steady_clock::now() + 5ms;
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  a.schedule_after(0ms, busy, {.name = "busy"});
  b.schedule_after(0ms, doing_nothing(), {.name = "waits"});
  a.poll();
  b.poll();
  const std::vector<late_run> all = into->late(5ms);
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "waits");
  CHECK(adds_up(all[0]));
  CHECK(all[0].behind_tasks >= 5ms);
  CHECK(all[0].longest_name == "busy");
}

TEST_CASE("a deadline that had passed when it was set is nobody's fault") {
  const auto into = std::make_shared<trace>();
  polled_timer time({.traced_by = into});
  time.schedule_at(time.now() - 1h, doing_nothing());
  time.poll();
  const std::vector<late_run> all = into->late(1ms);
  REQUIRE(all.size() == 1);
  CHECK(adds_up(all[0]));
  CHECK(all[0].in_pass >= 1h);
  CHECK(all[0].woken_late < 1h);
}

TEST_CASE("a task that throws out of a pass is recorded as others are") {
  traced_time t({.propagate_exceptions = true});
  t.time.schedule_after(5ms,
                        [&] {
                          t.time.elapse(4ms);
                          throw std::runtime_error("on purpose");
                        },
                        {.name = "throws"});
  t.time.schedule_after(6ms, doing_nothing());
  CHECK_THROWS_AS(t.time.advance(5ms), std::runtime_error);
  t.time.elapse(1ms);
  t.time.advance(0ms);
  CHECK(parts(t.only()) == "woken 1, behind 3 <- throws");
}

TEST_CASE("times at both ends of the clock") {
  for (const time_point start : {time_point::min(), time_point::max() - 1h}) {
    const auto into = std::make_shared<trace>();
    manual_timer time({.traced_by = into}, start);
    time.schedule_at(time_point::min(), doing_nothing());
    time.advance(0ms);
    time.schedule_after(1ms, doing_nothing());
    time.elapse(std::chrono::hours(24 * 365 * 200));
    time.advance(0ms);
    for (const late_run& r : into->late(0ns)) CHECK(adds_up(r));
  }
}

TEST_CASE("a trace outlives its schedulers") {
  const auto into = std::make_shared<trace>();
  {
    manual_timer time({.traced_by = into});
    time.schedule_after(5ms, doing_nothing(), {.name = "early"});
    time.elapse(10ms);
    time.advance(0ms);
  }
  REQUIRE(into.use_count() == 1);
  REQUIRE(into->late(0ns).size() == 1);
  CHECK(into->late(0ns)[0].name == "early");
}

}  // namespace scheduler_late_runs
