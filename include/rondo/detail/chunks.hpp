// Nodes, the chunks of slots that hold them, and the chains that chunks form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

class wheel_core;

/// The part of a timer that belongs to the wheel: 28 bytes, so that a derived type with a payload of four bytes has 32.
/// Whoever owns the wheel sets `wheel` and `due`, and the wheel resets `wheel` when it drops a cancelled node. The
/// constructor is written out because a type without one does not share its tail padding with derived types.
struct node {
  node() noexcept {}  // NOLINT(modernize-use-equals-default)

  // `rank` is the node's place in the order of scheduling, times four, plus one of these bits, or none if the node was
  // cancelled, but is still in a far list. While the node is in no wheel, it is the owner's.
  static constexpr std::uint64_t far_bit = 1;   // in a far list of the future, where it may be moved in place
  static constexpr std::uint64_t near_bit = 2;  // in a bucket, or overdue
  static constexpr std::uint64_t state_bits = 3;
  static constexpr std::uint64_t rank_step = 4;
  // The rank of all nodes that are added to a bucket directly, which is when all far nodes of its tick are there.
  static constexpr std::uint64_t after_far = ~state_bits | near_bit;

  bool is_near() const noexcept { return (rank & near_bit) != 0; }
  bool is_cancelled() const noexcept { return (rank & state_bits) == 0; }
  bool is_scheduled() const noexcept { return wheel != nullptr && !is_cancelled(); }

  tick_number due = 0;
  std::uint64_t rank = near_bit;
  wheel_core* wheel = nullptr;  // null if it is in none
  std::uint32_t position = 0;   // the number of its slot in the wheel's chunk_pool
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
  // The first slot is never used, so that no chain begins where another chunk ends.
  static constexpr std::uint32_t chunk_nodes = chunk_slots - 1;
  // A chunk with so many holes is merged with its neighbours.
  static constexpr std::uint32_t merge_threshold = chunk_nodes * 2 / 3;
  // At least this many nodes are prefetched before they are needed.
  static constexpr std::uint32_t prefetch_distance = 8;

  struct chunk_info {
    chunk previous = 0;  // in its chain
    chunk next = 0;
    tick_number earliest = 0;  // no node precedes it, provided that note_earliest() was called for each node
  };

  chunk_pool() noexcept = default;
  ~chunk_pool();
  chunk_pool(const chunk_pool&) = delete;
  chunk_pool& operator=(const chunk_pool&) = delete;

  /// Returns a chunk of empty slots that is linked to no other. Strong guarantee.
  chunk take();
  /// Clears the first `used` slots of a chunk and frees it. Preconditions: no chunk is linked to it, and its other
  /// slots are empty.
  void give_back(chunk, std::size_t used = chunk_slots) noexcept;

  /// Deallocates the empty segment, if there is one, and shrinks the tables of segments. Chunks do not move. If there
  /// is no memory for smaller tables, the old ones stay. O(segments).
  void shrink_to_fit() noexcept;

  /// The chunk_nodes slots of a chunk that hold nodes. The first of them has the number `c * chunk_slots + 1`.
  node** slots(chunk c) const noexcept {
    return slots_[c / segment_chunks] + (c % segment_chunks * chunk_slots + 1);
  }

  /// The number of a slot of a chunk.
  std::uint32_t number_of(chunk c, node* const& slot) const noexcept {
    return c * chunk_slots + 1 + static_cast<std::uint32_t>(&slot - slots(c));
  }

  /// Makes `next` the chunk after `c`. Any erase() may merge the inner chunks of a chain, that is, those between the
  /// first and the last. It never merges the first or the last.
  void link(chunk c, chunk next) noexcept {
    chunks[c].next = next;
    chunks[next].previous = c;
  }

  /// Empties a slot, which becomes a hole. Precondition: the slot holds a node.
  void erase(std::uint32_t slot_number) noexcept {
    slots_[slot_number / segment_slots][slot_number % segment_slots] = nullptr;
    const chunk c = slot_number / chunk_slots;
    // Not for each erased node, because the chunk may fit into neither of its neighbours.
    if (++holes[c] >= merge_threshold && (chunk_nodes - holes[c]) % 4 == 0) [[unlikely]]
      merge_with_neighbours(c);
  }
  /// Erases the node in a slot of `c` if it is cancelled, but merges nothing. Precondition: the slot holds a node.
  bool erase_if_cancelled(node*& slot, chunk c) noexcept {
    if (!drop_if_cancelled(*slot)) return false;
    slot = nullptr;
    ++holes[c];
    return true;
  }
  /// If the node is cancelled, it leaves its slot, which the caller must empty, and the node must not be used any more.
  bool drop_if_cancelled(node& n) noexcept {
    if (!n.is_cancelled()) return false;
    n.wheel = nullptr;
    --cancelled;
    return true;
  }
  /// Erases the cancelled nodes of the next few chunks in use, in the order of numbers, except for first chunks of chains.
  /// O(chunks and segments).
  void sweep(std::size_t most_chunks) noexcept;

