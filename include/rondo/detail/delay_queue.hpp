// The delay queue: which bucket has the earliest next round.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// A fibonacci heap of all buckets of a wheel, ordered by the tick of their next round; those without one
/// come last. It is as large whether ten timers are pending or ten million, takes all its memory when it is
/// made, and is touched only when some bucket's next round changes. The top is kept at hand: looking at it
/// costs no call.
class RONDO_EXPORT delay_queue {
 public:
  explicit delay_queue(std::size_t buckets);
  ~delay_queue();
  delay_queue(const delay_queue&) = delete;
  delay_queue& operator=(const delay_queue&) = delete;

  /// No bucket has a next round.
  bool empty() const noexcept { return top_bucket_ == none; }

  /// Precondition of both: !empty().
  std::size_t top_bucket() const noexcept { return top_bucket_; }
  tick_number top_due() const noexcept { return top_due_; }

  bool is_top(std::size_t bucket) const noexcept { return top_bucket_ == bucket; }

  /// Bucket's next round is due at `due`. Earlier than before: O(1) amortised. Later, or removal: O(log
  /// buckets).
  void set(std::size_t bucket, tick_number due) noexcept;
  /// Bucket has no next round.
  void remove(std::size_t bucket) noexcept;

  /// What was set, if it has a next round.
  std::optional<tick_number> due_of(std::size_t bucket) const;
  /// See detail/checks.hpp. O(buckets).
  std::string fault() const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct heap;

  void look_at_top() noexcept;

  heap* const heap_;  // its own; std::unique_ptr would take 10 ms of whoever includes this
  std::size_t top_bucket_ = none;
  tick_number top_due_ = 0;
};

}  // namespace rondo::detail
