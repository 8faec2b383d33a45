// The delay queue: a heap of buckets that finds the earliest one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A mutable Fibonacci heap of numbered entries, with ticks as keys. An entry represents a bucket or the far stores of
/// a stripe, and may or may not be in the queue. Equal ticks are ordered by the entries' numbers. The queue allocates
/// all its memory when it is constructed. It stores its top, so that reading the top needs no function call.
class RONDO_EXPORT delay_queue {
 public:
  /// Creates an empty queue for the entries 0 … entries - 1.
  explicit delay_queue(std::size_t entries);
  ~delay_queue();
  delay_queue(const delay_queue&) = delete;
  delay_queue& operator=(const delay_queue&) = delete;

  bool empty() const noexcept { return top_ == none; }

  /// Precondition of both: !empty().
  std::size_t top() const noexcept { return top_; }
  tick_number top_due() const noexcept { return top_due_; }

  bool is_top(std::size_t entry) const noexcept { return top_ == entry; }

  /// Inserts the entry or changes its tick. O(1) amortised for a new entry or an earlier tick, O(log entries) for a
  /// later tick.
  void set(std::size_t entry, tick_number due) noexcept;
  /// Removes the entry if it is in the queue. O(log entries).
  void remove(std::size_t entry) noexcept;

  /// The tick of an entry, or none if it is not in the queue.
  std::optional<tick_number> due_of(std::size_t entry) const;
  /// See detail/checks.hpp. O(entries).
  std::string fault() const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct heap;

  void note_top() noexcept;

  heap* const heap_;  // owned; with std::unique_ptr, each file that includes this compiles 10 ms longer
  std::size_t top_ = none;
  tick_number top_due_ = 0;
};

}  // namespace rondo::detail
