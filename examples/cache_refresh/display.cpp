#include "display.hpp"

#include <fmt/core.h>

#include "common/text.hpp"

namespace cache_refresh {
namespace {

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

}  // namespace cache_refresh
