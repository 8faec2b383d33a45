// Locks for the core that keep track of which of them the calling thread holds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "sync/thread_numbers.hpp"

namespace rondo::test {

/// In the order in which they may be nested. A thread may hold one lock of a rank at a time, or two stripes, or two
/// records (of a timer and of the one that replaces it), in the order of their addresses.
enum class lock_rank : std::size_t { waiting, record, stripe, shard, innermost };

/// The locks that this thread holds, and the mistakes of all threads so far. (Defined in a separate file: with
/// sanitizers, g++ took eight minutes to compile the core with all of this inlined at each lock.)
class held_locks {
 public:
  static std::size_t count();

  static void add(lock_rank rank, const void* lock);
  static void remove(const void* lock);

  /// How often a lock was taken inside another one in which it must not be nested.
  static std::size_t disorders();
  static std::size_t taken(lock_rank rank);
};

template <lock_rank Rank>
class counted_mutex {
 public:
  void lock() {
    mutex_.lock();
    held_locks::add(Rank, this);
  }
  void unlock() {
    held_locks::remove(this);
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
};

/// A policy for basic_core, like detail::threads.
struct counted_locks {
  using stripe_mutex = counted_mutex<lock_rank::stripe>;
  using queue_mutex = counted_mutex<lock_rank::innermost>;
  using record_mutex = counted_mutex<lock_rank::record>;
  using shard_mutex = counted_mutex<lock_rank::shard>;
  using depot_mutex = counted_mutex<lock_rank::innermost>;
  using list_mutex = counted_mutex<lock_rank::innermost>;

  using waiting_mutex = counted_mutex<lock_rank::waiting>;
  using condition = std::condition_variable_any;

  template <class T>
  using atomic = std::atomic<T>;

  static constexpr std::size_t stripes = 16;
  static constexpr std::uint32_t redistributed_at_a_time = 2;  // so few that redistribution is interrupted
  // All threads share the shards, so that each use takes the lock.
  static constexpr std::size_t own_shards = 0;
  static constexpr std::size_t shared_shards = 16;
  static constexpr bool drops_pages = false;  // a std::mutex must not lose its memory

  static std::size_t thread_number() noexcept { return detail::thread_numbers::of_this_thread(); }
};

}  // namespace rondo::test
