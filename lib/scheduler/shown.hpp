// What a scheduler shows of itself, read from its shards: its timers, a drawing, and where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_info.hpp>

#include "scheduler/shards.hpp"

namespace rondo::detail {

/// Where the timers of a scheduler and its records are. Exact while nothing is in progress.
struct census {
  std::uint64_t in_wheel = 0;
  std::uint64_t in_pass = 0;  // taken out of the wheel, and not yet begun
  std::uint64_t never_due = 0;
  std::uint64_t without_memory = 0;  // there was none to insert them into the wheel
  std::uint64_t with_executor = 0;   // pending, and wait for nothing else
  std::uint64_t slots = 0;
  std::uint64_t free = 0;
  // Runs:
  std::uint64_t submitted = 0;  // to an executor, not started
  std::uint64_t running = 0;

  std::uint64_t pending() const noexcept {
    return in_wheel + in_pass + never_due + without_memory + with_executor;
  }
};

// No function here locks a shard while another one is locked, or returns with a lock held.

census census_of(const shards&);

/// Describes how they disagree; empty if they agree.
std::string fault_of(const counters&, const census&);

/// The timers that are pending or running, the earliest first. The ids are those of the scheduler with that number.
std::vector<timer_info> list_of(const shards&, std::uint32_t scheduler);

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

  census all{};
  std::vector<timer_info> named{};  // the timers that have a name, the earliest first
};

/// The picture of the scheduler with that number. O(buckets + timers).
picture picture_of(const shards&, std::uint32_t scheduler, const tick_grid&, time_point now);

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
