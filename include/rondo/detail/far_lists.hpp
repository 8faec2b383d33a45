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
/// their own with a range of ticks. A node added in that range goes to its end, so that nodes of one tick keep their
/// order.
class RONDO_EXPORT far_lists {
 public:
  using block = std::uint64_t;

  explicit far_lists(chunk_pool& pool, int block_shift = 0) noexcept
      : pool_(pool), block_shift_(block_shift) {}

  /// The block of a tick. Blocks are in the same order as ticks, including negative ones.
  block block_of(tick_number t) const noexcept {
    return (static_cast<std::uint64_t>(t) ^ sign) >> block_shift_;
  }

  /// Adds `n`, whose due tick is set. If its list has no room, does nothing and returns false. Preconditions:
  /// has_lists(); `n` is due after the base and after the range being redistributed.
  bool add_at_once(node& n, tick_number due) noexcept {
    if (!lists_[index_of(due)].push_at_once(n)) [[unlikely]]
      return false;
    pool_.note_earliest(n.position / chunk_pool::chunk_slots, due);
    return true;
  }

  bool has_lists() const noexcept { return !lists_.empty(); }

  /// Makes it legal to add() a node with this due tick, which may be any tick. Strong guarantee.
  void make_room(tick_number due);
  /// Precondition: make_room() was called with the due tick of `n`, and no other node was added since.
  void add(node& n, tick_number due) noexcept;

  /// Whether it is known to hold no node. May be false for an empty store if nodes were erased.
  bool surely_empty() const noexcept { return levels_ == 0 && !redistributing(); }

  /// A tick that no node precedes. Precondition: !surely_empty(). O(1).
  tick_number lower_bound() const noexcept;
  /// Whether earliest() is O(1). Precondition: !surely_empty().
  bool knows_earliest() const noexcept { return !redistributing() && lists_[earliest_list()].is_short(); }
  /// The earliest due tick, or none if there is no node. Frees lists whose nodes were all erased. O(nodes in the
  /// earliest list / 64), more if nodes were erased.
  std::optional<tick_number> earliest() noexcept;

  /// Moves the base to a later block, that of `t`. The nodes of that block's list and of all earlier lists must then be
  /// redistributed.
  void move_base(tick_number t) noexcept;
  bool is_beyond_base(tick_number t) const noexcept { return block_of(t) > base_; }
  bool redistributing() const noexcept { return redistributed_length_ != 0; }
  /// The range of ticks being redistributed. Precondition: redistributing().
  tick_number redistributed_begin() const noexcept { return redistributed_begin_; }
  tick_number redistributed_last() const noexcept {
    return static_cast<tick_number>(static_cast<std::uint64_t>(redistributed_begin_) + redistributed_length_ -
                                    1);
  }

  /// Redistributes at most `limit` nodes. take(node&) may move the node to another chain of the pool, and returns
  /// whether it did; if not, the node goes to its list. take() may throw; strong guarantee.
  template <class Take>
  void redistribute(std::uint32_t limit, Take&& take) {
    for (; redistributing() && limit != 0; --limit) {
      node* const n = redistributed().front(pool_);
      if (n == nullptr) return end_redistribution();
      const bool is_taken = take(*n);
      const std::size_t list = is_taken ? 0 : make_room_in_list(n->due);
      redistributed().pop_front(pool_);
      if (!is_taken) add_to_list(list, *n, n->due);
    }
  }

  /// Calls take(node&), which moves the node to another chain of the pool, for the first `limit` nodes due at `due`, in
  /// order. take() may throw; strong guarantee. Preconditions: redistributing(); no node is due before `due`.
  template <class Take>
  void extract(tick_number due, std::uint32_t limit, Take&& take) {
    for (chunk_pool::chunk c = redistributed().first_chunk(); c != 0; c = pool_.next(c))
      if (pool_.earliest(c) <= due && !extract_from(c, due, limit, take)) return;
    if (due != std::numeric_limits<tick_number>::max()) nothing_before(due + 1);
  }

  /// The earliest list, if it covers a single block (adding nodes does not change that); null if it must be
  /// redistributed first. The list holds a node if nothing was erased since earliest() was called.
  chain* single_block() noexcept;

