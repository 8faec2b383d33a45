// The shards of a scheduler, and all records.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/detail/ticks.hpp>

#include "scheduler/record.hpp"
#include "scheduler/shard.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// A set of block numbers, as bits. Only one thread at a time may use it.
class block_set {
 public:
  std::uint64_t size() const noexcept { return size_; }
  bool contains(std::size_t block) const noexcept {
    return block / bits < words_.size() && (words_[block / bits] >> block % bits & 1U) != 0;
  }

  /// Makes it legal to insert() all numbers below `end`. Strong guarantee.
  void reserve(std::size_t end) {
    if (words_.size() * bits < end) words_.resize((end + bits - 1) / bits);
  }
  /// Precondition: it does not contain `block`.
  void insert(std::size_t block) noexcept {
    words_[block / bits] |= std::uint64_t{1} << block % bits;
    if (block / bits < first_) first_ = block / bits;
    ++size_;
  }
  /// Removes and returns the smallest number. Precondition: the set is not empty.
  std::size_t take_first() noexcept {
    while (words_[first_] == 0) ++first_;
    const std::size_t block = first_ * bits + static_cast<std::size_t>(std::countr_zero(words_[first_]));
    words_[first_] &= words_[first_] - 1;
    --size_;
    return block;
  }

 private:
  static constexpr std::size_t bits = 64;

  std::vector<std::uint64_t> words_;
  std::size_t first_ = 0;  // no word before it has a bit set
  std::uint64_t size_ = 0;
};

/// Each thread that schedules timers has a shard, from its first timer on; beyond 32 such threads, the others share eight.
/// A thread that ends leaves its shard, with the timers in it, to a later thread. All members may be called from any
/// thread.
///
/// Records are made in blocks, each for one shard. They do not move until the scheduler is destroyed, so anybody may find
/// the record of an id at any time; but all else about it needs the lock of its shard. shrink_to_fit() gives the pages of
/// blocks whose records are all free back to the system, and puts these blocks aside; they then read as zero. Before new
/// memory is allocated, records are made in these blocks again, perhaps for another shard, with generations that none of
/// their timers had.
///
/// The earliest tick. Each shard has the next_key() of its wheel in an atomic, `next`. A driver that is about to sleep
/// raises `awaited_` to the tick until which it will, and then reads each `next` once more. Who has stored an earlier `next`
/// reads `awaited_` afterwards. Of two such threads, at least one sees what the other has stored, because all four accesses
/// are sequentially consistent: so either the driver finds the earlier tick, or it is woken. Whoever wakes it lowers
/// `awaited_`, so that it is woken once. `awaited_` is never lower than what a driver sleeps for and nobody will wake it from;
/// where it is higher, a driver is woken for nothing.
class shards {
  static constexpr std::size_t count = sync::own_shards + sync::shared_shards;
  // How many records are made, or taken back from the returned ones, at a time.
  static constexpr std::uint32_t block = 64;
  // How many early keys the driver corrects, and how many timers it takes out, while others wait for a shard's lock.
  static constexpr int corrected_at_a_time = 8;
  static constexpr std::size_t taken_at_a_time = 64;
  // How many free records a thread keeps for itself.
  static constexpr std::uint32_t most_free = 2 * block;

 public:
  /// Throws std::invalid_argument unless 1 <= buckets <= max_buckets.
  shards(std::size_t buckets, tick_number now) : buckets_(checked_buckets(buckets)), begin_(now) {}
  shards(const shards&) = delete;
  shards& operator=(const shards&) = delete;
  ~shards();

  /// The number of buckets of each wheel.
  std::size_t buckets() const noexcept { return buckets_; }

  /// Returns a free record of the calling thread's shard. Strong guarantee.
  record& take() {
    const std::size_t thread = sync::thread_number();
    if (thread >= sync::own_shards) [[unlikely]]
      return take_shared(sync::own_shards + (thread - sync::own_shards) % sync::shared_shards);
    shard* const s = all_[thread].load(relaxed);
    if (s == nullptr || s->free == nullptr) [[unlikely]]
      return refill(thread);
    --s->free_count;
    return *std::exchange(s->free, s->free->next_free);
  }
  /// Unlocks `s`, the shard of `r`. Precondition: `r` is free, and only the caller knows of it.
  static void give_back(record& r, shard& s) noexcept {
    if (!is_own(s) || s.free_count == most_free) {
      r.next_free = std::exchange(s.returned, &r);
      return s.mutex.unlock();
    }
    s.mutex.unlock();
    ++s.free_count;
    r.next_free = std::exchange(s.free, &r);
  }

