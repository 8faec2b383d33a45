// The text format for Prometheus.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "cache_refresh/web/formats.hpp"
#include "web_figures.hpp"

namespace cache_refresh_web_prometheus {

using namespace std::chrono_literals;
using cache_refresh::prometheus_text;
using cache_refresh::snapshot;
using cache_refresh::test::small_snapshot;
using cache_refresh::test::two_runs;

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) found.push_back(line);
  return found;
}

std::string value_of(const std::string& text, const std::string& series) {
  for (const std::string& line : lines_with(text, series + " "))
    if (line.rfind(series + " ", 0) == 0) return line.substr(series.size() + 1);
  return "no " + series;
}

std::uint64_t count_until(const std::string& text, const std::string& name, const std::string& bound) {
  return std::stoull(value_of(text, name + "_bucket{le=\"" + bound + "\"}"));
}

// Everything except the buckets of histograms.
constexpr char expected[] =
    R"(# HELP cache_refresh_info The origin of this cache, and how it refreshes.
# TYPE cache_refresh_info gauge
cache_refresh_info{mode="refresh-ahead",origin="items.db, an SQLite database"} 1
# HELP cache_refresh_uptime_seconds Since the run began.
# TYPE cache_refresh_uptime_seconds gauge
cache_refresh_uptime_seconds 1.5
# HELP cache_refresh_keys Keys in the cache: fresh, stale but served, and without a value.
# TYPE cache_refresh_keys gauge
cache_refresh_keys{state="fresh"} 7
cache_refresh_keys{state="stale"} 2
cache_refresh_keys{state="empty"} 1
# HELP cache_refresh_keys_failing Keys whose last load failed.
# TYPE cache_refresh_keys_failing gauge
cache_refresh_keys_failing 4
# HELP cache_refresh_served_for_seconds Every value that is served now will be served for this long.
# TYPE cache_refresh_served_for_seconds gauge
cache_refresh_served_for_seconds 25
# HELP cache_refresh_hits_total Reads served at once, stale ones included.
# TYPE cache_refresh_hits_total counter
cache_refresh_hits_total 30
# HELP cache_refresh_stale_hits_total Reads served at once with a stale value.
# TYPE cache_refresh_stale_hits_total counter
cache_refresh_stale_hits_total 5
# HELP cache_refresh_misses_total Reads for which there was nothing to serve.
# TYPE cache_refresh_misses_total counter
cache_refresh_misses_total 6
# HELP cache_refresh_unserved_total Reads that got no value.
# TYPE cache_refresh_unserved_total counter
cache_refresh_unserved_total 16
# HELP cache_refresh_read_wait_seconds How long readers waited for an answer.
# TYPE cache_refresh_read_wait_seconds histogram
cache_refresh_read_wait_seconds_sum 160
cache_refresh_read_wait_seconds_count 10
# HELP cache_refresh_value_age_seconds Age of the values served, since the origin was asked.
# TYPE cache_refresh_value_age_seconds histogram
cache_refresh_value_age_seconds_sum 0
cache_refresh_value_age_seconds_count 0
# HELP cache_refresh_loads_total Loads begun.
# TYPE cache_refresh_loads_total counter
cache_refresh_loads_total 20
# HELP cache_refresh_loads_changed_total Loads that brought a value.
# TYPE cache_refresh_loads_changed_total counter
cache_refresh_loads_changed_total 9
# HELP cache_refresh_loads_confirmed_total Loads that reported that the value has not changed.
# TYPE cache_refresh_loads_confirmed_total counter
cache_refresh_loads_confirmed_total 8
# HELP cache_refresh_loads_failed_total Loads that failed or took too long.
# TYPE cache_refresh_loads_failed_total counter
cache_refresh_loads_failed_total 3
# HELP cache_refresh_loads_failed_in_a_row Loads that have failed since the last one that succeeded.
# TYPE cache_refresh_loads_failed_in_a_row gauge
cache_refresh_loads_failed_in_a_row 9
# HELP cache_refresh_loads_unread_total Loads of keys that nobody had read since the load before.
# TYPE cache_refresh_loads_unread_total counter
cache_refresh_loads_unread_total 11
# HELP cache_refresh_late_answers_total Answers dropped because their load had been given up or their key was gone.
# TYPE cache_refresh_late_answers_total counter
cache_refresh_late_answers_total 12
# HELP cache_refresh_forgotten_keys_total Keys dropped because nobody read them.
# TYPE cache_refresh_forgotten_keys_total counter
cache_refresh_forgotten_keys_total 13
# HELP cache_refresh_loads_in_progress Loads whose answers are awaited.
# TYPE cache_refresh_loads_in_progress gauge
cache_refresh_loads_in_progress 14
# HELP cache_refresh_loads_waiting Loads that wait for another one to end.
# TYPE cache_refresh_loads_waiting gauge
cache_refresh_loads_waiting 15
# HELP cache_refresh_edits_total Changes that this program made at the origin.
# TYPE cache_refresh_edits_total counter
cache_refresh_edits_total 17
# HELP cache_refresh_load_duration_seconds How long the origin took.
# TYPE cache_refresh_load_duration_seconds histogram
cache_refresh_load_duration_seconds_sum 0
cache_refresh_load_duration_seconds_count 0
# HELP cache_refresh_timer_pending Timers that are pending.
# TYPE cache_refresh_timer_pending gauge
cache_refresh_timer_pending 18
# HELP cache_refresh_timer_scheduled_total Timers ever scheduled.
# TYPE cache_refresh_timer_scheduled_total counter
cache_refresh_timer_scheduled_total 19
# HELP cache_refresh_timer_fired_total Runs of the timers' tasks.
# TYPE cache_refresh_timer_fired_total counter
cache_refresh_timer_fired_total 0
# HELP cache_refresh_timer_completed_total Timers that ended by themselves.
# TYPE cache_refresh_timer_completed_total counter
cache_refresh_timer_completed_total 0
# HELP cache_refresh_timer_cancelled_total Timers cancelled.
# TYPE cache_refresh_timer_cancelled_total counter
cache_refresh_timer_cancelled_total 0
# HELP cache_refresh_timer_failed_total Runs that threw.
# TYPE cache_refresh_timer_failed_total counter
cache_refresh_timer_failed_total 0
# HELP cache_refresh_timer_wakeups_total Wake-ups of the timer's thread.
# TYPE cache_refresh_timer_wakeups_total counter
cache_refresh_timer_wakeups_total 21
# HELP cache_refresh_timer_lateness_seconds From a timer's deadline to the start of its task.
# TYPE cache_refresh_timer_lateness_seconds histogram
cache_refresh_timer_lateness_seconds_sum 0
cache_refresh_timer_lateness_seconds_count 0
# HELP cache_refresh_timer_run_seconds How long the timers' tasks ran.
# TYPE cache_refresh_timer_run_seconds histogram
cache_refresh_timer_run_seconds_sum 0
cache_refresh_timer_run_seconds_count 0
)";

