// The locks, atomics and condition variables of a scheduler that threads share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "sync/short_lock.hpp"
#include "sync/thread_numbers.hpp"

namespace rondo::detail {

/// The policy of wheel_core, record_pool and basic_core. Tests use other policies, whose locks, for example, record
/// what is held, or yield to an explorer of interleavings at each step.
struct threads {
  using stripe_mutex = short_lock;
  using queue_mutex = short_lock;
  using record_mutex = short_lock;
  using shard_mutex = short_lock;
  using depot_mutex = short_lock;
  using list_mutex = short_lock;

  using waiting_mutex = std::mutex;
  using condition = std::condition_variable;

  template <class T>
  using atomic = std::atomic<T>;

  /// Stripes of the wheel: this many threads can use it without contention.
  static constexpr std::size_t stripes = 16;
  // Takes about 0.1 ms, during which other threads wait for the stripe's lock.
  static constexpr std::uint32_t redistributed_at_a_time = 4096;

  /// Shards of the record pool. Each of the first ones belongs to one thread, which uses it without a lock.
  static constexpr std::size_t own_shards = thread_numbers::exclusive;
  static constexpr std::size_t shared_shards = 8;
  // A record that reads as zero is free, if the system gives memory back: see record_pool::shrink_to_fit().
  static constexpr bool drops_pages = true;

  static std::size_t thread_number() noexcept { return thread_numbers::of_this_thread(); }
};

}  // namespace rondo::detail
