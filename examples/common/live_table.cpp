#include "live_table.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace common {
namespace {

bool can_move_the_cursor() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

// A line that wraps would take two lines of the screen, and a table longer than the screen would scroll. In both cases
// the table would creep.
struct window {
  std::size_t columns = std::string::npos;
  std::size_t lines = std::string::npos;
};

window current_window() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

}  // namespace

live_table::live_table(bool plain, std::string how_to_end)
    : in_place_(!plain && can_move_the_cursor()), how_to_end_(std::move(how_to_end)) {}

std::chrono::milliseconds live_table::interval() const noexcept {
  return std::chrono::milliseconds(in_place_ ? 500 : 1000);
}

void live_table::show(std::chrono::nanoseconds elapsed, const std::vector<figure_row>& rows,
                      const std::vector<std::string>& messages) {
  const auto seconds = std::chrono::duration<double>(elapsed).count();
  if (in_place_) {
    if (drawn_ > 0) fmt::print("\x1b[{}A\r\x1b[J", drawn_);  // the table may have had more rows
    for (const std::string& each : messages) fmt::print("{}\n", each);
    draw(fmt::format("{:.1f} s, {}", seconds, how_to_end_), rows);
  } else {
    for (const std::string& each : messages) fmt::print("{}\n", each);
    fmt::print("{:4.0f} s", seconds);
    print_line(rows);
  }
  std::fflush(stdout);
}

void live_table::draw(const std::string& title, const std::vector<figure_row>& rows) {
  const window visible = current_window();
  std::vector<std::string> lines = {title};
  std::size_t longest = 9;
  for (const figure_row& row : rows) longest = std::max(longest, row.title.size());
  for (const figure_row& row : rows) {
    std::string& line = lines.emplace_back(fmt::format("{:<{}}", row.title, longest));
    for (const figure& each : row.figures) line += fmt::format(" {:>7} {:<8}", each.value, each.name);
  }
  drawn_ = std::min(lines.size(), visible.lines - 1);  // the cursor is in the line below
  for (std::size_t i = 0; i != drawn_; ++i) fmt::print("\r{}\x1b[K\n", lines[i].substr(0, visible.columns));
}

void live_table::print_line(const std::vector<figure_row>& rows) const {
  for (const figure_row& row : rows) {
    std::string text;
    for (const figure& each : row.figures) {
      if (each.in_line) text += fmt::format(" {} {}", each.name, each.value);
    }
    if (!text.empty()) fmt::print(" | {}{}", row.title, text);
  }
  fmt::print("\n");
}

}  // namespace common
