#include "display.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "text.hpp"

namespace cache_refresh {
namespace {

bool can_move_the_cursor() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

// A line that wraps would take two lines of the screen, and the table would creep.
std::size_t columns() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : std::string::npos;
}

std::string count(std::uint64_t value) { return std::to_string(value); }

}  // namespace

std::vector<figure_row> figures(const snapshot& now, const snapshot& before) {
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

display::display(bool plain) : in_place_(!plain && can_move_the_cursor()) {}

std::chrono::milliseconds display::interval() const noexcept {
  return std::chrono::milliseconds(in_place_ ? 500 : 1000);
}

void display::show(const snapshot& now) {
  const std::vector<figure_row> rows = figures(now, before_);
  const auto seconds = std::chrono::duration<double>(now.elapsed).count();
  if (in_place_) {
    if (drawn_ > 0) fmt::print("\x1b[{}A", drawn_);
    fmt::print("\r\x1b[K{:.1f} s, Ctrl-C ends it\n", seconds);
    draw_table(rows);
    drawn_ = rows.size() + 1;
  } else {
    fmt::print("{:4.0f} s", seconds);
    print_line(rows);
  }
  std::fflush(stdout);
  before_ = now;
}

void display::draw_table(const std::vector<figure_row>& rows) {
  const std::size_t width = columns();
  for (const figure_row& row : rows) {
    std::string line = fmt::format("{:<9}", row.title);
    for (const figure& each : row.figures) line += fmt::format(" {:>7} {:<8}", each.value, each.name);
    fmt::print("{}\x1b[K\n", line.substr(0, width));
  }
}

void display::print_line(const std::vector<figure_row>& rows) const {
  for (const figure_row& row : rows) {
    fmt::print(" | {}", row.title);
    for (const figure& each : row.figures) fmt::print(" {} {}", each.name, each.value);
  }
  fmt::print("\n");
}

}  // namespace cache_refresh
