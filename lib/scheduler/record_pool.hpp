// The records of a scheduler, free and in use, and its counters.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "scheduler/counters.hpp"
#include "scheduler/record.hpp"

namespace rondo::detail {

/// Free records and counters are in shards, each with a lock of its own. A thread always uses the same shard, so threads
/// do not contend unless there are more of them than shards. A shard without free records takes those of another one, or
/// new ones. Records stay where they are until the pool is destroyed.
template <class Sync>
class record_pool {
 public:
  using record_type = record<Sync>;

  record_pool() = default;
  record_pool(const record_pool&) = delete;
  record_pool& operator=(const record_pool&) = delete;
  ~record_pool() {
    for_each([](record_type& r) { std::destroy_at(&r); });
    for (auto& segment : segments_)
      ::operator delete (segment.load(), std::align_val_t{alignof(record_type)});
  }

  /// A free record, counted as scheduled. Strong guarantee.
  record_type& take() {
    shard& mine = my_shard();
    {
      const std::lock_guard hold(mine.mutex);
      if (record_type* const r = mine.free) {
        mine.free = r->next;
        --mine.free_count;
        ++mine.counts.scheduled;
        return *r;
      }
    }
    chain found = take_from_another(mine);
    if (found.first == nullptr) found = make_new();
    return take_first(mine, found);
  }

  /// Precondition: nothing is known of `r` but by ids of earlier generations.
  template <class Count>
  void give_back(record_type& r, Count&& count) noexcept {
    shard& mine = my_shard();
    const std::lock_guard hold(mine.mutex);
    r.next = mine.free;
    mine.free = &r;
    ++mine.free_count;
    count(mine.counts);
  }

  /// count(counters&) adds to this thread's counters.
  template <class Count>
  void count(Count&& count) noexcept {
    shard& mine = my_shard();
    const std::lock_guard hold(mine.mutex);
    count(mine.counts);
  }

  /// The sum over all shards, read one after another.
  counters total() const noexcept {
    counters sum;
    for (const shard& l : shards_) {
      const std::lock_guard hold(l.mutex);
      sum += l.counts;
    }
    return sum;
  }

  /// The record in `slot`, or null if there never was one.
  record_type* find(std::uint32_t slot) const noexcept {
    if (slot >= slots_.load(std::memory_order_acquire)) return nullptr;
    return &at(slot);
  }

  /// How many records there are, and how many of them are free: read shard by shard.
  std::size_t slots() const noexcept { return slots_.load(std::memory_order_acquire); }
  std::size_t free() const noexcept {
    std::size_t count = 0;
    for (const shard& l : shards_) {
      const std::lock_guard hold(l.mutex);
      count += l.free_count;
    }
    return count;
  }

  /// visit(record&) for every record that ever was in use.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::uint32_t end = slots_.load(std::memory_order_acquire);
    for (std::uint32_t slot = 0; slot != end; ++slot) visit(at(slot));
  }

 private:
  static constexpr std::size_t shard_count = Sync::shards;
  // So many new records are made at a time; so many also are left to another shard.
  static constexpr std::uint32_t batch = 64;

  struct alignas(128) shard {
    mutable typename Sync::shard_mutex mutex;
    std::uint32_t free_count = 0;
    record_type* free = nullptr;
    counters counts;
  };

  shard& my_shard() noexcept { return shards_[Sync::thread_number() % shard_count]; }

  // Segment s holds batch * 2^s records, so that a slot is found with a count of leading zeros, and a
  // segment's memory is asked for at once but touched only as records are made.
  static std::size_t segment_of(std::uint32_t slot) noexcept {
    return static_cast<std::size_t>(std::bit_width(slot / batch + 1)) - 1;
  }
  static std::uint64_t begin_of(std::size_t segment) noexcept {
    return ((std::uint64_t{1} << segment) - 1) * batch;
  }
  static std::uint64_t size_of(std::size_t segment) noexcept { return std::uint64_t{batch} << segment; }

  record_type& at(std::uint32_t slot) const noexcept {
    const std::size_t s = segment_of(slot);
    return segments_[s].load(std::memory_order_acquire)[slot - begin_of(s)];
  }

  /// Linked records that are in no shard.
  struct chain {
    record_type* first = nullptr;
    std::uint32_t length = 0;
  };

  /// All that are free in a shard that has many; empty if there is none.
  chain take_from_another(const shard& mine) noexcept {
    for (shard& other : shards_) {
      if (&other == &mine) continue;
      const std::lock_guard hold(other.mutex);
      if (other.free_count <= batch) continue;
      return {std::exchange(other.free, nullptr), std::exchange(other.free_count, 0)};
    }
    return {};
  }

  chain make_new() {
    const std::lock_guard hold(growth_mutex_);
    const std::uint32_t first = slots_.load(std::memory_order_relaxed);
    if (first > std::numeric_limits<std::uint32_t>::max() - batch) throw std::bad_alloc();
    auto& segment = segments_[segment_of(first)];
    if (segment.load(std::memory_order_relaxed) == nullptr)
      segment.store(
          static_cast<record_type*>(::operator new (sizeof(record_type) * size_of(segment_of(first)),
                                                    std::align_val_t{alignof(record_type)})),
          std::memory_order_release);
    chain made{nullptr, batch};
    for (std::uint32_t slot = first + batch; slot-- != first;) {
      record_type* const r = std::construct_at(&at(slot), slot);
      r->next = made.first;
      made.first = r;
    }
    slots_.store(first + batch, std::memory_order_release);
    return made;
  }

  /// Leaves the others in `mine`. (The first never lies there: two threads might take it from each other for
  /// ever.)
  static record_type& take_first(shard& mine, const chain& found) noexcept {
    record_type& r = *found.first;
    const std::lock_guard hold(mine.mutex);
    if (mine.free != nullptr) {  // a thread that shares this shard came in between
      record_type* last = &r;
      while (last->next != nullptr) last = last->next;
      last->next = mine.free;
    }
    mine.free = r.next;
    mine.free_count += found.length - 1;
    ++mine.counts.scheduled;
    return r;
  }

  std::array<shard, shard_count> shards_;
  typename Sync::shard_mutex growth_mutex_;
  typename Sync::template atomic<std::uint32_t> slots_{0};  // records made so far
  std::array<typename Sync::template atomic<record_type*>, 27> segments_{};
};

}  // namespace rondo::detail
