// The shards of a scheduler, and all records.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
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

class ready_list;

/// Each thread that schedules timers has a shard, from its first timer on; beyond 32 such threads in the process, with whichever
/// scheduler, the others share eight.
/// A thread that ends leaves its shard, with the timers in it, to a later thread. All members may be called from any
/// thread.
///
/// Records do not move. shrink_to_fit() gives back the blocks whose records are all free, so everything about a record needs
/// the lock of its shard, which its slot tells: even whether it is still there.
///
/// The earliest tick. Each shard has the next_key() of its wheel in an atomic, `next`. A driver that is about to sleep
/// raises `awaited_` to the tick until which it will, and then reads each `next` once more. Who has stored an earlier `next`
/// reads `awaited_` afterwards. Of two such threads, at least one sees what the other has stored, because all four accesses
/// are sequentially consistent: so either the driver finds the earlier tick, or it is woken. Whoever wakes it lowers
/// `awaited_`, so that it is woken once. `awaited_` is never lower than what a driver sleeps for and nobody will wake it from;
/// where it is higher, a driver is woken for nothing.
class shards {
  static constexpr std::size_t count = sync::own_shards + sync::shared_shards;
  static_assert(count <= record_slot::most_shards);
  // How many early keys the driver corrects, and how many timers it takes out, while others wait for a shard's lock.
  static constexpr int corrected_at_a_time = 8;
  static constexpr std::size_t taken_at_a_time = 64;
  // How many free records a thread takes back from the returned ones, and how many it keeps for itself.
  static constexpr std::uint32_t taken_back = record_block::size;
  static constexpr std::uint32_t most_free = 2 * taken_back;

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
    s->free_count.store(s->free_count.load(relaxed) - 1, relaxed);
    return *std::exchange(s->free, s->free->next_free);
  }
  /// Takes back a record that take() has returned, and that has served no timer since.
  void put_back(record& r) const noexcept {
    shard& s = of(r);
    if (is_own(s) && s.free_count.load(relaxed) != most_free) return keep(r, s);
    s.mutex.lock();
    give_back(r, s);
  }
  /// Unlocks `s`, the shard of `r`. Precondition: `r` is free, and only the caller knows of it.
  static void give_back(record& r, shard& s) noexcept {
    if (!is_own(s) || s.free_count.load(relaxed) == most_free) {
      r.next_free = std::exchange(s.returned, &r);
      return s.mutex.unlock();
    }
    s.mutex.unlock();
    keep(r, s);
  }

  /// The shard of a record that the caller has taken, or that serves a timer.
  shard& of(const record& r) const noexcept { return *all_[record_slot::shard(r.slot)].load(relaxed); }
  /// The shard that has the record with that slot; null if the caller knows of no such record.
  shard* of(std::uint32_t slot) const noexcept {
    return all_[record_slot::shard(slot)].load(std::memory_order_acquire);
  }
  /// The record with that slot, or null. `hold` locks its shard, if there is one.
  record* find(std::uint32_t slot, shard_lock& hold) const noexcept {
    shard* const s = of(slot);
    if (s == nullptr) return nullptr;
    hold = shard_lock(s->mutex);
    return s->at(slot);
  }

  /// Must be called before a shard is unlocked whose wheel may have another next_key(). Returns whether a driver must be woken.
  bool note_key(shard& s) noexcept {
    const tick_number key = s.wheel.next_key();
    const tick_number before = s.next.load(relaxed);
    if (key == before) return false;
    s.next.store(key);
    return key < before && key < awaited_.load() && lower_awaited(key);
  }

  /// Counts entries of the ready list about records of a shard, which is locked. As long as there is one, its records stay.
  static void note_listed(shard& s, std::size_t entries) noexcept {
    s.listed.store(s.listed.load(relaxed) + entries, relaxed);
  }
  /// An entry about that record is no longer used.
  void note_unlisted(const record& r) noexcept {
    shard& s = of(r);
    s.listed.store(s.listed.load(relaxed) - 1, std::memory_order_release);
  }

  /// Takes the timers due at or before `to` out of the wheels, notes that each is listed, and calls on_due(record&, tick) for
  /// it, at most `limit` times, with its shard locked. Returns the number of calls. The earliest ticks come first, unless others
  /// are scheduled at the same time. Ends early if may_take() returns false, which is called with a shard locked. A shard is
  /// unlocked between two parts of redistribution: see wheel_core::try_open(). Throws std::bad_alloc.
  template <class MayTake, class OnDue>
  std::size_t take_due(tick_number to, std::size_t limit, MayTake&& may_take, OnDue&& on_due) {
    std::size_t taken = 0;
    while (taken != limit) {
      const candidate first = this->first();
      if (first.due > to || first.of == nullptr) {
        raise_awaited(first.due);
        break;
      }
      shard& s = *first.of;
      const std::lock_guard hold(s.mutex);
      if (!may_take()) break;
      if (s.wheel.next_key() > to || s.wheel.next_key() == never_tick) continue;
      const key_update update{*this, s};
      const wheel_core::open_tick tick = s.wheel.try_open();
      if (tick.nodes == nullptr) continue;
      const std::size_t begin = taken;
      const std::size_t end = std::min(limit, begin + taken_at_a_time);
      for (node* n = nullptr; taken != end && (n = s.wheel.take(tick)) != nullptr; ++taken)
        on_due(static_cast<record&>(*n), tick.due);
      note_listed(s, taken - begin);
      s.wheel.close(tick);
    }
    return taken;
  }
  /// The due tick of the earliest timer in a wheel, or none if there is none. Corrects early keys. Raises `awaited_` to that
  /// tick: who sets an earlier timer from now on wakes the driver.
  std::optional<tick_number> next_due() noexcept;

  /// The sum over all shards, read one after another. It includes what was counted before.
  counters total() const noexcept;
  /// How many records there are.
  std::size_t slots() const noexcept;

  /// Calls visit(shard&) for each shard, without a lock. Shards that are made later are made by threads that see what this
  /// one did before.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::size_t end = known_end();
    for (std::size_t i = 0; i != end; ++i)
      if (shard* const s = all_[i].load(std::memory_order_acquire); s != nullptr) visit(*s);
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
    bool found = false;
    for_each([&](const shard& s) {
      if (!found) found = any_of(s, holds);
    });
  }

  /// Gives back memory that no timer needs. Locks are held only briefly. Does nothing about the records of a shard if there is
  /// no memory for its own work, a byte for each block, or if the pass in progress has timers of that shard to come.
  /// O(buckets + free records).
  void shrink_to_fit(const ready_list&) noexcept;

  /// See detail/checks.hpp. May be called at any time. O(buckets + records).
  std::string fault() const;

 private:
  /// Whether the shard belongs to the calling thread alone. (A thread that has scheduled nothing gets no number here: there
  /// are only as many as own shards in the process.)
  static bool is_own(const shard& s) noexcept {
    return s.number < sync::own_shards && s.number == sync::known_thread_number();
  }

  /// Adds a free record to those of the calling thread.
  static void keep(record& r, shard& s) noexcept {
    s.free_count.store(s.free_count.load(relaxed) + 1, relaxed);
    r.next_free = std::exchange(s.free, &r);
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

  std::size_t known_end() const noexcept;
  static std::size_t block_count(const shard& s) noexcept {
    const std::lock_guard hold(s.mutex);
    return s.blocks.size();
  }

  /// A shard is locked for one block at a time. Since `holds` may unlock it, the block may go in between.
  template <class Predicate>
  static bool any_of(const shard& s, Predicate&& holds) {
    const std::size_t end = block_count(s);
    for (std::size_t b = 0; b != end; ++b) {
      shard_lock hold(s.mutex);
      for (std::size_t i = 0; i != record_block::size; ++i) {
        if (!hold.owns_lock()) hold = shard_lock(s.mutex);
        if (b >= s.blocks.size() || s.blocks[b] == nullptr) break;
        record& r = s.blocks[b]->records[i];
        if (r.state != life::free && holds(r, hold)) return true;
      }
    }
    return false;
  }

  // Not inlined: otherwise take() would save registers for them.
  [[gnu::noinline]] record& refill(std::size_t own);
  [[gnu::noinline]] record& take_shared(std::size_t shared);
  shard& made(std::size_t index);
  static void shrink(shard&, const ready_list&) noexcept;
  static record* gather(shard&) noexcept;
  static record* drop_blocks(shard&, record* free) noexcept;
  static void drop_block(shard&, std::size_t block) noexcept;

  candidate first() const noexcept;
  bool lower_awaited(tick_number key) noexcept;
  void raise_awaited(tick_number key) noexcept;

  const std::size_t buckets_;
  const tick_number begin_;
  std::array<sync::atomic<shard*>, count> all_{};
  sync::atomic<std::size_t> end_{0};  // no shard has this index or a greater one
  sync::atomic<tick_number> awaited_{never_tick};

  mutable sync::table_mutex table_mutex_;  // guards the creation of shards
};

}  // namespace rondo::detail
