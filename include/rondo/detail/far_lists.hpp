// The nodes outside the wheel's window, in a few lists. The further away their ticks, the coarser the lists.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <rondo/detail/chunks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem", 1990) with
/// octal digits: a hierarchical timing wheel without a clock. Ticks are counted in blocks of `2^block_shift`. The
/// position of the highest octal digit in which a block differs from the base block is its level, and the value of
/// that digit is its list within the level. So lists are ordered by time, and each spans 8^level blocks. When the base
/// reaches a list, its nodes are redistributed in order: each goes where it would be added now. So a node moves at
/// most once for each digit of its distance, and never if it is cancelled early.
///
/// Redistribution is done in parts, so that no call takes long. The nodes that are not yet redistributed are a list of
/// their own, `rest`, with a range of ticks. A node added in that range goes to its end, so that nodes of one tick keep
/// their order.
///
/// A node may be cancelled, and may get a later due tick, while it stays where it is: then it is dropped, or goes where
/// it is due now, when its list is redistributed. So a node is never due before its list begins, but may be due after
/// the list ends.
class RONDO_EXPORT far_lists {
 public:
  using block = std::uint64_t;
  static constexpr std::size_t digits = 8;
  static constexpr std::size_t list_count = 22 * digits;  // 22 octal digits, enough for 64 bits

  explicit far_lists(chunk_pool& pool, int block_shift = 0) noexcept
      : pool_(pool), block_shift_(block_shift) {}

  /// The block of a tick. Blocks are in the same order as ticks, including negative ones.
  block block_of(tick_number t) const noexcept {
    return (static_cast<std::uint64_t>(t) ^ sign) >> block_shift_;
  }

  /// Adds `n`, whose due tick is set. If its list has no room, does nothing and returns false. Preconditions: there are
  /// lists; `n` is due after the base and after the range being redistributed.
  bool add_at_once(node& n, tick_number due) noexcept {
    if (!lists[index_of(due)].push_at_once(n)) [[unlikely]]
      return false;
    pool_.note_earliest(n.position / chunk_pool::chunk_slots, due);
    return true;
  }

  /// Makes it legal to add() a node with this due tick, which may be any tick; it need not be added. Strong guarantee.
  void make_room(tick_number due);
  /// Precondition: make_room() was called with the due tick of `n`, and no other node was added since.
  void add(node& n, tick_number due) noexcept;

  /// Whether it is known to hold no node. May be false for an empty store if nodes were erased.
  bool surely_empty() const noexcept { return first == list_count && rest.first == 0; }

  /// A tick that no node precedes, and a node that is due at it, or null if none is known.
  struct key {
    tick_number due;
    node* at_it;
  };
  /// The earliest due tick, or none if there is no node. If it takes more than one chunk to find it, and it is known to
  /// be later than `known`, the result may be an earlier tick after `known`. Frees lists whose nodes were all erased or
  /// cancelled. Afterwards no node precedes the result, not even a cancelled one. O(nodes in the lists that begin before
  /// the result / 64), more if nodes were erased, cancelled or moved in place.
  std::optional<key> earliest(tick_number known = std::numeric_limits<tick_number>::max()) noexcept;

  /// Moves the base to a later block, that of `t`. The nodes of that block's list and of all earlier lists must then be
  /// redistributed.
  void move_base(tick_number t) noexcept;

  /// Redistributes at most `limit` nodes. take(node&) may move the node to another chain of the pool, and returns
  /// whether it did; if not, the node goes to its list. take() may throw; strong guarantee.
  template <class Take>
  void redistribute(std::uint32_t limit, Take&& take) {
    for (; rest.first != 0 && limit != 0; --limit) {
      node* const n = rest.front(pool_);
      if (n == nullptr) return rest.release(pool_);
      if (pool_.drop_if_cancelled(*n)) {
        rest.pop_front(pool_);
        continue;
      }
      const bool is_taken = take(*n);
      const std::size_t list = is_taken ? 0 : make_room_in_list(n->due);
      rest.pop_front(pool_);
      if (!is_taken) add_to_list(list, *n, n->due);
    }
  }