TEST_CASE("metrics: each has its help, type and value") {
  std::istringstream lines(prometheus_text(small_snapshot()));
  std::string without_buckets;
  for (std::string line; std::getline(lines, line);)
    if (line.find("_bucket{") == std::string::npos) without_buckets += line + '\n';
  CHECK(without_buckets == expected);
}

TEST_CASE("metrics: buckets are cumulative, and a bound is inclusive") {
  const std::string text = prometheus_text(small_snapshot());
  const std::string name = "cache_refresh_read_wait_seconds";
  CHECK(count_until(text, name, "1e-06") == 3);
  CHECK(count_until(text, name, "2.5e-06") == 7);
  CHECK(count_until(text, name, "0.001") == 7);
  CHECK(count_until(text, name, "25") == 7);
  CHECK(count_until(text, name, "50") == 8);
  CHECK(count_until(text, name, "+Inf") == 10);

  const std::vector<std::string> all = lines_with(text, name + "_bucket");
  CHECK(all.size() == 25);
  std::vector<std::uint64_t> counts;
  for (const std::string& line : all) counts.push_back(std::stoull(line.substr(line.rfind(' '))));
  CHECK(std::is_sorted(counts.begin(), counts.end()));
}

TEST_CASE("metrics: the buckets of ages reach beyond an hour") {
  snapshot now = small_snapshot();
  now.ages.buckets = {{500us, 1}, {1h, 2}, {24h, 4}};
  const std::string text = prometheus_text(now);
  const std::string name = "cache_refresh_value_age_seconds";
  CHECK(count_until(text, name, "0.001") == 1);
  CHECK(count_until(text, name, "2500") == 1);
  CHECK(count_until(text, name, "5000") == 3);
  CHECK(count_until(text, name, "50000") == 3);
  CHECK(count_until(text, name, "+Inf") == 7);
}

TEST_CASE("metrics: the count equals the sum of the buckets, even if more is recorded meanwhile") {
  snapshot now = small_snapshot();
  now.reads.count = 11;
  CHECK(value_of(prometheus_text(now), "cache_refresh_read_wait_seconds_count") == "10");
}

TEST_CASE("metrics: without a value to serve there is no time for which it is served") {
  snapshot now = small_snapshot();
  now.served_for.reset();
  CHECK(lines_with(prometheus_text(now), "served_for").empty());
}

TEST_CASE("metrics: the timer's histograms are included") {
  snapshot now = small_snapshot();
  now.timer = two_runs();
  const std::string text = prometheus_text(now);
  const std::string name = "cache_refresh_timer_lateness_seconds";
  CHECK(count_until(text, name, "1e-06") == 1);
  CHECK(count_until(text, name, "0.0025") == 1);
  CHECK(count_until(text, name, "0.005") == 2);
  CHECK(value_of(text, name + "_sum") == "0.003");
  CHECK(value_of(text, "cache_refresh_timer_run_seconds_count") == "2");
}

TEST_CASE("metrics: labels are escaped, and valid UTF-8") {
  snapshot now = small_snapshot();
  now.origin = "a\\b \"c\"\nd \xc3\xa4 \xff";
  CHECK(lines_with(prometheus_text(now), "_info{").at(0) ==
        "cache_refresh_info{mode=\"refresh-ahead\",origin=\"a\\\\b \\\"c\\\"\\nd \xc3\xa4 \xef\xbf\xbd\"} 1");
}

TEST_CASE("metrics: the number of series does not depend on the keys") {
  snapshot more = small_snapshot();
  more.keys.fresh = 1'000'000;
  const auto series = [](const snapshot& now) {
    const std::string text = prometheus_text(now);
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(series(more) == series(small_snapshot()));
}

}  // namespace cache_refresh_web_prometheus