  /// The shard of a record that the caller has taken, or that serves a timer.
  shard& of(const record& r) const noexcept {
    return *all_[r.shard.load(relaxed) - std::size_t{1}].load(relaxed);
  }
  /// Locks the shard of a record, and returns it; or null if the record has none any more, because its timer is gone.
  shard* lock(const record& r) const noexcept {
    for (;;) {
      const std::uint8_t number = r.shard.load(relaxed);
      if (number == 0) [[unlikely]]
        return nullptr;
      shard* const s = all_[number - std::size_t{1}].load(std::memory_order_acquire);
      s->mutex.lock();
      // Only who holds that lock takes the record out of the shard.
      if (r.shard.load(relaxed) == number) [[likely]]
        return s;
      s->mutex.unlock();
    }
  }
  /// The record of that slot, or null if there never was one.
  record* at_slot(std::uint32_t slot) const noexcept {
    return slot < slots_.load(std::memory_order_acquire) ? &at(slot) : nullptr;
  }

  /// Must be called before a shard is unlocked whose wheel may have another next_key(). Returns whether a driver must be woken.
  bool note_key(shard& s) noexcept {
    const tick_number key = s.wheel.next_key();
    const tick_number before = s.next.load(relaxed);
    if (key == before) return false;
    s.next.store(key);
    return key < before && key < awaited_.load() && lower_awaited(key);
  }

  /// Takes the timers due at or before `to` out of the wheels, and calls on_due(record&, tick) for each, at most `limit`
  /// times, with its shard locked. Returns the number of calls. The earliest ticks come first, unless others are scheduled
  /// at the same time. A shard is unlocked between two parts of redistribution: see wheel_core::try_open(). Throws
  /// std::bad_alloc.
  template <class OnDue>
  std::size_t take_due(tick_number to, std::size_t limit, OnDue&& on_due) {
    std::size_t taken = 0;
    while (taken != limit) {
      const candidate first = this->first();
      if (first.due > to || first.of == nullptr) {
        raise_awaited(first.due);
        break;
      }
      shard& s = *first.of;
      const std::lock_guard hold(s.mutex);
      if (s.wheel.next_key() > to || s.wheel.next_key() == never_tick) continue;
      const key_update update{*this, s};
      const wheel_core::open_tick tick = s.wheel.try_open();
      if (tick.nodes == nullptr) continue;
      const std::size_t end = std::min(limit, taken + taken_at_a_time);
      for (node* n = nullptr; taken != end && (n = s.wheel.take(tick)) != nullptr; ++taken)
        on_due(static_cast<record&>(*n), tick.due);
      s.wheel.close(tick);
    }
    return taken;
  }
  /// The due tick of the earliest timer in a wheel, or none if there is none. Corrects early keys.
  std::optional<tick_number> next_due() noexcept;

  /// The sum over all shards, read one after another. It includes what was counted before.
  counters total() const noexcept;
  /// How many records there are.
  std::size_t slots() const noexcept { return slots_.load(relaxed); }
  /// How many of them are free. Precondition: no other call is in progress.
  std::size_t free() const noexcept;

  /// Calls visit(shard&) for each shard, without a lock. Shards that are made later are made by threads that see what this
  /// one did before.
  template <class Visit>
  void for_each(Visit&& visit) const {
    known_slots();
    for (const auto& each : all_)
      if (shard* const s = each.load(std::memory_order_acquire); s != nullptr) visit(*s);
  }
  /// Calls visit(record&, shard_lock&) for each timer, with its shard locked; visit may unlock it. Visits all timers that are
  /// there all the time, and those of threads that do not yet see what this one did before.
  template <class Visit>
  void for_each_timer(Visit&& visit) const {
    any_timer([&](record& r, shard_lock& hold) {
      visit(r, hold);
      return false;
    });
  }
  /// As for_each_timer(), but ends with the first timer for which it returns true.
  template <class Predicate>
  void any_timer(Predicate&& holds) const {
    const std::uint32_t end = known_slots();
    for (std::uint32_t first = 0; first != end; first += block)
      if (any_of_block(first, holds)) return;
  }