  /// Gives back the chunks of lists whose nodes were all erased. If no node is left, it also gives back the lists
  /// themselves, unless `keeps_lists`. O(lists), more if nodes were erased.
  void shrink_to_fit(bool keeps_lists) noexcept;

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const chain& list : lists_) list.for_each(pool_, visit);
  }

  /// See detail/checks.hpp. O(nodes).
  std::string fault() const;

 private:
  static constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  static constexpr int digit_bits = 3;
  static constexpr std::size_t digits = 8;
  static constexpr std::size_t level_count = 22;  // enough for 64 bits
  static constexpr std::size_t list_count = level_count * digits + 1;

  tick_number begin_of_block(block b) const noexcept {
    return static_cast<tick_number>((b << block_shift_) ^ sign);
  }
  /// The list of a tick. Precondition: its block is not before the base.
  std::size_t index_of(tick_number t) const noexcept {
    const block b = (static_cast<std::uint64_t>(t) ^ sign) >> block_shift_;
    // The index of the highest bit, 0 … 63. In this range, multiplying by 43 / 128 divides by three.
    const auto highest = static_cast<std::uint32_t>(63 ^ std::countl_zero((b ^ base_) | 1U));
    const std::uint32_t level = highest * 43 / 128;
    return level * digits + (b >> level * digit_bits) % digits;
  }
  bool in_redistributed(tick_number due) const noexcept {
    return static_cast<std::uint64_t>(due) - static_cast<std::uint64_t>(redistributed_begin_) <
           redistributed_length_;
  }
  const chain& redistributed() const noexcept { return lists_.back(); }
  chain& redistributed() noexcept { return lists_.back(); }

  /// Precondition: the list has room.
  void add_to_list(std::size_t index, node& n, tick_number due) noexcept {
    lists_[index].push_at_once(n);
    pool_.note_earliest(chunk_pool::chunk_of(n.position), due);
    mark(index);
  }
  /// Makes room in the list of a tick, and returns which list it is.
  std::size_t make_room_in_list(tick_number due);

  void mark(std::size_t index) noexcept {
    occupied_[index / digits] |= static_cast<std::uint8_t>(1U << index % digits);
    levels_ |= std::uint32_t{1} << index / digits;
  }
  void unmark(std::size_t index) noexcept {
    occupied_[index / digits] &= static_cast<std::uint8_t>(~(1U << index % digits));
    if (occupied_[index / digits] == 0) levels_ &= ~(std::uint32_t{1} << index / digits);
  }
  bool marked(std::size_t index) const noexcept {
    return (std::uint32_t{occupied_[index / digits]} >> index % digits & 1U) != 0;
  }

  /// Returns false if the limit was reached.
  template <class Take>
  bool extract_from(chunk_pool::chunk c, tick_number due, std::uint32_t& limit, Take& take) {
    tick_number rest = std::numeric_limits<tick_number>::max();
    node** const end = redistributed().end_of(c, pool_);
    for (node** slot = redistributed().begin_of(c, pool_); slot != end; ++slot) {
      if (*slot == nullptr) continue;
      if (const tick_number other = (*slot)->due; other != due) {
        if (other < rest) rest = other;
        continue;
      }
      if (limit-- == 0) return false;
      take(**slot);
      *slot = nullptr;
      pool_.add_hole(c);
    }
    pool_.set_earliest(c, rest);
    return true;
  }

  void lower_base(tick_number t) noexcept;
  void extend_redistributed(tick_number begin, std::uint64_t ticks) noexcept;
  /// Shortens the range being redistributed. Precondition: no node is due before `t`, and none will be added there.
  void nothing_before(tick_number t) noexcept;
  void end_redistribution() noexcept;
  std::size_t earliest_list() const noexcept;
  tick_number begin_of_list(std::size_t index) const noexcept;
  tick_number earliest_of(const chain& list) noexcept;
  tick_number find_earliest(const chain& list, chunk_pool::chunk c) noexcept;
  std::string fault_of(std::size_t index) const;

  chunk_pool& pool_;
  std::vector<chain> lists_;  // 22 levels of 8, and the nodes not yet redistributed; allocated when needed
  block base_ = 0;
  int block_shift_;
  std::uint32_t levels_ = 0;                          // bit i: a list of level i has chunks
  std::array<std::uint8_t, level_count> occupied_{};  // bit i: list i of that level has chunks
  tick_number redistributed_begin_ = 0;               // the range being redistributed
  std::uint64_t redistributed_length_ = 0;            // 0 if there is none
};

}  // namespace rondo::detail
