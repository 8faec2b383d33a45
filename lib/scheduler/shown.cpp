#include "scheduler/shown.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rondo/timer_id.hpp>

#include "scheduler/record.hpp"
#include "values/readable.hpp"

namespace rondo::detail {

census census_of(const shards& all) {
  census found{.slots = all.slots()};
  all.for_each([&](const shard& s) {
    const std::lock_guard hold(s.mutex);
    found.in_wheel += s.wheel.size;
    found.free += s.free_count.load(relaxed);
    for (const record* r = s.returned; r != nullptr; r = r->next_free) ++found.free;
  });
  all.for_each_timer([&](const record& r, const shard_lock&) {
    if (r.where == waits_in::pass || r.where == waits_in::late_pass) ++found.in_pass;
    if (r.where == waits_in::never_due) ++found.never_due;
    if (r.where == waits_in::no_memory) ++found.without_memory;
    if (r.where == waits_in::nowhere && r.live()) ++found.with_executor;
    found.submitted += r.submitted();
    found.running += r.running();
  });
  return found;
}

std::string fault_of(const counters& c, const census& found) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  if (c.ended != c.completed + c.cancelled + c.returned)
    return text(c.ended) + " timers ceased to be pending, but " + text(c.completed) + " completed + " +
           text(c.cancelled) + " cancelled + " + text(c.returned) + " returned are counted";
  if (c.pending() != found.pending())
    return text(c.pending()) + " timers are pending, but " + text(found.in_wheel) + " in the wheel + " +
           text(found.in_pass) + " in the pass + " + text(found.never_due) + " never due + " +
           text(found.without_memory) + " waiting for memory + " + text(found.with_executor) +
           " with the executor are found";
  if (found.slots != found.free + c.pending())
    return "of " + text(found.slots) + " records " + text(found.free) + " are free, but " +
           text(c.pending()) + " timers are pending";
  return {};
}

std::vector<timer_info> list_of(const shards& all, std::uint32_t scheduler) {
  std::vector<timer_info> timers;
  all.for_each_timer([&](const record& r, const shard_lock&) {
    if (r.destroying || (!r.live() && !r.is_running)) return;
    timer_info info{.id = timer_id_access::make(scheduler, r.slot, r.generation), .due = r.waits_for()};
    info.runs = info.running = r.running();
    info.name = r.name();
    info.periodic = r.periodic();
    if (info.periodic) info.runs = r.repeats().next.runs() - r.submitted();
    timers.push_back(std::move(info));
  });
  std::sort(timers.begin(), timers.end(), [](const timer_info& a, const timer_info& b) {
    return std::tuple(!a.due, a.due, a.id) < std::tuple(!b.due, b.due, b.id);
  });
  return timers;
}

namespace {

/// Adds the nodes of a bucket to those of another shard's bucket with the same number and key, if there is one.
void add(const picture::bucket& more, std::vector<picture::bucket>& buckets) {
  const auto same = std::find_if(buckets.begin(), buckets.end(), [&](const picture::bucket& b) {
    return b.number == more.number && b.key == more.key;
  });
  if (same == buckets.end()) return buckets.push_back(more);
  same->nodes += more.nodes;
  if (more.nodes != 0) same->tick = more.tick;
}

/// Adds the contents of one wheel.
void describe(const wheel_core& wheel, picture& p) {
  wheel.for_each_entry([&](std::optional<std::size_t> number, tick_number key, auto&& for_each_node) {
    picture::far_part seen;
    for_each_node([&](const node& n) {
      ++seen.nodes;
      seen.earliest = std::min(seen.earliest, n.due);
      seen.latest = std::max(seen.latest, n.due);
    });
    if (number) return add({*number, key, seen.earliest, seen.nodes}, p.buckets);
    p.far.nodes += seen.nodes;
    p.far.earliest = std::min(p.far.earliest, seen.earliest);
    p.far.latest = std::max(p.far.latest, seen.latest);
    p.far.key = std::min(p.far.key.value_or(key), key);
    p.far.key_is_late |= seen.earliest < key;
  });
}

}  // namespace

picture picture_of(const shards& all, std::uint32_t scheduler, const tick_grid& grid, time_point now) {
  picture p{.grid = grid, .now = now, .size = all.buckets(), .all = census_of(all)};
  all.for_each([&](const shard& s) {
    const std::lock_guard hold(s.mutex);
    describe(s.wheel, p);
  });
  p.named = list_of(all, scheduler);
  std::erase_if(p.named, [](const timer_info& t) { return t.name.empty(); });
  return p;
}

namespace {

constexpr std::size_t listed_buckets = 32;
constexpr std::size_t spread_columns = 64;
constexpr std::size_t listed_names = 16;

std::string counted(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::string how_far(time_point t, const picture& p) {
  return t < p.now ? "late " + readable(saturating_difference(p.now, t))
                   : "in " + readable(saturating_difference(t, p.now));
}

/// How far a tick is from now. The tick in progress is "now": nothing is late until that tick is over.
std::string when(tick_number tick, const picture& p) {
  return tick == p.grid.at_or_before(p.now) ? "now" : how_far(p.grid.begin_of(tick), p);
}

std::string headline(const picture& p) {
  std::size_t nodes = 0;
  std::size_t filled = 0;
  for (const picture::bucket& b : p.buckets) {
    nodes += b.nodes;
    filled += b.nodes != 0 ? 1 : 0;
  }
  return "rondo at tick " + std::to_string(p.grid.at_or_before(p.now)) + " (" + readable(p.grid.length()) +
         " each): " + counted(nodes, "node") + " in " + std::to_string(filled) + " of " +
         counted(p.size, "bucket") +
         (p.far.nodes != 0 ? ", " + std::to_string(p.far.nodes) + " further away" : "") + '\n';
}

std::string outside_line(const picture& p) {
  std::string list;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count != 0) list += (list.empty() ? "" : ", ") + std::to_string(count) + ' ' + what;
  };
  add(p.all.in_pass, "ready in the pass in progress");
  add(p.all.never_due, "never due");
  add(p.all.submitted, "with the executor");
  add(p.all.running, "running");
  add(p.all.without_memory, "waiting for memory");
  return list.empty() ? "" : "  not in the wheel: " + list + '\n';
}

