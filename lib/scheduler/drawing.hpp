// What a scheduler holds, as text for a person who is debugging.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// All that draw() shows. It is collected first and drawn then, as streams are user code, which must not run
/// while the wheel is locked.
struct picture {
  struct round {
    tick_number tick = 0;
    std::size_t nodes = 0;
    friend bool operator==(const round&, const round&) noexcept = default;
  };

  struct bucket {
    std::size_t index = 0;
    std::optional<tick_number> key;  // in the delay queue, if it is there
    std::vector<round> rounds;       // each tick once, the earliest first
  };

  tick_grid grid;
  time_point now;
  std::size_t size = 0;           // of the wheel, in buckets
  std::vector<bucket> buckets{};  // with nodes or in the delay queue; in any order

  // Timers that are not in the wheel.
  std::size_t ready = 0;  // due in the pass in progress
  std::size_t never_due = 0;
  std::size_t handed_over = 0;  // to the executor, not started
  std::size_t running = 0;
  std::size_t unplaced = 0;  // there was no memory to put them into the wheel
};

/// Brings rounds into the order that a picture has them in, each once.
void tidy_rounds(std::vector<picture::round>&);

/// The buckets of a wheel, read one after another. No lock is held while another one is, nor when it returns.
/// O(nodes log nodes), 16 bytes a round (more while collecting, if the nodes of a round do not lie together).
template <class Sync>
std::vector<picture::bucket> look_at(const wheel_core<Sync>& wheel) {
  std::vector<picture::bucket> seen;
  wheel.for_each_bucket([&](std::size_t index, std::optional<tick_number> key, const bucket& b) {
    std::vector<picture::round>& rounds = seen.emplace_back(picture::bucket{index, key, {}}).rounds;
    b.for_each([&](const node& n) {
      if (rounds.empty() || rounds.back().tick != n.due) rounds.push_back({n.due, 0});
      ++rounds.back().nodes;
    });
  });
  for (picture::bucket& b : seen) tidy_rounds(b.rounds);
  return seen;
}

/// Draws it: what is not in the wheel, the delay queue with the earliest bucket first and the rounds of each,
/// and how the nodes are spread over the wheel. Durations are cut off after three digits. UTF-8; the same
/// whatever the stream's flags, width, fill and locale are, as it is one unformatted write. Throws what the
/// stream does, and std::bad_alloc. Precondition: `size` is a power of two, or there are no buckets.
///
///     rondo at tick 1000 (1 ms each): 8 nodes in 3 of 512 buckets
///       not in the wheel: 2 never due, 1 running
///       delay queue, 3 buckets, the earliest first:
///         #     bucket  tick  due           nodes  later rounds
///         1        490  1002  in 1.5 ms         3  in 513 ms ×1, in 1.02 s ×2
///         2  ~      12  1036  (in 35.5 ms)      0  in 547 ms ×1
///         3        100  1124  in 123 ms         1
///         ~ no node is due then any more: the key is corrected when it comes to the top
///       spread, 8 buckets a column, █ = 6 nodes:
///         |·▂··········▂················································█··|
///                                                                       ^ now
void draw(std::ostream&, const picture&);

}  // namespace rondo::detail
