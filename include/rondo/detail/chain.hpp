// Nodes in the order in which they were added.
#pragma once

#include <cstdint>
#include <string>

#include <rondo/detail/chunk_pool.hpp>
#include <rondo/detail/node.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A queue of nodes in chunks of a pool. Nodes are added at the end and taken from the front; any node can be erased
/// through the pool, without the chain. Taking a node reads contiguous slots; an intrusive list would miss the cache
/// for the neighbours of each node that it unlinks. All calls on one chain must pass the same pool.
class RONDO_EXPORT chain {
 public:
  /// Whether it has chunks. They may contain only holes: see front().
  bool has_chunks() const noexcept { return end_number_ != 0; }
  bool has_room() const noexcept { return end_number_ % chunk_pool::chunk_slots != 0; }

  /// Precondition: has_room().
  void push_back(node& n) noexcept {
    n.position = end_number_++;
    *end_++ = &n;
  }
  /// Ensures has_room(). Strong guarantee.
  void make_room(chunk_pool& pool) {
    if (!has_room()) make_room_slowly(pool);
  }

  /// Prefetches the first few nodes. (Taking nodes prefetches the next ones.)
  void prefetch_first(const chunk_pool& pool) const noexcept;
  /// The first node, or null if there is none. Skips holes, each of them only once.
  node* front(chunk_pool& pool) noexcept {
    for (; begin_ != end_; step(pool))
      if (*begin_ != nullptr) return *begin_;
    return nullptr;
  }
  /// Removes the first node. Precondition: front() was just called and returned a node.
  void pop_front(chunk_pool& pool) noexcept { step(pool); }

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
  void step(chunk_pool& pool) noexcept {
    ++begin_;
    if (chunk_pool::index_in_chunk(begin_) % chunk_pool::prefetch_distance == 0) [[unlikely]]
      next_group(pool);
  }
  // Called at the beginning of each group of prefetch_distance slots.
  void next_group(chunk_pool& pool) noexcept;
  void near_chunk_end(chunk_pool& pool) noexcept;
  bool enter_next_chunk(chunk_pool& pool) noexcept;
  void make_room_slowly(chunk_pool& pool);
  bool compact_last(chunk_pool& pool) noexcept;

  chunk_pool::chunk last_chunk() const noexcept { return chunk_pool::chunk_of(end_number_ - 1); }

  node** begin_ = nullptr;  // the slots before it are used up: their nodes were taken
  node** end_ = nullptr;
  std::uint32_t end_number_ = 0;
  chunk_pool::chunk first_ = 0;
};

}  // namespace rondo::detail
