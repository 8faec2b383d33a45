// Timers that could not be inserted for lack of memory.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "scheduler/record.hpp"

namespace rondo::detail {

/// Records that wait until there is memory to insert them into the wheel; each pass tries again. Linked by
/// record::next, so the list itself needs no memory. All members may be called from any thread; remove() is O(records).
template <class Sync>
class retry_list {
 public:
  /// Precondition: the record is in no list.
  void push(record<Sync>& r) noexcept {
    const std::lock_guard hold(mutex_);
    r.next = std::exchange(first_, &r);
  }

  /// Precondition: the record is in this list.
  void remove(record<Sync>& r) noexcept {
    const std::lock_guard hold(mutex_);
    record<Sync>** link = &first_;
    while (*link != &r) link = &(*link)->next;
    *link = r.next;
  }

  /// Any of them, or null if there is none.
  record<Sync>* first() noexcept {
    const std::lock_guard hold(mutex_);
    return first_;
  }

  std::optional<tick_number> next_due() noexcept {
    const std::lock_guard hold(mutex_);
    std::optional<tick_number> earliest;
    for (const record<Sync>* r = first_; r != nullptr; r = r->next)
      if (!earliest || r->due < *earliest) earliest = r->due;
    return earliest;
  }

 private:
  typename Sync::list_mutex mutex_;
  record<Sync>* first_ = nullptr;
};

}  // namespace rondo::detail