  /// Calls take(node&), which moves the node to another chain of the pool, for the first `limit` nodes due at `due`, in
  /// order. take() may throw; strong guarantee. Preconditions: `due` is in the range being redistributed; no node is
  /// due before it.
  template <class Take>
  void extract(tick_number due, std::uint32_t limit, Take&& take) {
    for (chunk_pool::chunk c = rest.first; c != 0; c = pool_.chunks[c].next) {
      if (pool_.chunks[c].earliest > due) continue;
      tick_number others = std::numeric_limits<tick_number>::max();
      for (node*& slot : rest.slots(c, pool_)) {
        if (slot == nullptr || pool_.erase_if_cancelled(slot, c)) continue;
        if (slot->due != due) {
          if (slot->due < others) others = slot->due;
          continue;
        }
        if (limit-- == 0) return;
        take(*slot);
        slot = nullptr;
        ++pool_.holes[c];
      }
      pool_.chunks[c].earliest = others;
    }
    if (due < rest_last) rest_first = due + 1;
  }

  /// The earliest list, if it covers a single block (adding nodes does not change that); null if it must be
  /// redistributed first. The list holds a node if nothing was erased since earliest() was called.
  chain* single_block() noexcept { return rest.first == 0 && first < digits ? &lists[first] : nullptr; }

  /// Gives back the chunks of lists whose nodes were all erased. If no node is left, it also gives back the lists
  /// themselves, unless `keeps_lists`. O(lists), more if nodes were erased.
  void shrink_to_fit(bool keeps_lists) noexcept;

  /// Also visits cancelled nodes.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const chain& list : lists) list.for_each(pool_, visit);
    rest.for_each(pool_, visit);
  }

  /// See detail/checks.hpp. O(nodes).
  std::string fault() const;

 private:
  static constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  static constexpr int digit_bits = 3;

  /// The list of a tick. Precondition: its block is not before the base.
  std::size_t index_of(tick_number t) const noexcept {
    const block b = (static_cast<std::uint64_t>(t) ^ sign) >> block_shift_;
    // The index of the highest bit, 0 … 63. In this range, multiplying by 43 / 128 divides by three.
    const auto highest = static_cast<std::uint32_t>(63 ^ std::countl_zero((b ^ base) | 1U));
    const std::uint32_t level = highest * 43 / 128;
    return level * digits + (b >> level * digit_bits) % digits;
  }
  bool is_in_rest(tick_number due) const noexcept {
    return rest.first != 0 && due >= rest_first && due <= rest_last;
  }

  /// Makes room in the list of a tick, and returns which list it is.
  std::size_t make_room_in_list(tick_number due);
  /// Precondition: the list has room.
  void add_to_list(std::size_t index, node& n, tick_number due) noexcept {
    lists[index].push_at_once(n);
    pool_.note_earliest(n.position / chunk_pool::chunk_slots, due);
  }
  void mark(std::size_t index) noexcept {
    marks_[index / 64] |= std::uint64_t{1} << index % 64;
    if (index < first) first = index;
  }
  void unmark(std::size_t index) noexcept;
  /// The first list at or after `index` that has chunks, or list_count.
  std::size_t marked_at_or_after(std::size_t index) const noexcept;
  tick_number begin_of_list(std::size_t index) const noexcept;
  key earliest_of(const chain& list) noexcept;
  template <class IsHere>
  std::string fault_of(const chain& list, tick_number begin, const IsHere& is_here) const;

  // What add_at_once() reads comes first.
  chunk_pool& pool_;
  int block_shift_;

 public:
  block base = 0;
  std::vector<chain> lists;        // 22 levels of 8, ordered by time; allocated when needed
  std::size_t first = list_count;  // the earliest list that has chunks, or list_count

  // The nodes that are being redistributed, and the first and the last tick of their range. Redistribution is in
  // progress as long as `rest` has chunks; otherwise the range has no meaning.
  chain rest;
  tick_number rest_first = 0;
  tick_number rest_last = 0;

 private:
  std::array<std::uint64_t, list_count / 64 + 1> marks_{};  // bit i: list i has chunks
};

}  // namespace rondo::detail
