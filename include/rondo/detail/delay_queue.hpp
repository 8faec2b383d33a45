// The delay queue: what of a wheel comes first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A fibonacci heap of entries ordered by tick, each there or not: the buckets that hold something, and what stands
/// for the far timers of a stripe. Equal ticks are in the order of the entries' numbers. It takes all its memory
/// when it is made, and is touched when a bucket gets its first node or has lost its last one. The top is kept at
/// hand: looking at it costs no call.
class RONDO_EXPORT delay_queue {
 public:
  /// For entries 0 … entries - 1, none of them there.
  explicit delay_queue(std::size_t entries);
  ~delay_queue();
  delay_queue(const delay_queue&) = delete;
  delay_queue& operator=(const delay_queue&) = delete;

  bool empty() const noexcept { return top_ == none; }

  /// Precondition of both: !empty().
  std::size_t top() const noexcept { return top_; }
  tick_number top_due() const noexcept { return top_due_; }

  bool is_top(std::size_t entry) const noexcept { return top_ == entry; }

  /// The entry is there, with this tick. New, or earlier than before: O(1) amortised. Later: O(log entries).
  void set(std::size_t entry, tick_number due) noexcept;
  /// The entry is not there. O(log entries).
  void remove(std::size_t entry) noexcept;

  /// What was set, if it is there.
  std::optional<tick_number> due_of(std::size_t entry) const;
  /// See detail/checks.hpp. O(entries).
  std::string fault() const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct heap;

  void note_top() noexcept;

  heap* const heap_;  // its own; std::unique_ptr would take 10 ms of whoever includes this
  std::size_t top_ = none;
  tick_number top_due_ = 0;
};

}  // namespace rondo::detail
