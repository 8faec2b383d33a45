// Chunks of slots, which hold the nodes of a wheel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <rondo/detail/node.hpp>
#include <rondo/detail/owned_array.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// The memory of all chains of a stripe. A chain is a list of chunks, a chunk is an array of 64 slots, and a slot holds
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

  /// The index of a slot in its chunk: 1 … chunk_nodes, or 0 for the slot after them.
  static std::size_t index_in_chunk(node* const* slot) noexcept {
    return reinterpret_cast<std::uintptr_t>(slot) / sizeof(void*) % chunk_slots;
  }

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
  node** slots(chunk c) const noexcept { return &slot(first_slot(c)); }

  /// The next chunk of its chain. Any erase() may merge the inner chunks of a chain, that is, those between the first
  /// and the last. It never merges the first or the last.
  chunk next(chunk c) const noexcept { return chunks_[c].next; }
  void prefetch_next(chunk c) const noexcept { __builtin_prefetch(&chunks_[c]); }
  void prefetch_slots(chunk c) const noexcept {
    for (std::uint32_t i = 0; i < chunk_nodes; i += slots_per_line) __builtin_prefetch(slots(c) + i);
  }
  void link(chunk c, chunk next) noexcept {
    chunks_[c].next = next;
    chunks_[next].previous = c;
  }
  /// Makes `c` the first chunk of its chain.
  void unlink_previous(chunk c) noexcept { chunks_[c].previous = 0; }

  /// Empties a slot, which becomes a hole. Precondition: the slot holds a node.
  void erase(std::uint32_t slot_number) noexcept {
    const chunk c = chunk_of(slot_number);
    slot(slot_number) = nullptr;
    if (++holes_[c] >= merge_threshold) [[unlikely]]
      merge_now_and_then(c);
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
  static constexpr std::uint32_t slots_per_line = 64 / sizeof(void*);  // of a cache line
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

  node*& slot(std::uint32_t number) const noexcept {
    return slots_[number / segment_slots][number % segment_slots];
  }
  std::uint32_t nodes_in_inner(chunk c) const noexcept { return chunk_nodes - holes_[c]; }
  bool is_inner(chunk c) const noexcept { return chunks_[c].previous != 0 && chunks_[c].next != 0; }
  // Not for each erased node, because the chunk may fit into neither of its neighbours.
  void merge_now_and_then(chunk c) noexcept {
    if (nodes_in_inner(c) % 4 == 0) merge_with_neighbours(c);
  }
  void merge_with_neighbours(chunk c) noexcept;
  void absorb(chunk c, chunk last) noexcept;
  std::uint32_t move_nodes(chunk from, chunk to, std::uint32_t nodes_before) noexcept;
  void clear(chunk c, std::size_t from, std::size_t to = chunk_nodes) noexcept;
  void add_segment();
  void set_numbers(std::uint32_t count);
  void release(std::uint32_t number) noexcept;
  void open(std::uint32_t number) noexcept;
  void close(std::uint32_t number) noexcept;

  // What erase() reads comes first, close to the members of a stripe that precede its pool.
  owned_array<node**> slots_;  // of segments, by number; numbers begin with 1, so no chunk has the number 0
  owned_array<std::uint8_t> holes_;  // of chunks, by number; an array of its own, which stays in the cache
  owned_array<segment> segments_;    // by number
  owned_array<chunk_info> chunks_;   // by number
  std::uint32_t numbers_ = 0;        // the size of the arrays of segments, with and without memory
  std::uint32_t open_ = 0;           // the first of the segments with free chunks
  std::uint32_t unused_ = 0;         // the first of the numbers without memory
  std::uint32_t spare_ = 0;          // a segment whose chunks are all free, or 0 for none
};

}  // namespace rondo::detail
