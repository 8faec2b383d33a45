// Nodes, the chunks of slots that hold them, and the chains that chunks form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

class wheel_core;

/// The part of a timer that belongs to the wheel: 20 bytes, so that a derived type with a payload of four bytes has 24.
/// Whoever owns the wheel sets `wheel` and `due`; the wheel itself only reads them. The constructor is written out
/// because a type without one does not share its tail padding with derived types.
struct node {
  node() noexcept {}  // NOLINT(modernize-use-equals-default)

  wheel_core* wheel = nullptr;  // null if not scheduled
  tick_number due = 0;
  std::uint32_t position = 0;  // the number of its slot in the wheel's chunk_pool
};

/// The memory of all chains of a wheel. A chain is a list of chunks, a chunk is an array of 64 slots, and a slot holds
/// a node or null. Slots are numbered across the pool, and each node knows the number of its slot, so a node can be
/// erased without its chain. An erased node leaves a hole. As soon as two thirds of a chunk are holes, the chunk is
/// merged with its neighbours and chunks become free. So memory depends on the number of nodes, not on the number of
/// calls.
///
/// Chunks come from segments of 16 KiB that never move. One empty segment is kept until shrink_to_fit(); further empty
/// segments are deallocated.
class RONDO_EXPORT chunk_pool {
 public:
  using chunk = std::uint32_t;  // its number, or 0 for none
  static constexpr std::uint32_t chunk_slots = 64;
  // At least this many nodes are prefetched before they are needed.
  static constexpr std::uint32_t prefetch_distance = 8;
  // The first slot is never used, so that no chain begins where another chunk ends.
  static constexpr std::uint32_t chunk_nodes = chunk_slots - 1;

  chunk_pool() noexcept = default;
  ~chunk_pool();
  chunk_pool(const chunk_pool&) = delete;
  chunk_pool& operator=(const chunk_pool&) = delete;

  /// Returns a chunk of empty slots that is linked to no other. Strong guarantee.
  chunk take();
  /// Clears the first `used` slots of a chunk and frees it. Preconditions: no chunk is linked to it, and its other
  /// slots are empty.
  void give_back(chunk, std::size_t used = chunk_nodes) noexcept;

  /// Deallocates the empty segment, if there is one, and shrinks the tables of segments. Chunks do not move. If there
  /// is no memory for smaller tables, the old ones stay. O(segments).
  void shrink_to_fit() noexcept;

  static chunk chunk_of(std::uint32_t slot_number) noexcept { return slot_number / chunk_slots; }
  static std::uint32_t first_slot(chunk c) noexcept { return c * chunk_slots + 1; }

  /// The chunk_nodes slots of a chunk that hold nodes.
  node** slots(chunk c) const noexcept {
    return slots_[c / segment_chunks] + (c % segment_chunks * chunk_slots + 1);
  }

  /// The next chunk of its chain. Any erase() may merge the inner chunks of a chain, that is, those between the first
  /// and the last. It never merges the first or the last.
  chunk next(chunk c) const noexcept { return chunks_[c].next; }
  void prefetch_next(chunk c) const noexcept { __builtin_prefetch(&chunks_[c]); }
  void link(chunk c, chunk next) noexcept {
    chunks_[c].next = next;
    chunks_[next].previous = c;
  }
  /// Makes `c` the first chunk of its chain.
  void unlink_previous(chunk c) noexcept { chunks_[c].previous = 0; }

  /// Empties a slot, which becomes a hole. Precondition: the slot holds a node.
  void erase(std::uint32_t slot_number) noexcept {
    slots_[slot_number / segment_slots][slot_number % segment_slots] = nullptr;
    const chunk c = slot_number / chunk_slots;
    // Not for each erased node, because the chunk may fit into neither of its neighbours.
    if (++holes_[c] >= merge_threshold && (chunk_nodes - holes_[c]) % 4 == 0) [[unlikely]]
      merge_with_neighbours(c);
  }

  /// Counts a slot as a hole because its node was moved elsewhere. Merges nothing.
  void add_hole(chunk c) noexcept { ++holes_[c]; }

  /// Must be called when a first or last chunk becomes an inner one. Merges it with its neighbours if it has many
  /// holes.
  void becomes_inner(chunk c) noexcept {
    if (holes_[c] >= merge_threshold) merge_with_neighbours(c);
  }
  /// Whether more than half of a chunk is holes.
  bool worth_compacting(chunk c) const noexcept { return holes_[c] > chunk_nodes / 2; }
  /// Removes the holes of a last chunk and returns the number of its nodes. Precondition: none of its slots is used up.
  std::uint32_t compact(chunk c) noexcept;

  /// Counts all empty slots before `end_number` as holes, including those that are used up.
  void count_holes(chunk c, std::uint32_t end_number) noexcept;

  /// A tick that no node in the chunk precedes, provided that note_earliest() was called for each node.
  tick_number earliest(chunk c) const noexcept { return chunks_[c].earliest; }
  void set_earliest(chunk c, tick_number t) noexcept { chunks_[c].earliest = t; }
  void note_earliest(chunk c, tick_number due) noexcept {
    if (due < chunks_[c].earliest) chunks_[c].earliest = due;
  }

  /// See detail/checks.hpp. Checks the count of holes of an inner chunk. O(1).
  std::string fault_of_inner(chunk c) const;
  /// O(segments).
  std::string fault() const;
  /// The number of chunks in use. O(segments).
  std::size_t chunks() const noexcept;

 private:
  static constexpr std::uint32_t segment_chunks = 32;
  static constexpr std::uint32_t segment_slots = segment_chunks * chunk_slots;
  static constexpr std::uint32_t merge_threshold = chunk_nodes * 2 / 3;

