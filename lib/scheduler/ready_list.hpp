// What is due in the pass in progress.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <tuple>
#include <vector>

#include "scheduler/record.hpp"

namespace rondo::detail {

/// The timers that a pass has taken out of the wheel and not yet started, in order. An entry refers to a
/// timer waiting for a certain moment: one that was cancelled or moved since is no longer good, and is passed
/// over. (So nothing has to be taken out of the middle, and what a task makes due cannot come into the pass
/// in progress.)
///
/// Late runs of a burst come in while the pass is in progress, each when the one before it begins: a heap of
/// their own, so that they take their turn among the others.
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
    if (entries_.size() == entries_.capacity() && next_ >= entries_.size() / 2) {  // those before are done
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
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

  /// False: there is no memory.
  bool push_late(record<Sync>& timer, tick_number tick) noexcept {
    const std::lock_guard hold(mutex_);
    try {
      late_.push_back({{&timer, timer.arming.load(std::memory_order_relaxed), tick}, ++late_pushed_});
    } catch (const std::bad_alloc&) {
      return false;
    }
    std::push_heap(late_.begin(), late_.end(), comes_later);
    return true;
  }

  /// The first; that stays first until pop(), whatever comes in meanwhile.
  std::optional<entry> front() noexcept {
    const std::lock_guard hold(mutex_);
    if (!front_) {
      if (late_is_first())
        take_late();
      else if (next_ != entries_.size())
        take_other();
    }
    return front_;
  }

  void pop() noexcept {
    const std::lock_guard hold(mutex_);
    front_.reset();
  }

  bool empty() const noexcept {
    const std::lock_guard hold(mutex_);
    return !front_ && next_ == entries_.size() && late_.empty();
  }

  /// visit(entry, late) for each good entry, in no order; `late` numbers those of push_late() from 1, and is 0
  /// for the others, which come in order.
  template <class Visit>
  void for_each_good(Visit&& visit) const {
    const std::lock_guard hold(mutex_);
    if (front_ && front_->good()) visit(*front_, std::uint64_t{0});
    for (std::size_t i = next_; i != entries_.size(); ++i)
      if (entries_[i].good()) visit(entries_[i], std::uint64_t{0});
    for (const late_entry& e : late_)
      if (e.good()) visit(e, e.order);
  }

  /// The tick of the first good entry.
  std::optional<tick_number> next_due() const noexcept {
    const std::lock_guard hold(mutex_);
    const auto good = [](const entry& e) { return e.good(); };
    const auto first =
        std::find_if(entries_.begin() + static_cast<std::ptrdiff_t>(next_), entries_.end(), good);
    std::optional<tick_number> due;
    if (first != entries_.end()) due = first->tick;
    const auto consider = [&](const entry& e) {
      if (good(e) && (!due || e.tick < *due)) due = e.tick;
    };
    if (front_) consider(*front_);
    for (const entry& e : late_) consider(e);
    return due;
  }

 private:
  static constexpr std::size_t batch = 256;
  static constexpr std::size_t kept = std::size_t{64} * 1024;

  struct late_entry : entry {
    std::uint64_t order;
  };

  static bool comes_later(const late_entry& a, const late_entry& b) noexcept {
    return std::tie(a.tick, a.order) > std::tie(b.tick, b.order);
  }

  /// In a tick those come first that waited in the wheel.
  bool late_is_first() const noexcept {
    return !late_.empty() && (next_ == entries_.size() || late_.front().tick < entries_[next_].tick);
  }

  void take_late() noexcept {
    front_ = late_.front();
    std::pop_heap(late_.begin(), late_.end(), comes_later);
    late_.pop_back();
  }

  void take_other() noexcept {
    front_ = entries_[next_];
    if (++next_ != entries_.size()) return;
    next_ = 0;
    entries_.clear();
    if (entries_.capacity() > kept) give_back_memory();
  }

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
  std::optional<entry> front_;  // taken out of the others
  std::vector<entry> entries_;
  std::size_t next_ = 0;
  std::vector<late_entry> late_;  // a heap
  std::uint64_t late_pushed_ = 0;
};

}  // namespace rondo::detail