using cells = std::array<std::string, 6>;

/// The width on a terminal: all bytes of UTF-8 except those that continue a character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Numbers are right-aligned, texts left-aligned.
std::string table(const std::vector<cells>& rows) {
  static constexpr std::array<bool, 6> right{true, false, true, true, false, true};
  std::array<std::size_t, 6> widths{};
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

/// "~": the bucket's key is too early, because cancelling leaves it behind. "!": the bucket would not be found in time.
std::string mark_of(const picture::bucket& b) {
  if (b.nodes == 0 || b.key < b.tick) return "~";
  return b.key > b.tick ? "!" : "";
}

cells row_of(std::size_t position, const picture::bucket& b, const picture& p) {
  const std::string mark = mark_of(b);
  const std::string due = mark == "~" ? '(' + when(b.key, p) + ')' : when(b.key, p);
  return {std::to_string(position), mark, std::to_string(b.number),
          std::to_string(b.key),    due,  std::to_string(b.nodes)};
}

std::string queue_lines(const picture& p) {
  if (p.buckets.empty()) return "";
  std::vector<picture::bucket> queue = p.buckets;
  const auto order_of = [](const picture::bucket& b) { return std::pair(b.key, b.number); };
  std::sort(queue.begin(), queue.end(),
            [&](const picture::bucket& a, const picture::bucket& b) { return order_of(a) < order_of(b); });
  const std::size_t listed = std::min(queue.size(), listed_buckets);
  std::vector<cells> rows{{"#", "", "bucket", "tick", "due", "nodes"}};
  for (std::size_t i = 0; i != listed; ++i) rows.push_back(row_of(i + 1, queue[i], p));
  const auto any = [&](const char* mark) {
    return std::any_of(rows.begin(), rows.end(), [&](const cells& row) { return row[1] == mark; });
  };
  std::string text =
      "  delay queue, " + counted(queue.size(), "bucket") + ", the earliest first:\n" + table(rows);
  if (listed != queue.size())
    text += "    … and " + counted(queue.size() - listed, "more bucket") +
            ", the last one: " + when(queue.back().key, p) + '\n';
  if (any("~")) text += "    ~ no node is due then any more: the key is corrected when it comes to the top\n";
  if (any("!")) text += "    ! it has a node due before its key: a defect of the library\n";
  return text;
}

std::string far_line(const picture& p) {
  if (!p.far.key) return "";
  std::string text = "  far: " + counted(p.far.nodes, "node");
  if (p.far.nodes == 1) text += ' ' + when(p.far.earliest, p);
  if (p.far.nodes > 1)
    text += ", the earliest " + when(p.far.earliest, p) + ", the latest " + when(p.far.latest, p);
  if (p.far.nodes == 0 || p.far.key != p.far.earliest) text += ", their key " + when(*p.far.key, p);
  if (p.far.key_is_late) text += " ! one is due before its key: a defect of the library";
  return text + '\n';
}

std::string spread_lines(const picture& p) {
  const std::size_t columns = std::min(p.size, spread_columns);
  std::vector<std::size_t> nodes(columns);
  for (const picture::bucket& b : p.buckets) nodes[b.number / (p.size / columns)] += b.nodes;
  const std::size_t most = columns == 0 ? 0 : *std::max_element(nodes.begin(), nodes.end());
  if (most == 0) return "";
  static constexpr std::array<const char*, 9> levels{"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string bar;
  for (const std::size_t n : nodes) bar += levels[(n * 8 + most - 1) / most];
  const std::size_t now = bucket_of(p.grid.at_or_before(p.now), p.size - 1) / (p.size / columns);
  return "  spread, " + counted(p.size / columns, "bucket") + " a column, █ = " + counted(most, "node") +
         ":\n    |" + bar + "|\n" + std::string(now + 5, ' ') + "^ now\n";
}

/// What a timer waits for, in words.
std::string state_of(const timer_info& t, const picture& p) {
  if (t.running != 0) return "running";
  if (!t.due) return "with the executor";
  if (*t.due == time_point::max()) return "never due";
  return how_far(*t.due, p);
}

std::string name_lines(const picture& p) {
  if (p.named.empty()) return "";
  const std::size_t listed = std::min(p.named.size(), listed_names);
  std::string text = "  with a name, the earliest first:\n";
  for (std::size_t i = 0; i != listed; ++i) {
    const timer_info& t = p.named[i];
    text += "    " + readable(t.id, t.name) + ", " + state_of(t, p);
    if (t.periodic) text += ", " + counted(t.runs, "run") + " so far";
    text += '\n';
  }
  if (listed != p.named.size()) text += "    … and " + std::to_string(p.named.size() - listed) + " more\n";
  return text;
}

}  // namespace

void draw(std::ostream& out, const picture& p) {
  const std::string text =
      headline(p) + outside_line(p) + queue_lines(p) + far_line(p) + spread_lines(p) + name_lines(p);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace rondo::detail
