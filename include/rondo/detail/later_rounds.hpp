// The rounds of a bucket after its next one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rondo/detail/node_array.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem", 1990)
/// over the rounds of one bucket. A round's level is the highest bit in which it differs from `base_`, a
/// round that no node here precedes, so adding is one count of leading zeros. Taking the next round moves
/// `base_` up to it and deals the lowest level out to levels below: a node moves at most once for each bit of
/// its distance, in passes over contiguous arrays, and one that is cancelled early never moves.
///
/// All due ticks of a bucket have the same low bits, so due ticks are compared where rounds are meant.
class RONDO_EXPORT later_rounds {
 public:
  /// `round_shift`: a tick's round is `tick >> round_shift`.
  explicit later_rounds(int round_shift) noexcept : round_shift_(round_shift) {}

  bool empty() const noexcept { return occupied_ == 0; }

  /// Afterwards add() of a node with this due tick does not allocate. Strong guarantee.
  void make_room(tick_number due);

  /// Precondition: room was made for its due tick, and nothing else added since.
  void add(node&) noexcept;

  void erase(const node&) noexcept;

  /// Moves the earliest round here, its nodes in order, to `next` and returns its tick. Strong guarantee.
  /// Preconditions: !empty(), next.empty().
  tick_number take_next(node_array& next);

  /// Takes over all nodes of `round`, which is empty afterwards. Strong guarantee.
  /// Preconditions: all of them are due at `due`, and no node here is.
  void put_back(node_array& round, tick_number due);

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const level& l : levels_) l.nodes.for_each(visit);
  }

  /// See detail/checks.hpp. O(nodes).
  std::string fault() const;

 private:
  struct level {
    node_array nodes;
    tick_number earliest = 0;  // bounds of what was added since it was empty
    tick_number latest = 0;
  };

  std::size_t level_of(tick_number due) const noexcept { return level_between(due, base_); }
  std::size_t level_between(tick_number due, tick_number base) const noexcept {
    const auto difference = static_cast<std::uint64_t>(due ^ base) >> round_shift_;
    return static_cast<std::size_t>(std::bit_width(difference | 1U)) - 1;
  }
  static std::uint64_t bit(std::size_t level) noexcept { return std::uint64_t{1} << level; }
  void include(std::size_t level, tick_number earliest, tick_number latest) noexcept;
  void lower_base(tick_number due);
  void deal(std::size_t level, tick_number base, node_array& next);
  std::string fault_of(std::size_t level) const;

  int round_shift_;
  tick_number base_ = 0;
  std::uint64_t occupied_ = 0;  // bit i: level i holds nodes
  std::vector<level> levels_;
};

}  // namespace rondo::detail
