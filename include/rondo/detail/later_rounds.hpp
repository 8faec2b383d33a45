// The rounds of a bucket after its next one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <rondo/detail/node_array.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem", 1990)
/// over the rounds of one bucket. A round's level is the highest bit in which it differs from `base_`, a
/// round that no node here precedes, so adding is one count of leading zeros. To take the next round the
/// lowest level is dealt out to levels below, seen from the earliest round in it: a node moves at most once
/// for each bit of its distance, in passes over contiguous arrays, and one that is cancelled early never
/// moves. When a level has but a few nodes they stay where they are, and are looked through for each round.
///
/// All due ticks of a bucket have the same low bits, so due ticks are compared where rounds are meant. All
/// calls are given the wheel's `round_shift`: a tick's round is `tick >> round_shift`.
class RONDO_EXPORT later_rounds {
 public:
  bool empty() const noexcept { return occupied_ == 0; }

  /// Adds `n` if that needs no memory and nothing else; otherwise does nothing and returns false.
  bool add_at_once(node& n, tick_number due, int round_shift) noexcept {
    const std::size_t target = level_of(due, round_shift);
    if (due < base_ || target >= level_count_ || !levels_[target].has_room() || empty()) return false;
    n.due = due;
    put(n, target);
    return true;
  }

  /// Afterwards add() of a node with this due tick does not allocate. Strong guarantee.
  void make_room(tick_number due, int round_shift);

  /// Precondition: room was made for its due tick, and nothing else added since.
  void add(node& n, int round_shift) noexcept { put(n, level_of(n.due, round_shift)); }

  void erase(const node& n, int round_shift) noexcept {
    const std::size_t home = level_of(n.due, round_shift);
    levels_[home].erase(n);
    if (levels_[home].empty()) occupied_ &= ~bit(home);
  }

  /// Moves the earliest round here, its nodes in order, to `next` and returns its tick. Strong guarantee.
  /// Preconditions: !empty(), next.empty().
  tick_number take_next(node_array& next, int round_shift);

  /// Takes over all nodes of `round`, which is empty afterwards. Strong guarantee.
  /// Preconditions: all of them are due at `due`, and no node here is.
  void put_back(node_array& round, tick_number due, int round_shift);

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t l = 0; l != level_count_; ++l) levels_[l].for_each(visit);
  }

  /// See detail/checks.hpp. O(nodes).
  std::string fault(int round_shift) const;

 private:
  std::size_t level_of(tick_number due, int round_shift) const noexcept {
    return level_between(due, base_, round_shift);
  }
  static std::size_t level_between(tick_number due, tick_number base, int round_shift) noexcept {
    const auto difference = static_cast<std::uint64_t>(due ^ base) >> round_shift;
    return static_cast<std::size_t>(std::bit_width(difference | 1U)) - 1;
  }
  static std::uint64_t bit(std::size_t level) noexcept { return std::uint64_t{1} << level; }
  void put(node& n, std::size_t level) noexcept {
    levels_[level].push_back(n);
    occupied_ |= bit(level);
  }
  void make_level(std::size_t level);
  void lower_base(tick_number due, int round_shift);
  void take_some(node_array& from, tick_number due, node_array& next);
  void deal(std::size_t level, tick_number base, node_array& next, int round_shift);
  std::string fault_of(std::size_t level, int round_shift) const;

  tick_number base_ = 0;
  std::uint64_t occupied_ = 0;  // bit i: level i holds nodes
  std::unique_ptr<node_array[]> levels_;
  std::uint32_t level_count_ = 0;
};

}  // namespace rondo::detail
