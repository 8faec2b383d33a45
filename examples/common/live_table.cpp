#include "live_table.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace common {
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

}  // namespace

live_table::live_table(bool plain) : in_place_(!plain && can_move_the_cursor()) {}

std::chrono::milliseconds live_table::interval() const noexcept {
  return std::chrono::milliseconds(in_place_ ? 500 : 1000);
}

void live_table::show(std::chrono::nanoseconds elapsed, const std::vector<figure_row>& rows,
                      const std::vector<std::string>& messages) {
  const auto seconds = std::chrono::duration<double>(elapsed).count();
  if (in_place_) {
    if (drawn_ > 0) fmt::print("\x1b[{}A\r\x1b[J", drawn_);  // there may have been more rows
    for (const std::string& each : messages) fmt::print("{}\n", each);
    fmt::print("\r\x1b[K{:.1f} s, Ctrl-C ends it\n", seconds);
    draw(rows);
    drawn_ = rows.size() + 1;
  } else {
    for (const std::string& each : messages) fmt::print("{}\n", each);
    fmt::print("{:4.0f} s", seconds);
    print_line(rows);
  }
  std::fflush(stdout);
}

void live_table::draw(const std::vector<figure_row>& rows) {
  const std::size_t width = columns();
  std::size_t longest = 9;
  for (const figure_row& row : rows) longest = std::max(longest, row.title.size());
  for (const figure_row& row : rows) {
    std::string line = fmt::format("{:<{}}", row.title, longest);
    for (const figure& each : row.figures) line += fmt::format(" {:>7} {:<8}", each.value, each.name);
    fmt::print("{}\x1b[K\n", line.substr(0, width));
  }
}

void live_table::print_line(const std::vector<figure_row>& rows) const {
  for (const figure_row& row : rows) {
    fmt::print(" | {}", row.title);
    for (const figure& each : row.figures) fmt::print(" {} {}", each.name, each.value);
  }
  fmt::print("\n");
}

}  // namespace common
