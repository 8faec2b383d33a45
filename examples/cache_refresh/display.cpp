#include "display.hpp"

#include <fmt/core.h>

#include "common/text.hpp"

namespace cache_refresh {
namespace {

using common::readable;

std::string count(std::uint64_t value) { return std::to_string(value); }

// Rates are those since `before`.
std::vector<common::figure_row> figures(const snapshot& now, const snapshot& before) {
  const double seconds = std::chrono::duration<double>(now.elapsed - before.elapsed).count();
  const auto rate = [seconds](std::uint64_t from, std::uint64_t to) {
    return fmt::format("{:.0f}", seconds > 0 ? static_cast<double>(to - from) / seconds : 0.0);
  };
  const key_counts& keys = now.keys;
  return {
      {"keys",
       {{"all", count(keys.fresh + keys.stale + keys.empty)},
        {"fresh", count(keys.fresh)},
        {"stale", count(keys.stale)},
        {"failed", count(keys.failed)}}},
      {"refreshes",
       {{"per s", rate(before.loads, now.loads)},
        {"total", count(now.loads)},
        {"failed", count(now.failed_loads)}}},
      {"reads",
       {{"per s", rate(before.reads, now.reads)},
        {"total", count(now.reads)},
        {"hits", count(now.hits)},
        {"stale hits", count(now.stale_hits)}}},
      {"lateness",
       {{"p50", readable(now.lateness.p50)},
        {"p99", readable(now.lateness.p99)},
        {"max", readable(now.lateness.max)}}},
      {"timer",
       {{"pending", count(now.timer.pending)},
        {"wakeups", count(now.timer.wakeups)},
        {"per s", rate(before.timer.wakeups, now.timer.wakeups)}}},
  };
}

}  // namespace

void display::show(const snapshot& now) {
  table_.show(now.elapsed, figures(now, before_));
  before_ = now;
}

}  // namespace cache_refresh