  /// Gives back memory that no timer needs. Locks are held only briefly. Does nothing about records if there is no memory
  /// for its own work, a bit for each of them. O(buckets + free records).
  void shrink_to_fit() noexcept;

  /// See detail/checks.hpp. May be called at any time. O(buckets + records).
  std::string fault() const;

 private:
  /// Whether the shard belongs to the calling thread alone.
  static bool is_own(const shard& s) noexcept {
    return s.number <= sync::own_shards && s.number == sync::thread_number() + 1;
  }

  /// The shard with the earliest `next`; null if no timer is in a wheel.
  struct candidate {
    shard* of = nullptr;
    tick_number due = never_tick;
  };

  /// Notes the key at the end of a step, also if that throws.
  struct key_update {
    ~key_update() { all.note_key(of); }
    shards& all;
    shard& of;
  };

  // Segment s holds block * 2^s records, so that a slot is found with a count of leading zeros. A segment's memory is
  // allocated at once, but touched only when records are made.
  static std::size_t segment_of(std::uint32_t slot) noexcept {
    return static_cast<std::size_t>(std::bit_width(slot / block + 1)) - 1;
  }
  static std::uint64_t begin_of(std::size_t segment) noexcept {
    return ((std::uint64_t{1} << segment) - 1) * block;
  }
  /// (If std::size_t has 32 bits, memory runs out before the size of a segment overflows, because the segments before
  /// it together are about as large.)
  static std::size_t size_of(std::size_t segment) noexcept { return std::size_t{block} << segment; }

  /// Precondition: the caller has acquired a number of slots that includes this one, has made the record or got it from
  /// somebody, or has locked the table. So it knows the segment.
  record& at(std::uint32_t slot) const noexcept {
    const std::size_t s = segment_of(slot);
    return segments_[s].load(relaxed)[slot - begin_of(s)];
  }
  std::uint32_t known_slots() const noexcept;

  template <class Predicate>
  bool any_of_block(std::uint32_t first, Predicate&& holds) const {
    shard_lock hold;
    for (std::uint32_t slot = first; slot != first + block; ++slot) {
      record& r = at(slot);
      if (!hold.owns_lock()) {
        shard* const s = lock(r);
        if (s == nullptr) return false;  // the block is aside
        hold = shard_lock(s->mutex, std::adopt_lock);
      }
      if (r.state != life::free && holds(r, hold)) return true;
    }
    return false;
  }

  // Not inlined: otherwise take() would save registers for them.
  [[gnu::noinline]] record& refill(std::size_t own);
  [[gnu::noinline]] record& take_shared(std::size_t shared);
  shard& made(std::size_t index);
  record* make_block(shard&);
  static std::align_val_t segment_alignment() noexcept;
  static std::uint32_t droppable_blocks() noexcept;
  record* gather() noexcept;
  std::vector<std::uint64_t> find_blocks(record* all) noexcept;
  void put_units_aside(std::vector<std::uint64_t>& found) noexcept;
  void put_aside(std::uint32_t first_block) noexcept;

  candidate first() const noexcept;
  bool lower_awaited(tick_number key) noexcept;
  void raise_awaited(tick_number key) noexcept;

  const std::size_t buckets_;
  const tick_number begin_;
  std::array<sync::atomic<shard*>, count> all_{};
  sync::atomic<std::size_t> end_{0};  // no shard has this index or a greater one
  sync::atomic<tick_number> awaited_{never_tick};

  // Guards the creation of shards and of records, and the next three members.
  mutable sync::table_mutex table_mutex_;
  block_set aside_;  // blocks whose memory was given back
  // The generation and arming that records made from these blocks get: not less than any of them had.
  std::uint64_t least_generation_ = 1;
  std::uint64_t least_arming_ = 1;
  sync::atomic<std::uint32_t> slots_{0};  // records made so far
  std::array<sync::atomic<record*>, 27> segments_{};
};

}  // namespace rondo::detail
