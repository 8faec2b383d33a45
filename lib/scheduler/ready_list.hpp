// What is due in the pass in progress.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <tuple>
#include <vector>

#include "scheduler/record.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// The timers that a pass has taken out of the wheel and not yet started, in order. An entry refers to a timer that
/// waits for a certain moment. If the timer has been cancelled or moved since, the entry is no longer current and is
/// skipped. So nothing is removed from the middle, and what a task makes due cannot join the pass in progress.
///
/// Late runs of a burst join while the pass is in progress, each when the previous run begins. They are in a separate
/// heap, and take their turn among the others.
///
/// One thread at a time drives: it fills and empties the list. Other threads read it under the lock, unless `size_` says
/// that it is empty. The driver takes the lock to change entries between `begin_` and `end_`, but not merely to move `begin_`
/// or to push behind `end_`: entries in between do not change without the lock.
class ready_list {
 public:
  struct entry {
    record* timer = nullptr;
    std::uint64_t order = 0;
    tick_number tick = std::numeric_limits<tick_number>::min();

    bool is_current() const noexcept { return timer->order.load(relaxed) == order; }
  };

  ready_list() : entries_(batch) {}

  /// The pass in progress takes everything up to here out of the wheel. What is due later does not take its turn in it.
  /// (What the previous pass left comes first.) For the driver.
  tick_number collects_until = 0;

  /// While it lives, a pass fills the list. Then what was pushed is in order, whatever order it came in.
  class filling {
   public:
    filling(ready_list& list, tick_number until) noexcept : list_(list) {
      list_.collects_until = until;
      list_.left_ = list_.end_.load(relaxed) - list_.begin_.load(relaxed);
      list_.last_ = {};
      list_.is_in_order_ = true;
    }
    ~filling() {
      if (!list_.is_in_order_) list_.sort_pushed();
    }
    filling(const filling&) = delete;
    filling& operator=(const filling&) = delete;

   private:
    ready_list& list_;
  };

  /// Returns how many calls of push() are legal now: 1 … batch, but perhaps 0 if the list is not empty and there is no
  /// memory.
  std::size_t make_room() noexcept {
    if (end_.load(relaxed) == entries_.size()) make_more_room();
    return std::min(entries_.size() - end_.load(relaxed), batch);
  }

  void push(record& timer, tick_number tick) noexcept {
    const std::size_t end = end_.load(relaxed);
    const entry pushed{&timer, timer.order.load(relaxed), tick};
    is_in_order_ &= !is_before(pushed, last_);
    last_ = entries_[end] = pushed;
    end_.store(end + 1, std::memory_order_release);
    size_.store(size_.load(relaxed) + 1, relaxed);
  }

  /// Returns false if there is no memory.
  bool push_late(record& timer, tick_number tick) noexcept {
    const std::lock_guard hold(mutex_);
    try {
      late_.push_back({&timer, timer.order.load(relaxed), tick});
    } catch (const std::bad_alloc&) {
      return false;
    }
    std::push_heap(late_.begin(), late_.end(), comes_later);
    size_.store(size_.load(relaxed) + 1, relaxed);
    return true;
  }

  /// The first entry. It stays first until pop(), whatever is pushed in the meantime.
  std::optional<entry> front() noexcept {
    if (late_front_) return late_front_;
    if (!front_is_known_ && !late_.empty() && late_one_is_first()) return take_late();
    const std::size_t begin = begin_.load(relaxed);
    const std::size_t end = end_.load(relaxed);
    if (begin == end) return std::nullopt;
    front_is_known_ = true;
    if (begin + prefetch_distance < end) prefetch(*entries_[begin + prefetch_distance].timer);
    return entries_[begin];
  }

  /// Precondition: front() has returned the first entry.
  void pop() noexcept {
    if (late_front_) {
      const std::lock_guard hold(mutex_);
      late_front_.reset();
      size_.store(size_.load(relaxed) - 1, std::memory_order_release);
      return;
    }
    front_is_known_ = false;
    drop_first();
  }

