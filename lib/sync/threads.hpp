// The locks, atomics and condition variables of a scheduler that threads share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "sync/short_lock.hpp"
#include "sync/thread_local.hpp"

namespace rondo::detail {

/// The policy of wheel_core, record_pool and basic_core. Tests use others, whose locks record what is held, for
/// example, or give control to an explorer of interleavings at each step.
struct threads {
  using stripe_mutex = short_lock;
  using queue_mutex = short_lock;
  using record_mutex = short_lock;
  using shard_mutex = short_lock;
  using list_mutex = short_lock;

  using waiting_mutex = std::mutex;
  using condition = std::condition_variable;

  template <class T>
  using atomic = std::atomic<T>;

  /// Stripes of the wheel: that many threads can use it without contention.
  static constexpr std::size_t stripes = 16;
  // Takes about 0.1 ms, during which other threads wait for the stripe's lock.
  static constexpr std::uint32_t redistributed_at_a_time = 4096;

  /// Shards of the pool of records: that many threads can use it without contention.
  static constexpr std::size_t shards = 16;

  /// A small number for the calling thread: 0 for the first that asks, 1 for the next, …
  static std::size_t thread_number() noexcept {
    static std::atomic<std::size_t> threads_seen{0};
    RONDO_THREAD_LOCAL constinit std::size_t counted_from_one = 0;  // 0: the thread has none yet
    if (counted_from_one == 0) [[unlikely]]
      counted_from_one = threads_seen.fetch_add(1, std::memory_order_relaxed) + 1;
    return counted_from_one - 1;
  }
};

}  // namespace rondo::detail
