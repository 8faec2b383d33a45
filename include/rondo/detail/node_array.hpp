// Nodes in the order in which they were added, contiguous in memory.
#pragma once

#include <cstdint>
#include <string>

#include <rondo/detail/node.hpp>
#include <rondo/detail/owned_array.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// An array of nodes in which each node knows its position: an erased one leaves a hole (null), and holes are
/// squeezed out when the array is full and at least half of it is holes. Firing walks it from the front, in
/// order and through consecutive memory; an intrusive list would miss the cache once for the neighbours of
/// every node it unlinks.
class RONDO_EXPORT node_array {
 public:
  node_array() noexcept = default;
  node_array(node_array&& other) noexcept { swap(other); }
  node_array& operator=(node_array&&) = delete;

  bool empty() const noexcept { return begin_ == end_; }
  std::uint32_t size() const noexcept { return end_ - begin_ - holes_; }
  bool has_room() const noexcept { return end_ != capacity_; }

  /// Precondition: has_room().
  void push_back(node& n) noexcept {
    n.position = end_;
    slots_[end_++] = &n;
  }

  /// Precondition: `n` is in this array.
  void erase(const node& n) noexcept {
    slots_[n.position] = nullptr;
    ++holes_;
    restart_if_spent();
  }

  /// Precondition of both: !empty().
  node& front() noexcept {
    for (; slots_[begin_] == nullptr; ++begin_) --holes_;
    return *slots_[begin_];
  }
  node& pop_front() noexcept {
    node& first = front();
    ++begin_;
    // Nodes lie anywhere in memory: fetching a few ahead hides most of their cache misses.
    if (begin_ + prefetch_distance < end_) __builtin_prefetch(slots_[begin_ + prefetch_distance], 1);
    restart_if_spent();
    return first;
  }

  bool holds(const node& n) const noexcept {
    return n.position >= begin_ && n.position < end_ && slots_[n.position] == &n;
  }

  /// Room for `more` nodes: afterwards that many push_back() are legal. Strong guarantee.
  void make_room(std::uint32_t more = 1) {
    if (capacity_ - end_ < more) make_room_slowly(more);
  }

  /// Calls visit(node&) for each node, in order. The visit may erase that node.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t i = begin_, end = end_; i != end; ++i) {
      if (i + prefetch_distance < end) __builtin_prefetch(slots_[i + prefetch_distance], 1);
      if (slots_[i] != nullptr) visit(*slots_[i]);
    }
  }

  template <class Holds>
  bool all_of(Holds&& holds) const {
    for (std::uint32_t i = begin_; i != end_; ++i)
      if (slots_[i] != nullptr && !holds(*slots_[i])) return false;
    return true;
  }

  /// Forgets its nodes; keeps the memory for the next ones, unless it is much.
  void clear() noexcept;

  void swap(node_array& other) noexcept;

  /// See detail/checks.hpp. O(slots).
  std::string fault() const;

 private:
  static constexpr std::uint32_t prefetch_distance = 8;

  void restart_if_spent() noexcept {
    if (end_ - begin_ == holes_) begin_ = end_ = holes_ = 0;
  }
  void make_room_slowly(std::uint32_t more);
  void squeeze_into(node** target) noexcept;

  owned_array<node*> slots_;
  std::uint32_t begin_ = 0;  // slots before it are spent
  std::uint32_t end_ = 0;
  std::uint32_t holes_ = 0;  // of begin … end
  std::uint32_t capacity_ = 0;
};

}  // namespace rondo::detail