  struct segment {
    std::uint32_t free = 0;      // bit i: its chunk i is free
    std::uint32_t previous = 0;  // in the list of segments with free chunks
    std::uint32_t next = 0;      // in that list, or in the list of numbers without memory
  };
  struct chunk_info {
    chunk previous = 0;
    chunk next = 0;
    tick_number earliest = 0;
  };

  bool is_inner(chunk c) const noexcept { return chunks_[c].previous != 0 && chunks_[c].next != 0; }
  void merge_with_neighbours(chunk c) noexcept;
  void absorb(chunk c, chunk last) noexcept;
  std::uint32_t move_nodes(chunk from, chunk to, std::uint32_t nodes_before) noexcept;
  void add_segment();
  void set_numbers(std::uint32_t count);
  void release(std::uint32_t number) noexcept;
  void open(std::uint32_t number) noexcept;
  void close(std::uint32_t number) noexcept;

  // What erase() reads comes first, close to the members of the wheel that precede its pool.
  std::vector<node**> slots_;  // of segments, by number; numbers begin with 1, so no chunk has the number 0
  std::vector<std::uint8_t> holes_;  // of chunks, by number; an array of its own, which stays in the cache
  std::vector<segment> segments_;    // by number
  std::vector<chunk_info> chunks_;   // by number
  std::uint32_t open_ = 0;           // the first of the segments with free chunks
  std::uint32_t unused_ = 0;         // the first of the numbers without memory
  std::uint32_t spare_ = 0;          // a segment whose chunks are all free, or 0 for none
};

/// A queue of nodes in chunks of a pool, in the order in which they were added. Nodes are added at the end and taken
/// from the front; any node can be erased through the pool, without the chain. Taking a node reads contiguous slots; an
/// intrusive list would miss the cache for the neighbours of each node that it unlinks. All calls on one chain must
/// pass the same pool.
class RONDO_EXPORT chain {
 public:
  /// Whether it has chunks. They may contain only holes: see front().
  bool has_chunks() const noexcept { return end_number_ != 0; }

  /// Adds a node at the end. If that would need memory, does nothing and returns false.
  bool push_at_once(node& n) noexcept {
    if (end_number_ % chunk_pool::chunk_slots == 0) [[unlikely]]
      return false;
    n.position = end_number_++;
    *end_++ = &n;
    return true;
  }
  /// Ensures that push_at_once() succeeds. Strong guarantee.
  void make_room(chunk_pool& pool) {
    if (end_number_ % chunk_pool::chunk_slots == 0) make_room_slowly(pool);
  }

  /// Prefetches the first few nodes. (Taking nodes prefetches the next ones.) Precondition: front() returned a node.
  void prefetch_first() const noexcept;
  /// The first node, or null if there is none. Skips holes, each of them only once.
  node* front(chunk_pool& pool) noexcept {
    for (; begin_ != end_; pop_front(pool))
      if (*begin_ != nullptr) return *begin_;
    return nullptr;
  }
  /// Removes the first node, or the hole in its place. Precondition: front() was just called and returned a node.
  void pop_front(chunk_pool& pool) noexcept {
    ++begin_;
    if (reinterpret_cast<std::uintptr_t>(begin_) / sizeof(void*) % chunk_pool::prefetch_distance == 0)
        [[unlikely]]
      next_group(pool);
  }

  /// Gives its chunks back, if it has any. Precondition: front() was just called and returned null.
  void release(chunk_pool& pool) noexcept;

  /// Moves the nodes of `other` to the end of this chain; `other` has no chunks afterwards. O(1).
  void append(chain& other, chunk_pool& pool) noexcept;

  /// The first chunk, or 0 if there is none.
  chunk_pool::chunk first_chunk() const noexcept { return first_; }
  /// The range of slots in use in one of its chunks, including holes.
  node** begin_of(chunk_pool::chunk c, const chunk_pool& pool) const noexcept {
    return c == first_ ? begin_ : pool.slots(c);
  }
  node** end_of(chunk_pool::chunk c, const chunk_pool& pool) const noexcept {
    return c == last_chunk() ? end_ : pool.slots(c) + chunk_pool::chunk_nodes;
  }
  /// Whether it has at most one chunk.
  bool is_short() const noexcept { return first_ == last_chunk() || !has_chunks(); }

  /// Calls visit(node&) for each node, in order.
  template <class Visit>
  void for_each(const chunk_pool& pool, Visit&& visit) const {
    for (chunk_pool::chunk c = first_; c != 0; c = pool.next(c))
      for (node** slot = begin_of(c, pool); slot != end_of(c, pool); ++slot)
        if (*slot != nullptr) visit(**slot);
  }

  /// See detail/checks.hpp. O(slots).
  std::string fault(const chunk_pool& pool) const;

 private:
  // Called at the beginning of each group of prefetch_distance slots.
  void next_group(chunk_pool& pool) noexcept;
  bool enter_next_chunk(chunk_pool& pool) noexcept;
  void make_room_slowly(chunk_pool& pool);
  bool compact_last(chunk_pool& pool) noexcept;
  chunk_pool::chunk last_chunk() const noexcept { return chunk_pool::chunk_of(end_number_ - 1); }

  node** begin_ = nullptr;  // the slots before it are used up: their nodes were taken
  node** end_ = nullptr;
  std::uint32_t end_number_ = 0;  // a multiple of chunk_slots if there is no room
  chunk_pool::chunk first_ = 0;
};

}  // namespace rondo::detail