  /// The tick of the first current entry.
  std::optional<tick_number> next_due() const noexcept {
    if (size_.load(std::memory_order_acquire) == 0) return std::nullopt;
    const std::lock_guard hold(mutex_);
    std::optional<tick_number> due;
    const std::size_t end = end_.load(std::memory_order_acquire);
    for (std::size_t i = begin_.load(std::memory_order_acquire); i < end && !due; ++i)
      if (entries_[i].is_current()) due = entries_[i].tick;
    const auto consider = [&](const entry& e) {
      if (e.is_current() && (!due || e.tick < *due)) due = e.tick;
    };
    if (late_front_) consider(*late_front_);
    for (const entry& e : late_) consider(e);
    return due;
  }

  /// Returns when no other thread reads entries that have been popped.
  void wait_for_readers() const noexcept { const std::lock_guard meets(mutex_); }

 private:
  using index = sync::atomic<std::size_t>;

  static constexpr std::size_t batch = 256;
  static constexpr std::size_t kept = std::size_t{64} * 1024;
  static constexpr std::size_t prefetch_distance = 4;

  static bool is_before(const entry& a, const entry& b) noexcept {
    return std::tie(a.tick, a.order) < std::tie(b.tick, b.order);
  }
  static bool comes_later(const entry& a, const entry& b) noexcept { return is_before(b, a); }

  // The timer was set long ago, and its record lies anywhere in memory. It has two lines.
  static void prefetch(const record& r) noexcept {
    const char* const begin = reinterpret_cast<const char*>(&r);
    for (std::size_t line = 0; line != 2; ++line) __builtin_prefetch(begin + 64 * line, 1);
  }

  void sort_pushed() noexcept {
    const std::lock_guard hold(mutex_);
    const auto first = static_cast<std::ptrdiff_t>(begin_.load(relaxed) + left_);
    std::sort(entries_.begin() + first, entries_.begin() + static_cast<std::ptrdiff_t>(end_.load(relaxed)),
              is_before);
  }

  /// Moves the entries to the front if there is much room, or makes the list longer.
  [[gnu::noinline]] void make_more_room() noexcept {
    const std::lock_guard hold(mutex_);
    const std::size_t begin = begin_.load(relaxed);
    if (begin >= entries_.size() / 2) {  // the entries before are done
      std::copy(entries_.begin() + static_cast<std::ptrdiff_t>(begin), entries_.end(), entries_.begin());
      begin_.store(0, relaxed);
      end_.store(entries_.size() - begin, relaxed);
      return;
    }
    try {
      entries_.resize(entries_.size() * 2);
    } catch (const std::bad_alloc&) {
      // The pass makes do with what it has; the rest is for the next one.
    }
  }

  void drop_first() noexcept {
    const std::size_t begin = begin_.load(relaxed) + 1;
    begin_.store(begin, std::memory_order_release);
    size_.store(size_.load(relaxed) - 1, std::memory_order_release);
    if (begin == end_.load(relaxed) && entries_.size() > kept) give_memory_back();
  }

  /// Entries after those that a limit has left may be due before these. So an entry that is not current says nothing about
  /// those after it, and comes first.
  bool late_one_is_first() const noexcept {
    if (begin_.load(relaxed) == end_.load(relaxed)) return true;
    const entry& other = entries_[begin_.load(relaxed)];
    return other.is_current() && late_.front().tick < other.tick;
  }

  std::optional<entry> take_late() noexcept {
    const std::lock_guard hold(mutex_);
    late_front_ = late_.front();
    std::pop_heap(late_.begin(), late_.end(), comes_later);
    late_.pop_back();
    return late_front_;
  }

  /// Precondition: all entries have been taken.
  [[gnu::noinline]] void give_memory_back() noexcept {
    const std::lock_guard hold(mutex_);
    try {
      entries_ = std::vector<entry>(batch);
    } catch (const std::bad_alloc&) {
      // The list keeps the memory that it has.
    }
    begin_.store(0, relaxed);
    end_.store(0, relaxed);
  }

  mutable sync::list_mutex mutex_;
  std::vector<entry> entries_;  // as many as there is room for
  // Of the entries to come. Only the driver changes them, so it reads them relaxed.
  index begin_{0};
  index end_{0};
  index size_{0};  // also of late entries
  // Of the filling in progress: how many entries were there before, what was pushed last, and whether what was pushed is
  // in order.
  std::size_t left_ = 0;
  entry last_;
  bool is_in_order_ = true;
  bool front_is_known_ = false;  // it is the entry at begin_
  std::optional<entry> late_front_;
  std::vector<entry> late_;  // a heap
};

}  // namespace rondo::detail
