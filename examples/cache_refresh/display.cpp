#include "display.hpp"

#include <fmt/core.h>

#include "common/text.hpp"
#include "common/usage.hpp"

namespace cache_refresh {
namespace {

using common::percent;
using common::readable;

std::string count(std::uint64_t value) { return std::to_string(value); }

// Rates are averages since `before`. The plain line has only the most important figures.
std::vector<common::figure_row> figures(const snapshot& now, const snapshot& before) {
  const double seconds = std::chrono::duration<double>(now.elapsed - before.elapsed).count();
  const auto rate = [seconds](std::uint64_t from, std::uint64_t to) {
    return fmt::format("{:.0f}", seconds > 0 && to >= from ? static_cast<double>(to - from) / seconds : 0.0);
  };
  const key_counts& keys = now.keys;
  constexpr bool in_table_only = false;
  return {
      {"keys",
       {{"fresh", count(keys.fresh)},
        {"stale", count(keys.stale)},
        {"empty", count(keys.empty), in_table_only},
        {"failing", count(keys.failing), in_table_only}}},
      {"reads",
       {{"/s", rate(before.reads.count, now.reads.count)},
        {"waited", count(now.waited)},
        {"stale", count(now.stale), in_table_only},
        {"p99", readable(now.reads.p99), in_table_only}}},
      {"loads",
       {{"/s", rate(before.cache.loads, now.cache.loads)},
        {"failed", count(now.cache.failed)},
        {"unread", count(now.cache.unread_loads), in_table_only},
        {"p99", readable(now.loads.p99), in_table_only}}},
      {"lateness",
       {{"p50", readable(now.timer.lateness.quantile(0.5)), in_table_only},
        {"p99", readable(now.timer.lateness.quantile(0.99)), in_table_only},
        {"max", readable(now.timer.lateness.max()), in_table_only}}},
      {"timer",
       {{"pending", count(now.timer.pending), in_table_only},
        {"wakeups", count(now.timer.wakeups), in_table_only},
        {"/s", rate(before.timer.wakeups, now.timer.wakeups), in_table_only}}},
  };
}

}  // namespace

void display::show(const snapshot& now) {
  table_.show(now.elapsed, figures(now, before_));
  before_ = now;
}

void print_summary(const snapshot& end, const agreement& at_end, const std::string& last_error) {
  const cache_statistics& cache = end.cache;
  const std::uint64_t served = end.reads.count - end.unserved;
  fmt::print("\nSummary of {}, {} keys, {}, {} edits at the origin\n", readable(end.elapsed), end.names,
             end.mode, end.edits);
  fmt::print("  reads      {}: waited {}, stale {} ({}), without a value {}\n", end.reads.count, end.waited,
             end.stale, percent(end.stale, end.reads.count), end.unserved);
  fmt::print("  latency    p50 {}, p99 {}, max {}\n", readable(end.reads.p50), readable(end.reads.p99),
             readable(end.reads.max));
  if (end.edits > 0) {
    fmt::print("  served     {}: current {}, behind the origin p99 {}, worst {}\n", served,
               percent(end.current, served), readable(end.behind.p99), readable(end.behind.max));
  }
  fmt::print("  age        p50 {}, p99 {}, max {}, since the origin was asked\n", readable(end.ages.p50),
             readable(end.ages.p99), readable(end.ages.max));
  fmt::print("  loads      {}: new {}, not modified {}, failed {}; of values that nobody read {}\n",
             cache.loads, cache.loaded, cache.confirmed, cache.failed, cache.unread_loads);
  if (!last_error.empty()) fmt::print("  the latest failure: {}\n", last_error);
  fmt::print("  lateness   p50 {}, p99 {}, max {}, of the timer\n",
             readable(end.timer.lateness.quantile(0.5)), readable(end.timer.lateness.quantile(0.99)),
             readable(end.timer.lateness.max()));
  fmt::print("  timer      {} scheduled, {} fired, {} wake-ups\n", end.timer.scheduled, end.timer.fired,
             end.timer.wakeups);
  fmt::print("  processor  {}, including the timer's thread {} ({}); memory {} MB\n", readable(end.processor),
             readable(end.driver),
             percent(static_cast<std::uint64_t>(end.driver.count()),
                     static_cast<std::uint64_t>(end.processor.count())),
             common::resident_memory() / 1'000'000);
  fmt::print("  at the end {} equal to the origin, {} older, {} without a value, {} wrong\n", at_end.equal,
             at_end.older, at_end.empty, at_end.wrong);
  if (at_end.unread > 0) fmt::print("             {} not compared\n", at_end.unread);
  if (end.failed_edits > 0) fmt::print("  {} edits failed at the origin\n", end.failed_edits);
}

}  // namespace cache_refresh
