#include "scheduler/drawing.hpp"

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "values/readable.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t listed_buckets = 32;
constexpr std::size_t listed_rounds = 4;  // a bucket, after the one that it waits for
constexpr std::size_t spread_columns = 64;

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

/// How far a tick is from now. The tick in progress is "now": nothing is late before it is over.
std::string when(tick_number tick, const picture& p) {
  const tick_number current = p.grid.at_or_before(p.now);
  const time_point begin = p.grid.begin_of(tick);
  if (tick == current) return "now";
  if (tick < current) return "late " + readable(saturating_difference(p.now, begin));
  return "in " + readable(saturating_difference(begin, p.now));
}

std::size_t nodes_of(const picture::bucket& b) {
  std::size_t nodes = 0;
  for (const picture::round& r : b.rounds) nodes += r.nodes;
  return nodes;
}

std::string headline(const picture& p) {
  std::size_t nodes = 0;
  std::size_t filled = 0;
  for (const picture::bucket& b : p.buckets) {
    nodes += nodes_of(b);
    if (!b.rounds.empty()) ++filled;
  }
  return "rondo at tick " + std::to_string(p.grid.at_or_before(p.now)) + " (" + readable(p.grid.length()) +
         " each): " + counted(nodes, "node") + " in " + std::to_string(filled) + " of " +
         counted(p.size, "bucket") + '\n';
}

std::string outside_line(const picture& p) {
  std::string list;
  const auto add = [&](std::size_t count, const char* what) {
    if (count != 0) list += (list.empty() ? "" : ", ") + std::to_string(count) + ' ' + what;
  };
  add(p.ready, "ready in the pass in progress");
  add(p.never_due, "never due");
  add(p.handed_over, "with the executor");
  add(p.running, "running");
  add(p.unplaced, "waiting for memory");
  return list.empty() ? "" : "  not in the wheel: " + list + '\n';
}

using cells = std::array<std::string, 7>;

/// On a terminal: all bytes of UTF-8 but those that continue a character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Numbers are set right, texts left.
std::string table(const std::vector<cells>& rows) {
  static constexpr std::array<bool, 7> right{true, false, true, true, false, true, false};
  std::array<std::size_t, 7> widths{};
  for (const cells& row : rows)
    for (std::size_t c = 0; c != row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string text;
  for (const cells& row : rows) {
    std::string line = "  ";
    for (std::size_t c = 0; c != row.size(); ++c) {
      const std::string padding(widths[c] - width_of(row[c]), ' ');
      line += "  " + (right[c] ? padding + row[c] : row[c] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

/// "~": its key is too early, as cancelling and taking leave it behind. "!": it would not be found in time.
std::string mark_of(const picture::bucket& b) {
  if (b.rounds.empty()) return "~";
  if (!b.key || *b.key > b.rounds.front().tick) return "!";
  return *b.key < b.rounds.front().tick ? "~" : "";
}

cells row_of(std::size_t position, const picture::bucket& b, const picture& p) {
  std::size_t nodes = 0;  // of the round that the bucket waits for
  std::size_t others = 0;
  std::string list;
  for (const picture::round& r : b.rounds) {
    if (b.key == r.tick)
      nodes = r.nodes;
    else if (++others <= listed_rounds)
      list += (list.empty() ? "" : ", ") + when(r.tick, p) + " ×" + std::to_string(r.nodes);
  }
  if (others > listed_rounds) list += ", … and " + counted(others - listed_rounds, "more round");
  const std::string mark = mark_of(b);
  const std::string tick = b.key ? std::to_string(*b.key) : "-";
  std::string due = b.key ? when(*b.key, p) : "-";
  if (mark == "~") due = '(' + due + ')';
  return {std::to_string(position), mark, std::to_string(b.index), tick, due, std::to_string(nodes), list};
}

std::string queue_lines(const picture& p) {
  if (p.buckets.empty()) return "";
  std::vector<const picture::bucket*> queue;
  for (const picture::bucket& b : p.buckets) queue.push_back(&b);
  std::sort(queue.begin(), queue.end(), [](const picture::bucket* a, const picture::bucket* b) {
    return std::tie(a->key, a->index) < std::tie(b->key, b->index);
  });
  const std::size_t listed = std::min(queue.size(), listed_buckets);
  std::vector<cells> rows{{"#", "", "bucket", "tick", "due", "nodes", "later rounds"}};
  for (std::size_t i = 0; i != listed; ++i) rows.push_back(row_of(i + 1, *queue[i], p));
  const auto any = [&](const char* mark) {
    return std::any_of(rows.begin(), rows.end(), [&](const cells& row) { return row[1] == mark; });
  };
  std::string text =
      "  delay queue, " + counted(queue.size(), "bucket") + ", the earliest first:\n" + table(rows);
  if (listed != queue.size())
    text += "    … and " + counted(queue.size() - listed, "more bucket") +
            ", the last one: " + (queue.back()->key ? when(*queue.back()->key, p) : "-") + '\n';
  if (any("~")) text += "    ~ no node is due then any more: the key is corrected when it comes to the top\n";
  if (any("!")) text += "    ! it has a node due before its key, or no key at all: a defect of the library\n";
  return text;
}

std::string spread_lines(const picture& p) {
  const std::size_t columns = std::min(p.size, spread_columns);
  std::vector<std::size_t> nodes(columns);
  for (const picture::bucket& b : p.buckets) nodes[b.index / (p.size / columns)] += nodes_of(b);
  const std::size_t most = columns == 0 ? 0 : *std::max_element(nodes.begin(), nodes.end());
  if (most == 0) return "";
  static constexpr std::array<const char*, 9> levels{"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string bar;
  for (const std::size_t n : nodes) bar += levels[(n * 8 + most - 1) / most];
  const std::size_t now = bucket_of(p.grid.at_or_before(p.now), p.size - 1) / (p.size / columns);
  return "  spread, " + counted(p.size / columns, "bucket") + " a column, █ = " + counted(most, "node") +
         ":\n    |" + bar + "|\n" + std::string(now + 5, ' ') + "^ now\n";
}

}  // namespace

void tidy_rounds(std::vector<picture::round>& rounds) {
  std::sort(rounds.begin(), rounds.end(),
            [](const picture::round& a, const picture::round& b) { return a.tick < b.tick; });
  std::size_t kept = 0;
  for (const picture::round& r : rounds) {
    if (kept != 0 && rounds[kept - 1].tick == r.tick)
      rounds[kept - 1].nodes += r.nodes;
    else
      rounds[kept++] = r;
  }
  rounds.resize(kept);
}

void draw(std::ostream& out, const picture& p) {
  const std::string text = headline(p) + outside_line(p) + queue_lines(p) + spread_lines(p);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace rondo::detail
