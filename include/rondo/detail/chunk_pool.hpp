// Where the nodes of a wheel stand: chunks of slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <rondo/detail/node.hpp>
#include <rondo/detail/owned_array.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// The memory of all chains of a wheel, or of one of its stripes. A chain is a list of chunks, a chunk an array of
/// 64 slots, and a slot holds a node or nothing (null). Slots are numbered over the whole pool, and each node
/// knows the number of its own: to erase a node one need not know its chain. What is erased leaves a hole; as
/// soon as two thirds of a chunk are holes, its nodes and those of its neighbours move together and chunks
/// come free, so that the memory follows the number of nodes and not that of the calls.
///
/// Chunks come from segments of 16 KiB that never move. One empty segment is kept, further ones are given back.
class RONDO_EXPORT chunk_pool {
 public:
  using chunk = std::uint32_t;  // its number; 0: none
  static constexpr std::uint32_t chunk_slots = 64;
  // So many nodes at least are fetched into the cache before they are needed.
  static constexpr std::uint32_t prefetch_distance = 8;
  // The first slot stays empty: so no chain begins where another chunk ends.
  static constexpr std::uint32_t chunk_nodes = chunk_slots - 1;

  /// Where in its chunk a slot is: 1 … chunk_nodes; 0 for the one behind them.
  static std::size_t place_of(node* const* slot) noexcept {
    return reinterpret_cast<std::uintptr_t>(slot) / sizeof(void*) % chunk_slots;
  }

  chunk_pool() noexcept = default;
  ~chunk_pool();
  chunk_pool(const chunk_pool&) = delete;
  chunk_pool& operator=(const chunk_pool&) = delete;

  /// A chunk of empty slots, linked to none. Strong guarantee.
  chunk take();
  /// Precondition: no chunk is linked to it, and only its first `used` slots are not empty; what is in them is forgotten.
  void give_back(chunk, std::size_t used = chunk_nodes) noexcept;

  static chunk chunk_of(std::uint32_t slot_number) noexcept { return slot_number / chunk_slots; }
  static std::uint32_t first_slot(chunk c) noexcept { return c * chunk_slots + 1; }

  /// The slots of a chunk for nodes: chunk_nodes of them.
  node** slots(chunk c) const noexcept { return &slot(first_slot(c)); }

  /// The neighbours in its chain. Between the first and the last chunk of a chain (the inner ones) the pool
  /// itself may merge chunks, at each erase(); the first and the last it leaves alone.
  chunk next(chunk c) const noexcept { return chunks_[c].next; }
  void prefetch_next(chunk c) const noexcept { __builtin_prefetch(&chunks_[c]); }
  void prefetch_slots(chunk c) const noexcept {
    for (std::uint32_t i = 0; i < chunk_nodes; i += slots_in_line) __builtin_prefetch(slots(c) + i);
  }
  void link(chunk c, chunk next) noexcept {
    chunks_[c].next = next;
    chunks_[next].previous = c;
  }
  /// `c` becomes the first of its chain.
  void unlink_previous(chunk c) noexcept { chunks_[c].previous = 0; }

  /// Precondition: a node is in this slot.
  void erase(std::uint32_t slot_number) noexcept {
    const chunk c = chunk_of(slot_number);
    slot(slot_number) = nullptr;
    if (++holes_[c] >= compacted_holes) [[unlikely]]
      compact_now_and_then(c);
  }

  /// Counts a slot whose node has been moved away, and merges nothing.
  void add_hole(chunk c) noexcept { ++holes_[c]; }

  /// To be called when a first or last chunk becomes an inner one: merges it with its neighbours if that is worth
  /// while.
  void becomes_inner(chunk c) noexcept {
    if (holes_[c] >= compacted_holes) compact(c);
  }
  /// Whether half of a chunk is holes.
  bool worth_squeezing(chunk c) const noexcept { return holes_[c] > chunk_nodes / 2; }
  /// Moves the nodes of a last chunk together; returns how many they are. Precondition: none is used up.
  std::uint32_t squeeze(chunk c) noexcept;

  /// Counts all empty slots before `end_number` as holes, those that are used up, too.
  void count_holes(chunk c, std::uint32_t end_number) noexcept;

  /// A tick that no node of the chunk precedes; kept only where note_earliest() is called for each node.
  tick_number earliest(chunk c) const noexcept { return chunks_[c].earliest; }
  void set_earliest(chunk c, tick_number t) noexcept { chunks_[c].earliest = t; }
  void note_earliest(chunk c, tick_number due) noexcept {
    if (due < chunks_[c].earliest) chunks_[c].earliest = due;
  }

  /// See detail/checks.hpp. Of an inner chunk: whether its holes are counted right. O(1).
  std::string fault_of_inner(chunk c) const;
  /// O(segments).
  std::string fault() const;
  /// In use. O(segments).
  std::size_t chunks() const noexcept;

 private:
  static constexpr std::uint32_t slots_in_line = 64 / sizeof(void*);  // of the cache
  static constexpr std::uint32_t segment_chunks = 32;
  static constexpr std::uint32_t segment_slots = segment_chunks * chunk_slots;
  static constexpr std::uint32_t compacted_holes = chunk_nodes * 2 / 3;

  struct segment {
    std::uint32_t free = 0;      // bit i: its chunk i is free
    std::uint32_t previous = 0;  // in the list of those with free chunks
    std::uint32_t next = 0;      // there, or in the list of numbers without memory
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
  // A chunk that fits into none of its neighbours is not looked at again for each node that it loses.
  void compact_now_and_then(chunk c) noexcept {
    if (nodes_in_inner(c) % 4 == 0) compact(c);
  }
  void compact(chunk c) noexcept;
  void absorb(chunk c, chunk last) noexcept;
  std::uint32_t move_nodes(chunk from, chunk to, std::uint32_t place) noexcept;
  void clear(chunk c, std::size_t from, std::size_t to = chunk_nodes) noexcept;
  void add_segment();
  void add_numbers();
  void release(std::uint32_t number) noexcept;
  void open(std::uint32_t number) noexcept;
  void close(std::uint32_t number) noexcept;

  // What erase() needs comes first, beside what a stripe has before its pool.
  owned_array<node**> slots_;        // of segments, by their numbers, from 1 on: so no chunk has the number 0
  owned_array<std::uint8_t> holes_;  // of chunks, by number; apart, so that it stays in the cache
  owned_array<segment> segments_;    // by number
  owned_array<chunk_info> chunks_;   // by number
  std::uint32_t numbers_ = 0;        // of segments there is room for, with and without memory
  std::uint32_t open_ = 0;           // the first of the segments with free chunks
  std::uint32_t unused_ = 0;         // the first of the numbers without memory
  std::uint32_t spare_ = 0;          // a segment all of whose chunks are free; 0: none
};

}  // namespace rondo::detail