  /// Merges an inner chunk with as many neighbours as fit into one chunk together with it; frees it if it has no
  /// nodes. Does nothing to a chunk that is not an inner one. Returns the chunk that is there now, or the previous one.
  chunk merge_with_neighbours(chunk c) noexcept;
  /// Removes the holes of a last chunk and returns the number of its nodes. Precondition: none of its slots is used up.
  std::uint32_t compact(chunk c) noexcept;

  void note_earliest(chunk c, tick_number due) noexcept {
    if (due < chunks[c].earliest) chunks[c].earliest = due;
  }

  /// See detail/checks.hpp. O(segments).
  std::string fault() const;
  /// The number of chunks in use. O(segments).
  std::size_t chunks_in_use() const noexcept;

 private:
  static constexpr std::uint32_t segment_chunks = 32;
  static constexpr std::uint32_t segment_slots = segment_chunks * chunk_slots;

  struct segment {
    std::uint32_t free = 0;      // bit i: its chunk i is free
    std::uint32_t previous = 0;  // in the list of segments with free chunks
    std::uint32_t next = 0;      // in that list, or in the list of numbers without memory
  };

  bool is_inner(chunk c) const noexcept { return chunks[c].previous != 0 && chunks[c].next != 0; }
  bool erase_cancelled(chunk c) noexcept;
  void absorb(chunk c, chunk last) noexcept;
  std::uint32_t move_nodes(chunk from, chunk to, std::uint32_t nodes_before) noexcept;
  void add_segment();
  void set_numbers(std::uint32_t count);
  void release(std::uint32_t number) noexcept;
  void open(std::uint32_t number) noexcept;
  void close(std::uint32_t number) noexcept;

  // What erase() reads comes first, close to the members of the wheel that precede its pool.
  std::vector<node**> slots_;  // of segments, by number; numbers begin with 1, so no chunk has the number 0

 public:
  std::vector<std::uint8_t> holes;  // of chunks, by number; an array of its own, which stays in the cache
  std::vector<chunk_info> chunks;   // by number
  std::size_t cancelled = 0;        // the number of nodes that were cancelled, but are still in their slots

 private:
  std::vector<segment> segments_;  // by number
  std::uint32_t open_ = 0;         // the first of the segments with free chunks
  std::uint32_t unused_ = 0;       // the first of the numbers without memory
  std::uint32_t spare_ = 0;        // a segment whose chunks are all free, or 0 for none
  chunk last_swept_ = 0;
};

/// A queue of nodes in chunks of a pool, in the order in which they were added. Nodes are added at the end and taken
/// from the front; any node can be erased through the pool, without the chain. Taking a node reads contiguous slots; an
/// intrusive list would miss the cache for the neighbours of each node that it unlinks. All calls on one chain must
/// pass the same pool.
class RONDO_EXPORT chain {
 public:
  // 0 if it has no chunks. They may contain only holes: see front().
  chunk_pool::chunk first = 0;

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
    if (end_number_ % chunk_pool::chunk_slots == 0) extend(pool);
  }

  /// Prefetches the first few nodes. (Taking nodes prefetches the next ones.) Precondition: front() returned a node.
  void prefetch_first() const noexcept;
  /// The first node, or null if there is none. Skips holes, each of them only once.
  node* front(chunk_pool& pool) noexcept {
    for (; begin_ != end_; pop_front(pool))
      if (*begin_ != nullptr) return *begin_;
    return nullptr;
  }
  /// As front(), in a chain that may have cancelled nodes: drops those that it finds.
  node* scheduled_front(chunk_pool& pool) noexcept {
    for (; begin_ != end_; pop_front(pool)) {
      if (*begin_ == nullptr) continue;
      if (!pool.drop_if_cancelled(**begin_)) return *begin_;
    }
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

  /// The slots in use in one of its chunks, including holes.
  std::span<node*> slots(chunk_pool::chunk c, const chunk_pool& pool) const noexcept {
    node** const all = pool.slots(c);
    const bool is_last = pool.chunks[c].next == 0;
    return {c == first ? begin_ : all, is_last ? end_ : all + chunk_pool::chunk_nodes};
  }

  /// Calls visit(node&) for each node, in order.
  template <class Visit>
  void for_each(const chunk_pool& pool, Visit&& visit) const {
    for (chunk_pool::chunk c = first; c != 0; c = pool.chunks[c].next)
      for (node* const n : slots(c, pool))
        if (n != nullptr) visit(*n);
  }

  /// See detail/checks.hpp. O(slots).
  std::string fault(const chunk_pool& pool) const;

 private:
  void extend(chunk_pool& pool);
  void next_group(chunk_pool& pool) noexcept;
  // Not inlined: otherwise next_group() would save registers for it, which costs three instructions per node.
  [[gnu::noinline]] void enter_next_chunk(chunk_pool& pool) noexcept;
  chunk_pool::chunk last() const noexcept { return (end_number_ - 1) / chunk_pool::chunk_slots; }

  std::uint32_t end_number_ = 0;  // of the slot at end_; a multiple of chunk_slots if there is no room
  node** begin_ = nullptr;        // the slots before it are used up: their nodes were taken
  node** end_ = nullptr;
};

}  // namespace rondo::detail
