// Nodes in the order in which they were added.
#pragma once

#include <cstdint>
#include <string>

#include <rondo/detail/chunk_pool.hpp>
#include <rondo/detail/node.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A queue of nodes in chunks of a pool: added at the end, taken from the front, erased anywhere through the pool
/// and without the chain. Taking walks through contiguous slots; an intrusive list would miss the cache once for
/// the neighbours of every node it unlinks. All calls are given the same pool.
class RONDO_EXPORT chain {
 public:
  /// Whether it has chunks. They may hold no node any more: see front().
  bool has_chunks() const noexcept { return end_number_ != 0; }
  bool has_room() const noexcept { return end_number_ % chunk_pool::chunk_slots != 0; }

  /// Precondition: has_room().
  void push_back(node& n) noexcept {
    n.position = end_number_++;
    *end_++ = &n;
  }
  /// Afterwards has_room(). Strong guarantee.
  void make_room(chunk_pool& pool) {
    if (!has_room()) make_room_slowly(pool);
  }

  /// Fetches the first few nodes into the cache. (The others follow as nodes are taken.)
  void prefetch_first(const chunk_pool& pool) const noexcept;
  /// The first node; null: there is none. Passes over holes, once each.
  node* front(chunk_pool& pool) noexcept {
    for (; begin_ != end_; step(pool))
      if (*begin_ != nullptr) return *begin_;
    return nullptr;
  }
  /// Takes the first node out. Precondition: front() was just asked, and has said that there is one.
  void pop_front(chunk_pool& pool) noexcept { step(pool); }

  /// Gives its chunks back, if it has any. Precondition: front() was just asked, and has said that there is no node.
  void release(chunk_pool& pool) noexcept;

  /// Puts the nodes of `other` behind its own; `other` has no chunks afterwards. O(1).
  void append(chain& other, chunk_pool& pool) noexcept;

  /// 0: it has none.
  chunk_pool::chunk first_chunk() const noexcept { return first_; }

  /// The slots of one of its chunks that are in use, holes included.
  node** begin_of(chunk_pool::chunk c, const chunk_pool& pool) const noexcept {
    return c == first_ ? begin_ : pool.slots(c);
  }
  node** end_of(chunk_pool::chunk c, const chunk_pool& pool) const noexcept {
    return c == last_chunk() ? end_ : pool.slots(c) + chunk_pool::chunk_nodes;
  }
  /// Whether there is but one chunk, or none.
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
    if (chunk_pool::place_of(begin_) % chunk_pool::prefetch_distance == 0) [[unlikely]]
      look_ahead(pool);
  }
  void look_ahead(chunk_pool& pool) noexcept;
  void look_beyond_chunk(chunk_pool& pool) noexcept;
  bool step_over(chunk_pool& pool) noexcept;
  void make_room_slowly(chunk_pool& pool);
  bool squeeze_last(chunk_pool& pool) noexcept;

  chunk_pool::chunk last_chunk() const noexcept { return chunk_pool::chunk_of(end_number_ - 1); }

  node** begin_ = nullptr;  // slots before it are used up
  node** end_ = nullptr;
  std::uint32_t end_number_ = 0;
  chunk_pool::chunk first_ = 0;
};

}  // namespace rondo::detail
