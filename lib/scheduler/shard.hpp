// A lock, a wheel, the timers that wait in it, and their counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

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
  replaced,   // as cancelled, but another timer now has its place under the limit
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

/// What a thread has that schedules timers. A timer stays in the shard in which it was scheduled until it ends, and the
/// shard's lock guards all about it. Free records of a shard that belongs to one thread are that thread's, without the
/// lock; it has a few, and the others are returned under the lock. Where threads share a shard, all are returned ones.
struct alignas(128) shard {
  shard(std::uint8_t own_number, std::size_t buckets, tick_number now)
      : number(own_number), wheel(buckets, now) {
    wheel.in_order = false;  // the ready list puts what is due in order, with that of the other shards
  }

  const std::uint8_t number;  // as in record::shard
  record* free = nullptr;
  std::uint32_t free_count = 0;
  alignas(128) mutable sync::shard_mutex mutex;
  // The wheel's next_key(), as long as nobody holds the lock. The driver reads it without the lock.
  sync::atomic<tick_number> next{never_tick};
  record* returned = nullptr;
  std::uint64_t last_arming = 0;
  counters counts;
  wheel_core wheel;
};

}  // namespace rondo::detail
