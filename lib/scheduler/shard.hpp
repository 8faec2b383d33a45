// A lock, a wheel, the timers that wait in it, and their counts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>

#include "scheduler/record.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// How a timer ceases to be pending.
enum class ending : std::uint8_t {
  last_run,   // its last run begins
  over,       // no run is to come: it has ended by itself, or drain() or stop() ends it
  cancelled,  // by cancel()
  replaced,   // as cancelled, but another timer now has its permit under the limit
  returned,   // stop() hands it back
};

/// Counts what became of timers.
struct counters {
  std::uint64_t scheduled = 0;
  std::uint64_t ended = 0;  // ceased to be pending
  std::uint64_t fired = 0;
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t returned = 0;
  std::uint64_t missed = 0;
  std::uint64_t overlapped = 0;
  std::uint64_t never_due = 0;  // at present

  std::uint64_t pending() const noexcept { return scheduled - ended; }

  /// Counts a timer that ceases to be pending. If it completes with a run in progress, the end of that run counts it as
  /// completed.
  void count(ending how, bool running) noexcept {
    ++ended;
    if (how == ending::last_run) ++fired;
    if (how == ending::over && !running) ++completed;
    if (how == ending::cancelled || how == ending::replaced) ++cancelled;
    if (how == ending::returned) ++returned;
  }

  counters& operator+=(const counters& other) noexcept {
    scheduled += other.scheduled;
    ended += other.ended;
    fired += other.fired;
    completed += other.completed;
    cancelled += other.cancelled;
    returned += other.returned;
    missed += other.missed;
    overlapped += other.overlapped;
    never_due += other.never_due;
    return *this;
  }
};

using shard_lock = std::unique_lock<sync::shard_mutex>;

/// The records that are allocated at a time.
struct record_block {
  static constexpr std::size_t size = 64;
  std::array<record, size> records;
};

/// The number of a record in its scheduler: the shard, the block, and the index in the block.
struct record_slot {
  static constexpr std::uint32_t most_shards = 64;

  static std::uint32_t shard(std::uint32_t slot) noexcept { return slot % most_shards; }
  static std::size_t block(std::uint32_t slot) noexcept { return slot / most_shards / record_block::size; }
  static std::size_t in_block(std::uint32_t slot) noexcept { return slot / most_shards % record_block::size; }
  static std::uint32_t of(std::uint32_t shard, std::size_t block, std::size_t in_block) noexcept {
    return static_cast<std::uint32_t>(block * record_block::size + in_block) * most_shards + shard;
  }
};

/// What a thread has that schedules timers. A timer stays in the shard in which it was scheduled until it ends, and the
/// shard's lock guards all about it. Free records of a shard that belongs to one thread are that thread's, without the
/// lock; it has a few, and the others are returned under the lock. Where threads share a shard, all are returned ones.
struct alignas(128) shard {  // NOLINT(clang-analyzer-optin.performance.Padding)
  shard(std::uint32_t own_number, std::size_t buckets, tick_number now)
      : number(own_number), wheel(buckets, now) {
    wheel.in_order = false;  // the ready list puts what is due in order, with that of the other shards
  }

  const std::uint32_t number;                // among all shards of the scheduler
  std::atomic<std::uint32_t> free_count{0};  // only its thread changes it
  record* free = nullptr;
  alignas(128) mutable sync::shard_mutex mutex;
  // The wheel's next_key(), as long as nobody holds the lock. The driver reads it without the lock.
  sync::atomic<tick_number> next{never_tick};
  record* returned = nullptr;
  std::uint64_t last_order = 0;
  // Null where the memory of a block was given back. No timer of these had `first_generation`, or a later one.
  std::vector<std::unique_ptr<record_block>> blocks;
  std::size_t gaps = 0;  // how many are null
  std::uint64_t first_generation = 1;
  // How many entries of the ready list refer to its records. Only the driver changes it: up under the lock.
  sync::atomic<std::size_t> listed{0};
  counters counts;
  wheel_core wheel;

  /// The record with that slot, or null if its memory was given back. Precondition: the slot is one of this shard's.
  record* at(std::uint32_t slot) const noexcept {
    const std::size_t b = record_slot::block(slot);
    if (b >= blocks.size() || blocks[b] == nullptr) return nullptr;
    return &blocks[b]->records[record_slot::in_block(slot)];
  }
  /// Makes free records, linked. Throws std::bad_alloc.
  record* add_block();
};

}  // namespace rondo::detail
