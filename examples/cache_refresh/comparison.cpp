#include "comparison.hpp"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <ostream>

#include <rondo/manual_timer.hpp>

#include "common/text.hpp"
#include "station.hpp"

namespace cache_refresh {
namespace {

using common::percent;
using common::readable;
using namespace std::chrono_literals;

struct peak {
  std::uint64_t most = 0;  // loads in one second
  double mean = 0;
};

peak busiest_second(double jitter, std::uint64_t seed) {
  refresh_policy policy;
  policy.soft_ttl = 1min;
  policy.jitter = jitter;
  policy.seed = seed;
  policy.loads_at_once = 10'000;
  rondo::manual_timer time;
  std::map<std::int64_t, std::uint64_t> loads;  // in each second
  refreshing_cache<int, int> cache(time, policy, [&](auto load) {
    ++loads[time.now().time_since_epoch() / 1s];
    load.store(0);
  });
  for (int key = 0; key != 10'000; ++key) cache.prefetch(key);
  loads.clear();  // the first loads coincide in any case
  time.advance(1h);
  peak found;
  std::uint64_t all = 0;
  for (const auto& [second, count] : loads) {
    found.most = std::max(found.most, count);
    all += count;
  }
  found.mean = static_cast<double>(all) / 3600;
  return found;
}

// A figure that is compared: its name and how to read it.
struct line {
  const char* name;
  std::function<std::string(const snapshot&)> text;
};

const std::vector<line>& lines() {
  static const std::vector<line> all = {
      {"reads", [](const snapshot& s) { return std::to_string(s.reads.count); }},
      {"  waited for a load", [](const snapshot& s) { return std::to_string(s.waited); }},
      {"  without a value", [](const snapshot& s) { return std::to_string(s.unserved); }},
      {"read latency p50", [](const snapshot& s) { return readable(s.reads.p50); }},
      {"  p99", [](const snapshot& s) { return readable(s.reads.p99); }},
      {"  max", [](const snapshot& s) { return readable(s.reads.max); }},
      {"stale reads", [](const snapshot& s) { return percent(s.stale, s.reads.count); }},
      {"age of values p50", [](const snapshot& s) { return readable(s.ages.p50); }},
      {"  p99", [](const snapshot& s) { return readable(s.ages.p99); }},
      {"behind the origin p99", [](const snapshot& s) { return readable(s.behind.p99); }},
      {"loads from the origin", [](const snapshot& s) { return std::to_string(s.cache.loads); }},
      {"  of values nobody read", [](const snapshot& s) { return std::to_string(s.cache.unread_loads); }},
      {"  failed", [](const snapshot& s) { return std::to_string(s.cache.failed); }},
  };
  return all;
}

}  // namespace

comparison compare_modes(const options& chosen, origin& from, const std::vector<std::string>& names,
                         const common::interrupt& interrupted) {
  comparison all;
  all.seconds = std::chrono::seconds(chosen.seconds);
  const zipf popular(names.size(), chosen.skewed);
  for (const refresh_mode mode : {refresh_mode::expire, refresh_mode::on_read, refresh_mode::ahead}) {
    options of_mode = chosen;
    of_mode.policy.mode = mode;
    station run(of_mode, from, names, popular);
    if (interrupted.wait_until_true([&] { return run.warm(); })) return all;
    run.start_warm();
    const bool over = interrupted.wait_until(rondo::scheduler::clock::now() + all.seconds);
    run.stop();
    all.modes.push_back(run.look());
    fmt::print("{}: done\n", all.modes.back().mode);
    std::fflush(stdout);
    if (over) return all;
  }
  all.peak_without_jitter = busiest_second(0, chosen.seed).most;
  const peak spread = busiest_second(refresh_policy{}.jitter, chosen.seed);
  all.peak_with_jitter = spread.most;
  all.mean_rate = spread.mean;
  return all;
}

void print(const comparison& all) {
  fmt::print("\n{:<24}", "");
  for (const snapshot& each : all.modes) fmt::print("{:>18}", each.mode);
  fmt::print("\n");
  for (const line& each : lines()) {
    fmt::print("{:<24}", each.name);
    for (const snapshot& mode : all.modes) fmt::print("{:>18}", each.text(mode));
    fmt::print("\n");
  }
  if (all.peak_without_jitter == 0) return;
  fmt::print(
      "\n10,000 keys with a TTL of one minute, loaded together, then refreshed for an hour (on virtual "
      "time):\n"
      "loads in the busiest second: {} without jitter, {} with 5 % of jitter; {:.0f} on average\n",
      all.peak_without_jitter, all.peak_with_jitter, all.mean_rate);
}

// One line for each mode, durations in seconds.
void write_csv(const comparison& all, std::ostream& out) {
  fmt::print(out,
             "mode,seconds,reads,waited,unserved,stale,read_p50_seconds,read_p99_seconds,read_max_seconds,"
             "age_p50_seconds,age_p99_seconds,behind_p99_seconds,loads,unread_loads,failed_loads\n");
  const auto seconds = [](rondo::duration d) { return std::chrono::duration<double>(d).count(); };
  for (const snapshot& s : all.modes) {
    fmt::print(out, "{},{:.3f},{},{},{},{},{:.9f},{:.9f},{:.9f},{:.6f},{:.6f},{:.6f},{},{},{}\n", s.mode,
               seconds(s.elapsed), s.reads.count, s.waited, s.unserved, s.stale, seconds(s.reads.p50),
               seconds(s.reads.p99), seconds(s.reads.max), seconds(s.ages.p50), seconds(s.ages.p99),
               seconds(s.behind.p99), s.cache.loads, s.cache.unread_loads, s.cache.failed);
  }
}

}  // namespace cache_refresh
