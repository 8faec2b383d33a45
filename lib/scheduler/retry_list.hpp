// Timers that could not be inserted for lack of memory.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "scheduler/record.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// Records that wait until there is memory to insert them into the wheel; each pass tries again. Linked by
/// record::next, so the list itself needs no memory. All members may be called from any thread; remove() is O(records).
class retry_list {
 public:
  /// Precondition: the record is in no list.
  void push(record& r) noexcept {
    const std::lock_guard hold(mutex_);
    r.next = std::exchange(first_, &r);
  }

  /// Precondition: the record is in this list.
  void remove(record& r) noexcept {
    const std::lock_guard hold(mutex_);
    record** link = &first_;
    while (*link != &r) link = &(*link)->next;
    *link = r.next;
  }

  /// Any of them, or null if there is none.
  record* first() noexcept {
    const std::lock_guard hold(mutex_);
    return first_;
  }

  std::optional<tick_number> next_due() noexcept {
    const std::lock_guard hold(mutex_);
    std::optional<tick_number> earliest;
    for (const record* r = first_; r != nullptr; r = r->next)
      if (!earliest || r->due < *earliest) earliest = r->due;
    return earliest;
  }

 private:
  sync::list_mutex mutex_;
  record* first_ = nullptr;
};

}  // namespace rondo::detail
