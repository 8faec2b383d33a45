// The contents of a scheduler as text, for debugging.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iosfwd>
#include <limits>
#include <optional>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_info.hpp>

#include "scheduler/shards.hpp"

namespace rondo::detail {

/// Everything that draw() shows. It is collected first and drawn afterwards, because streams are user code, which must
/// not run while the wheel is locked.
struct picture {
  /// A bucket that has an entry in the delay queue. All its nodes are due at one tick.
  struct bucket {
    std::size_t number = 0;
    tick_number key = 0;   // in the delay queue
    tick_number tick = 0;  // of its nodes, if it has any
    std::size_t nodes = 0;
  };

  /// The far timers of all shards.
  struct far_part {
    std::size_t nodes = 0;
    tick_number earliest = std::numeric_limits<tick_number>::max();  // of the nodes
    tick_number latest = std::numeric_limits<tick_number>::min();
    std::optional<tick_number> key{};  // their earliest key in the delay queue
    bool key_is_late = false;          // in some shard, a node is due before the key
  };

  tick_grid grid;
  time_point now;
  std::size_t size = 0;           // of the wheel, in buckets
  std::vector<bucket> buckets{};  // in any order
  far_part far{};

  // Timers that are not in the wheel.
  std::size_t ready = 0;  // due in the pass in progress
  std::size_t never_due = 0;
  std::size_t submitted = 0;  // to the executor, not started
  std::size_t running = 0;
  std::size_t without_memory = 0;  // there was no memory to insert them into the wheel

  std::vector<timer_info> named{};  // the timers that have a name, the earliest first

  /// Adds the nodes of a bucket to those of another shard's bucket with the same number and key, if there is one.
  void add(const bucket& more) {
    const auto same = std::find_if(buckets.begin(), buckets.end(), [&](const bucket& b) {
      return b.number == more.number && b.key == more.key;
    });
    if (same == buckets.end()) return buckets.push_back(more);
    same->nodes += more.nodes;
    if (more.nodes != 0) same->tick = more.tick;
  }
};

/// Adds the contents of the wheels, read shard by shard. No shard is locked while another one is, and none when it returns.
/// O(buckets + nodes).
inline void describe(const shards& all, picture& p) {
  all.for_each([&](const shard& s) {
    const std::lock_guard hold(s.mutex);
    s.wheel.for_each_entry([&](std::optional<std::size_t> number, tick_number key, auto&& for_each_node) {
      picture::far_part seen;
      for_each_node([&](const node& n) {
        ++seen.nodes;
        seen.earliest = std::min(seen.earliest, n.due);
        seen.latest = std::max(seen.latest, n.due);
      });
      if (number) return p.add({*number, key, seen.earliest, seen.nodes});
      p.far.nodes += seen.nodes;
      p.far.earliest = std::min(p.far.earliest, seen.earliest);
      p.far.latest = std::max(p.far.latest, seen.latest);
      p.far.key = std::min(p.far.key.value_or(key), key);
      p.far.key_is_late |= seen.earliest < key;
    });
  });
}

/// Draws the picture: what is not in the wheel, the buckets in the order of the delay queue, how many timers are
/// further away, how the nodes are spread over the buckets, and the timers that have a name. Durations are cut off
/// after three digits. The text is UTF-8. It is one unformatted write, so the stream's flags, width, fill and locale do
/// not matter. Throws what the stream throws, and std::bad_alloc. Precondition: `size` is a power of two, or there are
/// no buckets.
///
///     rondo at tick 1000 (1 ms each): 4 nodes in 2 of 512 buckets, 3 further away
///       not in the wheel: 2 never due, 1 running
///       delay queue, 3 buckets, the earliest first:
///         #     bucket  tick  due           nodes
///         1        490  1002  in 1.5 ms         3
///         2  ~      12  1036  (in 35.5 ms)      0
///         3        100  1124  in 123 ms         1
///         ~ no node is due then any more: the key is corrected when it comes to the top
///       far: 3 nodes, the earliest in 547 ms, the latest in 1.02 s, their key in 511 ms
///       spread, 8 buckets a column, █ = 3 nodes:
///         |············▃················································█··|
///                                                                       ^ now
///       with a name, the earliest first:
///         timer 1.7.12 "report", in 123 ms, 4 runs so far
void draw(std::ostream&, const picture&);

}  // namespace rondo::detail
