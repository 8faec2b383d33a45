// The chart of a comparison: a panel for each figure, a bar for each mode.
#include <fmt/core.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "comparison.hpp"

namespace cache_refresh {
namespace {

using common::percent;
using common::readable;

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
constexpr int row = 22;
constexpr int panel_height = 3 * row + 44;
constexpr int bars_left = 150;
constexpr int longest_bar = 440;
constexpr std::array colours = {"#c2703d", "#b59b2f", "#2f7f86"};

void draw(std::ostream& out, const panel& p, const std::vector<snapshot>& modes, int top) {
  fmt::print(out, "<text x=\"16\" y=\"{}\" class=\"title\">{}</text>\n", top, p.title);
  double most = 0;
  for (const snapshot& each : modes) most = std::max(most, p.value(each));
  const auto length = [most](double value) { return most > 0 ? value / most * longest_bar : 0.0; };
  for (std::size_t i = 0; i != modes.size(); ++i) {
    const int y = top + 12 + static_cast<int>(i) * row;
    const double bar = length(p.value(modes[i]));
    fmt::print(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", bars_left - 8, y + 13,
               modes[i].mode);
    fmt::print(out, "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", bars_left, y,
               std::max(bar, 1.0), row - 5, colours.at(i));
    if (const double part = length(p.part(modes[i])); part > 0) {
      fmt::print(
          out,
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#fff\" opacity=\"0.55\"/>\n",
          bars_left + bar - part, y, part, row - 5);
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
