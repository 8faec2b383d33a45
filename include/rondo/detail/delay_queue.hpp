// The delay queue: a heap of buckets that finds the earliest one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A mutable Fibonacci heap of numbered entries, with ticks as keys. An entry represents a bucket or all far nodes of a
/// wheel, and may or may not be in the queue. Equal ticks are ordered by the entries' numbers. The queue allocates all
/// its memory when it is constructed.
class RONDO_EXPORT delay_queue {
 public:
  /// Creates an empty queue for the entries 0 … entries - 1.
  explicit delay_queue(std::size_t entries);
  ~delay_queue();
  delay_queue(const delay_queue&) = delete;
  delay_queue& operator=(const delay_queue&) = delete;

  /// The entry with the earliest tick, and that tick. Only set() changes them.
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t top = none;
  tick_number top_due = 0;

  /// Inserts the entry, changes its tick, or removes it if there is none.
  /// O(1) amortised for a new entry or an earlier tick, O(log entries) for a later tick or none.
  void set(std::size_t entry, std::optional<tick_number> due) noexcept;

  /// The tick of an entry, or none if it is not in the queue.
  std::optional<tick_number> due_of(std::size_t entry) const;
  /// See detail/checks.hpp. O(entries).
  std::string fault() const;

 private:
  struct heap;

  heap* const heap_;  // owned; with std::unique_ptr, each file that includes this compiles 10 ms longer
};

}  // namespace rondo::detail
