// The exact text that dump() draws, and that the drawing shows what is in the wheel.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <limits>
#include <locale>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core.hpp"
#include "scheduler/seeds.hpp"
#include "scheduler/shown.hpp"

namespace scheduler_shown {

using namespace std::chrono_literals;
using namespace rondo;
using namespace rondo::detail;

/// The picture of a scheduler that began at the clock's epoch.
picture picture_at(duration now, std::size_t size, duration tick = 1ms) {
  return {.grid = tick_grid(tick, time_point()), .now = time_point(now), .size = size};
}

/// A bucket whose key is right.
picture::bucket bucket(std::size_t number, tick_number tick, std::size_t nodes) {
  return {number, tick, tick, nodes};
}

std::string drawn(const picture& p) {
  std::ostringstream out;
  draw(out, p);
  return out.str();
}

/// The column "due" of a bucket that is due at `tick`. The column begins below its title.
std::string due_of(picture p, tick_number tick) {
  p.buckets = {bucket(0, tick, 1)};
  const std::string text = drawn(p);
  const std::size_t titles = text.find("    #");
  const std::size_t row = text.find('\n', titles) + 1;
  const std::size_t due = row + text.find("due  ", titles) - titles;
  return text.substr(due, text.find("  ", due) - due);
}

std::string due_in(duration d) { return due_of(picture_at(0ns, 1, 1ns), d.count()); }

/// Formats numbers in groups of two digits, which nobody wants to see in a drawing.
struct groups_of_two : std::numpunct<char> {
  std::string do_grouping() const override { return "\2"; }
  char do_thousands_sep() const override { return '\''; }
};

TEST_CASE("drawing a scheduler without timers") {
  CHECK(drawn(picture_at(1s, 512)) == "rondo at tick 1000 (1 ms each): 0 nodes in 0 of 512 buckets\n");
}

TEST_CASE("drawing timers that are not in the wheel, and an empty wheel") {
  picture p = picture_at(1s, 1, 20us);
  p.all.never_due = 1;
  CHECK(drawn(p) ==
        "rondo at tick 50000 (20 µs each): 0 nodes in 0 of 1 bucket\n"
        "  not in the wheel: 1 never due\n");
  p.all.in_pass = 2;
  p.all.submitted = 3;
  p.all.running = 4;
  p.all.without_memory = 5;
  CHECK(drawn(p) ==
        "rondo at tick 50000 (20 µs each): 0 nodes in 0 of 1 bucket\n"
        "  not in the wheel: 2 ready in the pass in progress, 1 never due, 3 with the executor, 4 running, "
        "5 waiting for memory\n");
}

TEST_CASE("drawing the example of the header and of README") {
  picture p = picture_at(1000500us, 512);
  p.all.never_due = 2;
  p.all.running = 1;
  p.buckets = {bucket(100, 1124, 1), {12, 1036, 0, 0}, bucket(490, 1002, 3)};
  p.far = {.nodes = 3, .earliest = 1548, .latest = 2025, .key = 1512};
  CHECK(drawn(p) ==
        "rondo at tick 1000 (1 ms each): 4 nodes in 2 of 512 buckets, 3 further away\n"
        "  not in the wheel: 2 never due, 1 running\n"
        "  delay queue, 3 buckets, the earliest first:\n"
        "    #     bucket  tick  due           nodes\n"
        "    1        490  1002  in 1.5 ms         3\n"
        "    2  ~      12  1036  (in 35.5 ms)      0\n"
        "    3        100  1124  in 123 ms         1\n"
        "    ~ no node is due then any more: the key is corrected when it comes to the top\n"
        "  far: 3 nodes, the earliest in 547 ms, the latest in 1.02 s, their key in 511 ms\n"
        "  spread, 8 buckets a column, █ = 3 nodes:\n"
        "    |············▃················································█··|\n"
        "                                                                  ^ now\n");
}

TEST_CASE("drawing one bucket") {
  picture p = picture_at(1000500us, 8);
  p.buckets = {bucket(2, 1002, 3)};
  CHECK(drawn(p) ==
        "rondo at tick 1000 (1 ms each): 3 nodes in 1 of 8 buckets\n"
        "  delay queue, 1 bucket, the earliest first:\n"
        "    #    bucket  tick  due        nodes\n"
        "    1         2  1002  in 1.5 ms      3\n"
        "  spread, 1 bucket a column, █ = 3 nodes:\n"
        "    |··█·····|\n"
        "     ^ now\n");
}

TEST_CASE("drawing only far nodes") {
  picture p = picture_at(0s, 8);
  p.far = {.nodes = 1, .earliest = 1000, .latest = 1000, .key = 1000};
  CHECK(drawn(p) ==
        "rondo at tick 0 (1 ms each): 0 nodes in 0 of 8 buckets, 1 further away\n"
        "  far: 1 node in 1 s\n");
  p.far = {.nodes = 1'000'000, .earliest = -3, .latest = 1000, .key = -3};
  CHECK(drawn(p) ==
        "rondo at tick 0 (1 ms each): 0 nodes in 0 of 8 buckets, 1000000 further away\n"
        "  far: 1000000 nodes, the earliest late 3 ms, the latest in 1 s\n");
}

TEST_CASE("drawing a key of far nodes that cancel() left behind") {
  picture p = picture_at(0s, 8);
  p.far.key = 7;
  CHECK(drawn(p) ==
        "rondo at tick 0 (1 ms each): 0 nodes in 0 of 8 buckets\n"
        "  far: 0 nodes, their key in 7 ms\n");
  p.far = {.nodes = 1, .earliest = 1000, .latest = 1000, .key = 7};
  CHECK(drawn(p).find("  far: 1 node in 1 s, their key in 7 ms\n") != std::string::npos);
}

TEST_CASE("the earliest bucket is drawn first, among equal ones that with the lower number") {
  picture p = picture_at(0s, 4);
  p.buckets = {bucket(3, 7, 1), bucket(1, 5, 8), bucket(2, 2, 3), bucket(0, 5, 2)};
  CHECK(drawn(p) ==
        "rondo at tick 0 (1 ms each): 14 nodes in 4 of 4 buckets\n"
        "  delay queue, 4 buckets, the earliest first:\n"
        "    #    bucket  tick  due      nodes\n"
        "    1         2     2  in 2 ms      3\n"
        "    2         0     5  in 5 ms      2\n"
        "    3         1     5  in 5 ms      8\n"
        "    4         3     7  in 7 ms      1\n"
        "  spread, 1 bucket a column, █ = 8 nodes:\n"
        "    |▂█▃▁|\n"
        "     ^ now\n");
}

TEST_CASE("drawing ticks before the clock's epoch") {
  picture p = picture_at(-2500us, 4);
  p.buckets = {bucket(1, -3, 2), bucket(0, -4, 1), bucket(2, -2, 1)};
  p.far = {.nodes = 2, .earliest = -11, .latest = 2, .key = -11};
  CHECK(drawn(p) ==
        "rondo at tick -3 (1 ms each): 4 nodes in 3 of 4 buckets, 2 further away\n"
        "  delay queue, 3 buckets, the earliest first:\n"
        "    #    bucket  tick  due          nodes\n"
        "    1         0    -4  late 1.5 ms      1\n"
        "    2         1    -3  now              2\n"
        "    3         2    -2  in 500 µs        1\n"
        "  far: 2 nodes, the earliest late 8.5 ms, the latest in 4.5 ms\n"
        "  spread, 1 bucket a column, █ = 2 nodes:\n"
        "    |▄█▄·|\n"
        "      ^ now\n");
}

TEST_CASE("drawing a million nodes, most of them in one bucket") {
  picture p = picture_at(0s, 1024);
  p.buckets = {bucket(700, 700, 999'999), bucket(100, 100, 1)};
  CHECK(drawn(p) ==
        "rondo at tick 0 (1 ms each): 1000000 nodes in 2 of 1024 buckets\n"
        "  delay queue, 2 buckets, the earliest first:\n"
        "    #    bucket  tick  due         nodes\n"
        "    1       100   100  in 100 ms       1\n"
        "    2       700   700  in 700 ms  999999\n"
        "  spread, 16 buckets a column, █ = 999999 nodes:\n"
        "    |······▁····································█····················|\n"
        "     ^ now\n");
}

TEST_CASE("keys that cancel() left behind are marked, even those of empty buckets") {
  picture p = picture_at(4500us, 4);
  p.buckets = {{1, 1, 1, 0}, {2, 6, 10, 1}, bucket(3, 7, 1)};
  CHECK(drawn(p) ==
        "rondo at tick 4 (1 ms each): 2 nodes in 2 of 4 buckets\n"
        "  delay queue, 3 buckets, the earliest first:\n"
        "    #     bucket  tick  due            nodes\n"
        "    1  ~       1     1  (late 3.5 ms)      0\n"
        "    2  ~       2     6  (in 1.5 ms)        1\n"
        "    3          3     7  in 2.5 ms          1\n"
        "    ~ no node is due then any more: the key is corrected when it comes to the top\n"
        "  spread, 1 bucket a column, █ = 1 node:\n"
        "    |··██|\n"
        "     ^ now\n");
}

TEST_CASE("an empty wheel with a key left behind is drawn without a spread") {
  picture p = picture_at(0s, 4);
  p.buckets = {{1, 1, 1, 0}};
  CHECK(drawn(p) ==
        "rondo at tick 0 (1 ms each): 0 nodes in 0 of 4 buckets\n"
        "  delay queue, 1 bucket, the earliest first:\n"
        "    #     bucket  tick  due        nodes\n"
        "    1  ~       1     1  (in 1 ms)      0\n"
        "    ~ no node is due then any more: the key is corrected when it comes to the top\n");
}

TEST_CASE("the drawing reports what must never happen: nodes that are due before their key") {
  picture p = picture_at(0s, 4);
  p.buckets = {bucket(0, 4, 1), {1, 9, 5, 3}};
  p.far = {.nodes = 2, .earliest = 10, .latest = 20, .key = 8, .key_is_late = true};
  CHECK(drawn(p) ==
        "rondo at tick 0 (1 ms each): 4 nodes in 2 of 4 buckets, 2 further away\n"
        "  delay queue, 2 buckets, the earliest first:\n"
        "    #     bucket  tick  due      nodes\n"
        "    1          0     4  in 4 ms      1\n"
        "    2  !       1     9  in 9 ms      3\n"
        "    ! it has a node due before its key: a defect of the library\n"
        "  far: 2 nodes, the earliest in 10 ms, the latest in 20 ms, their key in 8 ms"
        " ! one is due before its key: a defect of the library\n"
        "  spread, 1 bucket a column, █ = 3 nodes:\n"
        "    |▃█··|\n"
        "     ^ now\n");
}

TEST_CASE("of many buckets, the drawing lists the first 32 and says how many more there are") {
  const auto lines_of = [](std::size_t buckets) {
    picture p = picture_at(0s, 64);
    for (std::size_t b = 0; b != buckets; ++b) p.buckets.push_back(bucket(b, static_cast<tick_number>(b), 1));
    return drawn(p);
  };
  CHECK(lines_of(32).find("more bucket") == std::string::npos);
  CHECK(lines_of(33).find("   32        31    31  in 31 ms      1\n"
                          "    … and 1 more bucket, the last one: in 32 ms\n") != std::string::npos);
  CHECK(lines_of(50).find("    … and 18 more buckets, the last one: in 49 ms\n") != std::string::npos);
}

TEST_CASE("the drawing marks now below its column, even in later turns of the wheel") {
  picture p = picture_at(1024ms + 17ms, 128);
  p.buckets = {bucket(17, 1041, 1)};
  CHECK(drawn(p).find("    |········█·······················································|\n"
                      "             ^ now\n") != std::string::npos);
}

TEST_CASE("the drawing shows the tick in progress as now, not as late") {
  const picture p = picture_at(7999us, 1);
  CHECK(due_of(p, 6) == "late 1.99 ms");
  CHECK(due_of(p, 7) == "now");
  CHECK(due_of(p, 8) == "in 1 µs");
}

TEST_CASE("durations are drawn in the most readable unit, with three digits") {
  CHECK(due_in(1ns) == "in 1 ns");
  CHECK(due_in(999ns) == "in 999 ns");
  CHECK(due_in(1us) == "in 1 µs");
  CHECK(due_in(1050ns) == "in 1.05 µs");
  CHECK(due_in(20us) == "in 20 µs");
  CHECK(due_in(999'999ns) == "in 999 µs");
  CHECK(due_in(1500us) == "in 1.5 ms");
  CHECK(due_in(12'345us) == "in 12.3 ms");
  CHECK(due_in(123'456us) == "in 123 ms");
  CHECK(due_in(3200ms) == "in 3.2 s");
  CHECK(due_in(59'999ms) == "in 59.9 s");
  CHECK(due_in(90s) == "in 1.5 min");
  CHECK(due_in(2h) == "in 2 h");
  CHECK(due_in(36h) == "in 1.5 d");
  CHECK(due_in(duration::max()) == "in 106751 d");
}

TEST_CASE("drawing the ends of the clock does not overflow") {
  constexpr tick_number last = std::numeric_limits<tick_number>::max();
  constexpr tick_number first = std::numeric_limits<tick_number>::min();
  CHECK(due_of(picture_at(-1h, 1), last) == "in 106751 d");
  CHECK(due_of(picture_at(1h, 1), first) == "late 106751 d");
  CHECK(due_of(picture_at(duration::min(), 1, 1ns), first) == "now");
  CHECK(due_of(picture_at(duration::max(), 1, 1ns), last) == "now");
}

TEST_CASE("the stream's flags, width, fill and locale do not affect the drawing, and are not changed") {
  picture p = picture_at(1000500us, 512);
  p.buckets = {bucket(2, 1002, 123'456)};
  p.far = {.nodes = 1234, .earliest = 2026, .latest = 20'260, .key = 2026};
  p.all.never_due = 1'234'567;
  std::ostringstream out;
  out.imbue(std::locale(std::locale::classic(), new groups_of_two));
  out << std::hex << std::showbase << std::showpos << std::left << std::setfill('*') << std::setw(1000);
  const auto flags = out.flags();
  draw(out, p);
  CHECK(out.str() == drawn(p));
  CHECK(out.flags() == flags);
  CHECK(out.width() == 1000);
}

/// The wheel of this thread's shard, which is the only one.
struct one_shard {
  explicit one_shard(std::size_t buckets) : all(buckets, 0), wheel(all.of(all.take()).wheel) {}
  picture described() const { return picture_of(all, 1, tick_grid(1ms, time_point()), time_point()); }
  shards all;
  wheel_core& wheel;
};

TEST_CASE("the description of a wheel has its buckets, far nodes and keys left behind") {
  one_shard w(8);
  CHECK(w.described().buckets.empty());
  CHECK_FALSE(w.described().far.key.has_value());
  std::array<node, 5> n;
  w.wheel.schedule(n[0], 2);
  w.wheel.schedule(n[1], 17);
  w.wheel.schedule(n[2], 2);
  w.wheel.schedule(n[3], 18);
  w.wheel.schedule(n[4], 5);
  const auto check_bucket = [&](std::size_t i, std::size_t number, tick_number key, std::size_t nodes) {
    const picture::bucket b = w.described().buckets.at(i);
    CHECK(b.number == number);
    CHECK(b.key == key);
    CHECK(b.nodes == nodes);
    if (nodes != 0) CHECK(b.tick == key);
  };
  check_bucket(0, 2, 2, 2);
  check_bucket(1, 5, 5, 1);
  CHECK(w.described().buckets.size() == 2);
  CHECK(w.described().far.nodes == 2);
  CHECK(w.described().far.earliest == 17);
  CHECK(w.described().far.latest == 18);
  CHECK(w.described().far.key == 17);
  CHECK_FALSE(w.described().far.key_is_late);
  w.wheel.cancel(n[0]);
  w.wheel.cancel(n[2]);
  check_bucket(0, 2, 2, 0);
  w.wheel.cancel(n[1]);
  CHECK(w.described().far.earliest == 18);
  CHECK(w.described().far.key == 17);
  CHECK(w.wheel.next_due() == 5);  // corrects the key of the bucket
  check_bucket(0, 5, 5, 1);
  w.wheel.cancel(n[4]);
  CHECK(w.wheel.next_due() == 18);  // and the key of the far nodes
  CHECK(w.described().buckets.empty());
  CHECK(w.described().far.key == 18);
  w.wheel.cancel(n[3]);
  CHECK(w.described().far.nodes == 0);
  CHECK(w.described().far.key == 18);
  CHECK_FALSE(w.wheel.next_due().has_value());
  CHECK_FALSE(w.described().far.key.has_value());
}

TEST_CASE("descriptions of random wheels have each node once, and no late key") {
  for (const std::uint64_t seed : rondo::test::seeds("wheels looked at", 10)) {
    CAPTURE(seed);
    rondo::test::dice dice(seed);
    one_shard w(16);
    std::vector<node> nodes(500);
    std::map<tick_number, std::size_t> expected;
    for (int step = 0; step != 3000; ++step) {
      node& n = nodes[dice.roll(nodes.size())];
      if (n.is_scheduled()) {
        if (--expected[n.due] == 0) expected.erase(n.due);
        w.wheel.cancel(n);
      } else {
        w.wheel.schedule(n, static_cast<tick_number>(dice.roll(dice.one_in(4) ? 5000 : 50)) - 20);
        ++expected[n.due];
      }
      if (dice.one_in(50)) w.wheel.next_due();
    }
    const picture p = w.described();
    for (const picture::bucket& b : p.buckets) {
      CHECK((static_cast<std::size_t>(b.key) & 15) == b.number);
      if (b.nodes == 0) continue;
      CHECK(b.key == b.tick);
      CHECK(expected[b.tick] == b.nodes);
      expected.erase(b.tick);
    }
    std::size_t rest = 0;
    for (const auto& [tick, count] : expected) rest += count;
    REQUIRE(rest != 0);
    CHECK(p.far.nodes == rest);
    CHECK(p.far.earliest == expected.begin()->first);
    CHECK(p.far.latest == expected.rbegin()->first);
    CHECK(*p.far.key <= p.far.earliest);
    CHECK_FALSE(p.far.key_is_late);
    for (node& n : nodes)
      if (n.is_scheduled()) w.wheel.cancel(n);
  }
}

}  // namespace scheduler_shown
