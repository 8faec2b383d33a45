// Listings of features.md, and of event_loops.md: a loop of one's own.
#include <functional>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <version>
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include <doctest/doctest.h>

#include <rondo/rondo.hpp>

namespace readme_features {

using namespace std::chrono_literals;

TEST_CASE("recurrences") {
  int runs = 0;
  const auto work = [&] { ++runs; };
  rondo::manual_timer timer;
  const rondo::time_point next_full_hour(1h);
  using namespace rondo;
  timer.schedule(every(333400us), work);                  // fixed rate, no drift
  timer.schedule(after_completion(1s), work);             // fixed delay, from the end of the run
  timer.schedule(intervals({1s, 2s, 5s}), work);          // three runs: after 1, 3 and 8 s
  timer.schedule(cycle({1s, 2s, 5s}), work);              // the same, over and over
  timer.schedule(backoff(100ms, 2, 30s).times(5), work);  // after 100, 200, 400 ms, …; five runs in all
  timer.schedule(every(1h).first_at(next_full_hour).jitter(0.1), work);
  timer.advance(10s);
  CHECK(runs == 29 + 10 + 3 + 4 + 5);
}

TEST_CASE("timers of one grid") {
  int runs = 0;
  const auto work = [&] { ++runs; };
  rondo::manual_timer timer;
  const rondo::time_point epoch;
  timer.advance(3s);
  timer.schedule(rondo::every(10s).aligned_to(epoch), work);  // at epoch + 10 s, 20 s, …
  timer.advance(4s);
  timer.schedule(rondo::every(5s).aligned_to(epoch), work);  // at epoch + 5 s, 10 s, …
  CHECK(timer.advance_to_next() == 2);
  CHECK(timer.now() == epoch + 10s);
  CHECK(runs == 2);
}

TEST_CASE("a timer that may be late") {
  int checks = 0;
  const auto check_for_updates = [&] { ++checks; };
  rondo::manual_timer timer;
  timer.schedule_every(30s, check_for_updates, {.slack = 1s});  // starts within a second of its deadline
  CHECK(timer.next_due() == rondo::time_point(30'720ms));
  timer.advance(31s);
  CHECK(checks == 1);
}

TEST_CASE("how many runs are left") {
  int attempts = 0;
  std::vector<int> given_up;
  const auto connect = [&] { return ++attempts == 100; };
  const auto give_up = [&] { given_up.push_back(attempts); };
  rondo::manual_timer timer;
  timer.schedule(rondo::backoff(1s, 2, 1min).times(5), [&](const rondo::firing& f) {
    if (!connect() && f.left == 0) give_up();  // none is left: this was the last attempt
  });
  timer.advance(1h);
  CHECK(given_up == std::vector{5});
}

TEST_CASE("runs that are missed, and that overlap") {
  int runs = 0;
  const auto work = [&] { ++runs; };
  rondo::manual_timer timer;
  using namespace rondo;
  timer.schedule(every(300ms).on_missed(missed_runs::skip), work);       // one run, then on with the grid
  timer.schedule(every(300ms).on_missed(missed_runs::burst, 10), work);  // makes up for each, at most ten
  timer.schedule(every(300ms).on_missed(missed_runs::delay), work);      // one run, then a new grid

  timer.schedule(every(300ms).on_overlap(overlapping_runs::skip), work);       // drops the point
  timer.schedule(every(300ms).on_overlap(overlapping_runs::queue_one), work);  // keeps one for later
  timer.schedule(every(300ms).on_overlap(overlapping_runs::allow), work);      // runs both at once
  timer.advance(300ms);
  timer.elapse(650ms);  // nobody looks until 950 ms
  timer.advance(250ms);
  CHECK(runs == 3 + 4 + 2 + 3 * 3);
  timer.advance(50ms);
  CHECK(runs == 3 + 4 + 3 + 3 * 3);  // the delayed one comes at 1250
}

struct job_list {
  std::vector<rondo::job> jobs;
  void submit(rondo::job j) { jobs.push_back(std::move(j)); }
  void work() {
    for (rondo::job& j : jobs) j();
  }
};

TEST_CASE("tasks on executors") {
  job_list pool, disk;
  int reports = 0;
  const auto write_report = [&] { ++reports; };
  rondo::manual_timer timer({.run_on = [&](rondo::job j) { pool.submit(std::move(j)); }});
  timer.schedule_every(1min, write_report, rondo::on([&](rondo::job j) { disk.submit(std::move(j)); }));
  timer.schedule_after(1s, [] {});
  timer.advance(1min);
  CHECK(pool.jobs.size() == 1);
  CHECK(disk.jobs.size() == 1);
  disk.work();
  CHECK(reports == 1);
  pool.work();
}

TEST_CASE("a timer with a name") {
  job_list disk;
  const auto write_report = [] {};
  const auto disk_jobs = [&](rondo::job j) { disk.submit(std::move(j)); };
  rondo::manual_timer timer;
  const auto report = timer.schedule_every(1min, write_report, {.run_on = disk_jobs, .name = "report"});
  const auto when = timer.due(report);               // none if it waits for no deadline or has ended
  for (const rondo::timer_info& t : timer.list()) {  // all that are pending or running, by deadline
    std::cout << to_string(t.id) << ' ' << t.name << ": " << t.runs << " runs\n";
  }
  CHECK(when == timer.now() + 1min);
}

TEST_CASE("a day of virtual time passes at once") {
  int runs = 0;
  const auto work = [&] { ++runs; };
  rondo::manual_timer time;
  time.schedule_every(333400us, work);
  time.advance(24h);  // 259,148 runs, at once
  CHECK(runs == 259'148);
}

TEST_CASE("a loop of one's own polls") {
  struct {
    int turns = 0;
    bool is_running() const { return turns != 3; }
    void wait_until(std::optional<rondo::time_point> until) {
      ++turns;
      if (until) std::this_thread::sleep_until(*until);
    }
    void wake() {}
  } loop;
  int runs = 0;
  rondo::polled_timer timer;
  timer.on_earlier([&] { loop.wake(); });  // needed only if other threads schedule
  timer.schedule_every(1ms, [&] { ++runs; });
  while (loop.is_running()) {
    loop.wait_until(timer.next_due());  // none: indefinitely
    timer.poll(100);                    // at most 100 runs at a time
  }
  CHECK(runs == 3);
}

TEST_CASE("a watchdog reports slow tasks") {
  std::vector<rondo::duration> slow;
  const auto log = [&](rondo::timer_id, rondo::duration took) { slow.push_back(took); };
  rondo::options chosen;
  chosen.slow_after = 5ms;
  chosen.on_slow = [&](const rondo::slow_run& s) { log(s.what.id, s.run_time); };
  rondo::manual_timer time(chosen);
  time.schedule_after(1s, [&] { time.elapse(5ms); });
  time.schedule_after(2s, [&] { time.elapse(6ms); });
  time.advance(3s);
  CHECK(slow == std::vector<rondo::duration>{6ms});
}

#ifdef __cpp_lib_jthread
TEST_CASE("a task that can be interrupted") {
  struct {
    int left = 10;
    bool has_next() const { return left != 0; }
    int next_file() { return left--; }
  } disk;
  int checked = 0;
  rondo::manual_timer pool_timer;
  const auto check = [&](int) {
    if (++checked == 3) pool_timer.stop();
  };
  const auto scan = pool_timer.schedule_every(1h, [&](std::stop_token asked) {
    while (disk.has_next() && !asked.stop_requested()) check(disk.next_file());
  });
  CHECK(pool_timer.pending(scan));
  pool_timer.advance(1h);
  CHECK(checked == 3);
}
#endif

struct session_id {
  int number;
  friend bool operator==(const session_id&, const session_id&) = default;
};

}  // namespace readme_features

template <>
struct std::hash<readme_features::session_id> {
  std::size_t operator()(const readme_features::session_id& s) const { return std::hash<int>()(s.number); }
};

namespace readme_features {

TEST_CASE("timers by key") {
  rondo::manual_timer timer;
  std::vector<int> closed;
  const auto close = [&](session_id s) { closed.push_back(s.number); };
  const session_id session{7};
  rondo::keyed_timers<session_id> timeouts(timer);            // one timer for each key
  timeouts.set_after(session, 30s, [=] { close(session); });  // replaces the timer that the key has
  timeouts.reschedule_after(session, 40s);                    // the session has sent something
  timer.advance(39s);
  CHECK(closed.empty());
  timer.advance(1s);
  CHECK(closed == std::vector{7});
}

}  // namespace readme_features
