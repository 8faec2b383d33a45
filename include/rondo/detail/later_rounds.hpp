// The rounds of a bucket after its next one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <rondo/detail/node_array.hpp>
#include <rondo/detail/owned_array.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem", 1990)
/// over the rounds of one bucket. A round's level is the highest bit in which it differs from `base_`, a
/// round that no node here precedes, so adding is one count of leading zeros. To take the next round the
/// lowest level is dealt out to levels below, seen from the first round that belongs to it: a node moves at
/// most once for each bit of its distance, from one contiguous array to another, and one that is cancelled
/// early never moves. When a level has but a few nodes they stay where they are, and are looked through for
/// each round. A level of many nodes is dealt in parts, so that nobody waits long for the bucket's lock.
///
/// All due ticks of a bucket have the same low bits, so due ticks are compared where rounds are meant. All
/// calls are given the wheel's `round_shift`: a tick's round is `tick >> round_shift`.
class RONDO_EXPORT later_rounds {
 public:
  bool empty() const noexcept { return occupied_ == 0 && !dealing_; }

  /// Adds `n` if that needs no memory and nothing else; otherwise does nothing and returns false.
  bool add_at_once(node& n, tick_number due, int round_shift) noexcept {
    const std::size_t target = level_of(due, round_shift);
    if (due < base_ || target >= level_count_ || !level(target).has_room() || occupied_ == 0 || dealing_)
      return false;
    n.due = due;
    put(n, target);
    return true;
  }

  /// Afterwards add() of a node with this due tick does not allocate. Strong guarantee.
  void make_room(tick_number due, int round_shift);

  /// Precondition: room was made for its due tick, and nothing else added since.
  void add(node& n, int round_shift) noexcept {
    if (dealing_) [[unlikely]]
      return undealt().push_back(n);  // behind those of its round that are still to be dealt
    put(n, level_of(n.due, round_shift));
  }

  void erase(const node& n, int round_shift) noexcept {
    if (dealing_ && undealt().holds(n)) [[unlikely]] {
      undealt().erase(n);
      dealing_ = !undealt().empty();
      return;
    }
    const std::size_t home = level_of(n.due, round_shift);
    level(home).erase(n);
    if (level(home).empty()) occupied_ &= ~bit(home);
  }

  /// Moves the earliest round here, its nodes in order, to `next` and returns its tick. Nothing: it has moved
  /// as many nodes as is decent at a time, and wants to be called again. Strong guarantee.
  /// Preconditions: !empty(), next.empty().
  std::optional<tick_number> take_next(node_array& next, int round_shift);

  /// Takes over all nodes of `round`, which is empty afterwards. Strong guarantee.
  /// Preconditions: all of them are due at `due`, and no node here is; take_next() did not ask to be called
  /// again.
  void put_back(node_array& round, tick_number due, int round_shift);

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t l = 0; l != level_count_; ++l) level(l).for_each(visit);
    if (dealing_) undealt().for_each(visit);
  }

  /// See detail/checks.hpp. O(nodes).
  std::string fault(int round_shift) const;

 private:
  std::size_t level_of(tick_number due, int round_shift) const noexcept {
    const auto difference = static_cast<std::uint64_t>(due ^ base_) >> round_shift;
    return static_cast<std::size_t>(std::bit_width(difference | 1U)) - 1;
  }
  static std::uint64_t bit(std::size_t level) noexcept { return std::uint64_t{1} << level; }

  node_array& undealt() const noexcept { return arrays_[0]; }
  node_array& level(std::size_t l) const noexcept { return arrays_[l + 1]; }
  void put(node& n, std::size_t l) noexcept {
    level(l).push_back(n);
    occupied_ |= bit(l);
  }
  void make_level(std::size_t l);
  void lower_base(tick_number due, int round_shift);
  void take_some(std::size_t l, tick_number due, node_array& next);
  void begin_to_deal(std::size_t l, int round_shift) noexcept;
  bool deal(std::uint32_t& left, int round_shift);
  std::string fault_of(std::size_t l, int round_shift) const;

  tick_number base_ = 0;
  std::uint64_t occupied_ = 0;      // bit i: level i holds nodes
  owned_array<node_array> arrays_;  // what is still to be dealt, and the levels
  std::uint8_t level_count_ = 0;
  bool dealing_ = false;
};

}  // namespace rondo::detail
