// Listings of recipes.md: pauses, days, backoff, full pools, cores, metrics.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/rondo.hpp>

namespace readme_more_recipes {

using namespace std::chrono_literals;

/// The time that the timer had left; none if it is running or has ended.
std::optional<rondo::duration> pause(rondo::scheduler& timer, rondo::timer_id id) {
  const auto due = timer.due(id);
  if (!due || !timer.reschedule_at(id, rondo::time_point::max())) return {};  // pending, but never due
  return *due - timer.now();
}

bool resume(rondo::scheduler& timer, rondo::timer_id id, rondo::duration left) {
  return timer.reschedule_after(id, left);
}

TEST_CASE("pausing a timer") {
  rondo::manual_timer timer;
  int runs = 0;
  const rondo::timer_id upload = timer.schedule_after(10s, [&] { ++runs; });
  timer.advance(4s);
  const auto left = pause(timer, upload);
  REQUIRE(left);
  CHECK(*left == 6s);
  timer.advance(24h);
  CHECK(runs == 0);
  CHECK(timer.pending(upload));
  CHECK(resume(timer, upload, *left));
  timer.advance(5999ms);
  CHECK(runs == 0);
  timer.advance(1ms);
  CHECK(runs == 1);
  CHECK_FALSE(pause(timer, upload));
  CHECK_FALSE(resume(timer, upload, 1s));
}

#ifndef _WIN32

using wall_time = std::chrono::system_clock::time_point;

/// The time at which clocks in this process's time zone show `at`: the first one, if they are set back that night. (Which
/// one mktime() finds may depend on its earlier calls.)
wall_time time_of(std::tm at) {
  at.tm_isdst = -1;  // let mktime() find out
  const std::time_t found = std::mktime(&at), earlier = found - 3600;
  std::tm shown{};
  ::localtime_r(&earlier, &shown);
  return std::chrono::system_clock::from_time_t(shown.tm_hour == at.tm_hour ? earlier : found);
}

/// The first time from `now` on at which clocks show hour:minute.
wall_time next(int hour, int minute, wall_time now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm at{};
  ::localtime_r(&seconds, &at);
  at.tm_hour = hour;
  at.tm_min = minute;
  at.tm_sec = 0;
  const wall_time today = time_of(at);
  ++at.tm_mday;
  return today >= now ? today : time_of(at);
}

/// Runs `work` once a day. `wall_now` is system_clock::now, except in tests.
rondo::timer_id schedule_daily(rondo::scheduler& timer, int hour, int minute, std::function<void()> work,
                               std::function<wall_time()> wall_now = std::chrono::system_clock::now) {
  const auto wait = [=](std::chrono::minutes at_least) {
    const wall_time now = wall_now();
    return next(hour, minute, now + at_least) - now;
  };
  return timer.schedule(rondo::every(24h).first_after(wait(0min)), [=, &timer](const rondo::firing& f) {
    // A day may have 23 or 25 hours. Skips half an hour, so that a slightly slow clock causes no second run.
    timer.reschedule_after(f.id, wait(30min));
    work();
  });
}

TEST_CASE("a calendar without the calendar header") {
  const char* const zone = std::getenv("TZ");
  const std::optional<std::string> zone_before = zone ? std::optional<std::string>(zone) : std::nullopt;
  ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  ::tzset();

  rondo::manual_timer timer;
  const wall_time start = std::chrono::sys_days(std::chrono::year(2026) / 3 / 27) + 12h;
  const auto wall_now = [&] {
    return start + std::chrono::duration_cast<wall_time::duration>(timer.now().time_since_epoch());
  };
  std::vector<int> hours;  // from the start, at which it ran
  schedule_daily(
      timer, 6, 30, [&] { hours.push_back(static_cast<int>((wall_now() - start) / 30min)); }, wall_now);
  timer.advance(96h);
  // 05:30 UTC on the 28th, and 04:30 on the 29th, when clocks are set forward, and thereafter.
  CHECK(hours == std::vector{35, 81, 129, 177});

  // Clocks are set back on the night to 25 October. What else the process asks mktime() for makes no difference.
  rondo::manual_timer autumn;
  const wall_time before = std::chrono::sys_days(std::chrono::year(2026) / 10 / 23) + 12h;
  std::vector<int> hours_of_autumn;
  schedule_daily(
      autumn, 2, 30,
      [&] {
        hours_of_autumn.push_back(static_cast<int>(autumn.now().time_since_epoch() / 30min));
        std::tm christmas{};
        christmas.tm_year = 126;
        christmas.tm_mon = 11;
        christmas.tm_mday = 24;
        std::mktime(&christmas);
      },
      [&] {
        return before + std::chrono::duration_cast<wall_time::duration>(autumn.now().time_since_epoch());
      });
  autumn.advance(84h);
  CHECK(hours_of_autumn == std::vector{25, 73, 123});

  if (zone_before)
    ::setenv("TZ", zone_before->c_str(), 1);
  else
    ::unsetenv("TZ");
  ::tzset();
}

#endif

TEST_CASE("backoff from the end of an attempt") {
  rondo::manual_timer timer;
  std::vector<std::int64_t> begun;
  int failures = 0;
  bool gave_up = false;
  const auto connect = [&] {
    begun.push_back(timer.now().time_since_epoch() / 1ms);
    timer.elapse(1s);  // an attempt takes as long
    return ++failures > 3;
  };
  const auto give_up = [&] { gave_up = true; };

  // At once, then 100, 200, 400 ms … after each failed attempt.
  timer.schedule(rondo::after_completion(30s).first_after(0s).times(10),
                 [&, wait = 100ms](const rondo::firing& attempt) mutable {
                   if (connect()) {
                     timer.cancel(attempt.id);
                   } else if (attempt.run == 10) {
                     give_up();
                   } else {
                     timer.reschedule_after(attempt.id, wait);  // from now, the end of the attempt
                     wait = std::min<std::chrono::milliseconds>(2 * wait, 30s);
                   }
                 });

  timer.advance(1h);
  CHECK(begun == std::vector<std::int64_t>{0, 1100, 2300, 3700});
  CHECK(timer.pending() == 0);
  CHECK_FALSE(gave_up);
}

TEST_CASE("a full pool") {
  int runs = 0;
  const auto work = [&] { ++runs; };

  std::deque<rondo::job> queue;
  std::vector<std::string> dropped;
  rondo::options chosen;
  chosen.run_on = [&](rondo::job j) {
    if (queue.size() < 2) queue.push_back(std::move(j));
  };  // if the queue is full, the job is destroyed here, and its run does not happen
  chosen.on_rejected = [&](const rondo::firing& f) { dropped.emplace_back(f.name); };
  rondo::manual_timer timer(std::move(chosen));

  timer.schedule_every(1s, work, {.name = "poll"});
  timer.schedule_after(1s, work, {.name = "report"});
  timer.schedule_after(1s, work, {.name = "invoice"});
  timer.advance(
      1s);  // poll and report are queued, invoice is lost, and poll comes again after another second

  CHECK(dropped == std::vector<std::string>{"invoice"});
  CHECK(timer.stats().rejected == 1);
  for (rondo::job& j : queue) j();
  queue.clear();
  CHECK(runs == 2);
  timer.advance(1s);
  CHECK(queue.size() == 1);
  for (rondo::job& j : queue) j();
  CHECK(runs == 3);
  CHECK(timer.pending() == 1);
}

TEST_CASE("one timer for each core") {
  int timeouts = 0;
  const auto on_timeout = [&] { ++timeouts; };

  const unsigned cores = std::max(2U, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<rondo::timer>> timers;
  for (unsigned core = 0; core != cores; ++core)
    timers.push_back(std::make_unique<rondo::timer>(rondo::options{.name = "timer " + std::to_string(core)}));
  const auto timer_of = [&](std::uint64_t connection) -> rondo::timer& {
    return *timers[connection % timers.size()];
  };

  const std::uint64_t connection = 17;
  const rondo::timer_id timeout = timer_of(connection).schedule_after(30s, on_timeout);
  timer_of(connection).cancel(timeout);  // any other timer would return gone

  rondo::histogram lateness;  // of all timers
  for (const auto& timer : timers) lateness += timer->stats().lateness;

  CHECK(timeouts == 0);
  CHECK(lateness.count() == 0);
  CHECK(timer_of(connection).stats().cancelled == 1);
  CHECK(timer_of(connection + 1).stats().cancelled == 0);
}

/// A histogram in the text format of Prometheus, with bounds that are the same in every scrape.
void print(std::ostream& out, const std::string& name, const rondo::histogram& h) {
  const auto seconds = [](rondo::duration d) { return std::chrono::duration<double>(d).count(); };
  const auto buckets = h.buckets();
  auto next = buckets.begin();
  std::uint64_t count = 0;  // Prometheus counts from zero up to each bound
  out << "# TYPE " << name << " histogram\n";
  for (const rondo::duration bound : {rondo::duration(100us), rondo::duration(1ms), rondo::duration(10ms),
                                      rondo::duration(100ms), rondo::duration(1s)}) {
    for (; next != buckets.end() && next->upper <= bound; ++next) count += next->count;
    out << name << "_bucket{le=\"" << seconds(bound) << "\"} " << count << '\n';
  }
  out << name << "_bucket{le=\"+Inf\"} " << h.count() << '\n';
  out << name << "_sum " << seconds(h.sum()) << '\n' << name << "_count " << h.count() << '\n';
}

void print(std::ostream& out, const rondo::statistics& s) {
  out.precision(12);
  out << "# TYPE timers_pending gauge\ntimers_pending " << s.pending << '\n';
  out << "# TYPE timers_fired_total counter\ntimers_fired_total " << s.fired << '\n';
  out << "# TYPE timers_failed_total counter\ntimers_failed_total " << s.failed << '\n';
  print(out, "timers_lateness_seconds", s.lateness);
  print(out, "timers_run_seconds", s.run_time);
}

const std::string scraped = R"(
# TYPE timers_pending gauge
timers_pending 1
# TYPE timers_fired_total counter
timers_fired_total 4
# TYPE timers_failed_total counter
timers_failed_total 0
# TYPE timers_lateness_seconds histogram
timers_lateness_seconds_bucket{le="0.0001"} 2
timers_lateness_seconds_bucket{le="0.001"} 3
timers_lateness_seconds_bucket{le="0.01"} 4
timers_lateness_seconds_bucket{le="0.1"} 4
timers_lateness_seconds_bucket{le="1"} 4
timers_lateness_seconds_bucket{le="+Inf"} 4
timers_lateness_seconds_sum 0.0025
timers_lateness_seconds_count 4
)";

TEST_CASE("metrics for Prometheus") {
  rondo::manual_timer timer;
  timer.schedule(rondo::every(1s).times(2), [] {});
  timer.schedule_after(2s + 500us, [] {});  // its tick begins half a millisecond later
  timer.schedule_after(3s, [] {});
  timer.schedule_after(1h, [] {});
  timer.advance(2500ms);
  timer.elapse(502ms);
  timer.advance(0s);
  std::ostringstream out;
  print(out, timer.stats());
  CHECK(out.str().starts_with(scraped.substr(1)));
}

void say_why(const rondo::trace& trace, std::ostream& out) {
  for (const auto& run : trace.late(10ms)) {
    out << run.name << " was " << run.lateness / 1ms << " ms late: " << run.behind_tasks / 1ms
        << " behind tasks";
    if (!run.longest_name.empty()) out << " (" << run.longest_name << ')';
    out << ", " << run.in_executor / 1ms << " in its executor, " << run.woken_late / 1ms << " asleep, "
        << run.in_pass / 1ms << " in the wheel\n";
  }
}

TEST_CASE("my timers are late") {
  const auto trace = std::make_shared<rondo::trace>();
  rondo::manual_timer timer(rondo::options{.traced_by = trace});
  timer.schedule_after(1s, [&] { timer.elapse(30ms); }, {.name = "backup"});
  timer.schedule_after(1s, [] {}, {.name = "report"});
  timer.elapse(1001ms);
  timer.advance(0ms);
  std::ostringstream out;
  say_why(*trace, out);
  CHECK(out.str() ==
        "report was 31 ms late: 30 behind tasks (backup), 0 in its executor, 1 asleep, 0 in the wheel\n");
  {
    std::ofstream file("timers.json");
    trace->write(file);
  }
  CHECK(std::filesystem::file_size("timers.json") > 500);
  std::filesystem::remove("timers.json");
}

}  // namespace readme_more_recipes
