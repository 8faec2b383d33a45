#include "comparison.hpp"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

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

// ---- The chart: a panel for each figure, a bar for each mode

namespace {

struct panel {
  const char* title;
  std::function<double(const snapshot&)> value;
  std::function<double(const snapshot&)> part;  // drawn within the bar, in another colour
  std::function<std::string(const snapshot&)> label;
};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double nothing(const snapshot&) { return 0; }

std::vector<panel> panels() {
  return {
      {"reads that waited for a load", [](const snapshot& s) { return share(s.waited, s.reads.count); },
       nothing, [](const snapshot& s) { return percent(s.waited, s.reads.count); }},
      {"slowest 1 % of reads took at least",
       [](const snapshot& s) { return static_cast<double>(s.reads.p99.count()); }, nothing,
       [](const snapshot& s) { return readable(s.reads.p99); }},
      {"reads that got a stale value", [](const snapshot& s) { return share(s.stale, s.reads.count); },
       nothing, [](const snapshot& s) { return percent(s.stale, s.reads.count); }},
      {"loads from the origin (pale: of values nobody read)",
       [](const snapshot& s) { return static_cast<double>(s.cache.loads); },
       [](const snapshot& s) { return static_cast<double>(s.cache.unread_loads); },
       [](const snapshot& s) { return fmt::format("{} ({})", s.cache.loads, s.cache.unread_loads); }},
  };
}

constexpr int width = 760;
constexpr int row_height = 22;
constexpr int panel_height = 3 * row_height + 44;
constexpr int bars_left = 150;
constexpr int longest_bar = 440;
constexpr std::array colours = {"#c2703d", "#b59b2f", "#2f7f86"};

void draw(std::ostream& out, const panel& p, const std::vector<snapshot>& modes, int top) {
  fmt::print(out, "<text x=\"16\" y=\"{}\" class=\"title\">{}</text>\n", top, p.title);
  double most = 0;
  for (const snapshot& each : modes) most = std::max(most, p.value(each));
  const auto length = [most](double value) { return most > 0 ? value / most * longest_bar : 0.0; };
  for (std::size_t i = 0; i != modes.size(); ++i) {
    const int y = top + 12 + static_cast<int>(i) * row_height;
    const double bar = length(p.value(modes[i]));
    fmt::print(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", bars_left - 8, y + 13,
               modes[i].mode);
    fmt::print(out, "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", bars_left, y,
               std::max(bar, 1.0), row_height - 5, colours.at(i));
    if (const double part = length(p.part(modes[i])); part > 0) {
      fmt::print(
          out,
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#fff\" opacity=\"0.55\"/>\n",
          bars_left + bar - part, y, part, row_height - 5);
    }
    fmt::print(out, "<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", bars_left + bar + 8, y + 13,
               p.label(modes[i]));
  }
}

}  // namespace

void write_svg(const comparison& all, std::ostream& out) {
  const std::vector<panel> drawn = panels();
  const int height = static_cast<int>(drawn.size()) * panel_height + 40;
  fmt::print(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
             "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n"
             "<style>.title {{ font-weight: bold }}</style>\n"
             "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
             width, height);
  int top = 30;
  for (const panel& each : drawn) {
    draw(out, each, all.modes, top);
    top += panel_height;
  }
  if (!all.modes.empty()) {
    fmt::print(
        out,
        "<text x=\"16\" y=\"{}\" fill=\"#666\">{} keys, {} reads and {} edits in {}, for each mode</text>\n",
        top, all.modes[0].names, all.modes[0].reads.count, all.modes[0].edits,
        readable(all.modes[0].elapsed));
  }
  fmt::print(out, "</svg>\n");
}

}  // namespace cache_refresh
