// What is due in the pass in progress.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "scheduler/record.hpp"

namespace rondo::detail {

/// The timers that a pass has taken out of the wheel and not yet started, in order. An entry refers to a
/// timer waiting for a certain moment: one that was cancelled or moved since is no longer good, and is passed
/// over. (So nothing has to be taken out of the middle, and what a task makes due cannot come into the pass
/// in progress.)
template <class Sync>
class ready_list {
 public:
  struct entry {
    record<Sync>* timer;
    std::uint64_t arming;
    tick_number tick;

    bool good() const noexcept { return timer->arming.load(std::memory_order_relaxed) == arming; }
  };

  ready_list() { entries_.reserve(batch); }

  /// How many push() are legal now: 1 … batch, unless it is not empty and there is no memory: then perhaps 0.
  std::size_t make_room() noexcept {
    const std::lock_guard hold(mutex_);
    if (entries_.size() == entries_.capacity()) {
      try {
        entries_.reserve(entries_.size() * 2);
      } catch (const std::bad_alloc&) {
        // The pass makes do with what it has; the rest is for the next one.
      }
    }
    return std::min(entries_.capacity() - entries_.size(), batch);
  }

  void push(record<Sync>& timer, tick_number tick) noexcept {
    const std::lock_guard hold(mutex_);
    entries_.push_back({&timer, timer.arming.load(std::memory_order_relaxed), tick});
  }

  std::optional<entry> front() const noexcept {
    const std::lock_guard hold(mutex_);
    if (next_ == entries_.size()) return std::nullopt;
    return entries_[next_];
  }

  void pop() noexcept {
    const std::lock_guard hold(mutex_);
    if (++next_ != entries_.size()) return;
    next_ = 0;
    entries_.clear();
    if (entries_.capacity() > kept) give_back_memory();
  }

  bool empty() const noexcept { return !front(); }

  /// visit(entry) for each good entry, in order, until it returns false.
  template <class Visit>
  void for_each_good(Visit&& visit) const {
    const std::lock_guard hold(mutex_);
    for (std::size_t i = next_; i != entries_.size(); ++i)
      if (entries_[i].good() && !visit(entries_[i])) return;
  }

 private:
  static constexpr std::size_t batch = 256;
  static constexpr std::size_t kept = std::size_t{64} * 1024;

  void give_back_memory() noexcept {
    try {
      std::vector<entry> fewer;
      fewer.reserve(batch);
      fewer.swap(entries_);
    } catch (const std::bad_alloc&) {
      // Then it keeps what it has.
    }
  }

  mutable typename Sync::list_mutex mutex_;
  std::vector<entry> entries_;
  std::size_t next_ = 0;
};

}  // namespace rondo::detail
