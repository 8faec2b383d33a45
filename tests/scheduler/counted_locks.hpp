// Locks for the core that know which of them the calling thread holds.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "sync/thread_numbers.hpp"

namespace rondo::test {

/// In the order in which they may be nested; of a rank one at a time, but for two stripes, and two records (of a timer and
/// of the new one that comes in its place): these by their addresses.
enum class lock_rank : std::size_t { waiting, record, stripe, shard, innermost };

/// What this thread holds, and what all threads have done wrong so far.
class held_locks {
 public:
  static std::size_t count() { return held_.size(); }
  static std::size_t count(lock_rank rank) {
    std::size_t n = 0;
    for (const held& h : held_) n += h.rank == rank ? 1 : 0;
    return n;
  }

  static void add(lock_rank rank, const void* lock) {
    for (const held& outer : held_) {
      const bool may_be_two = rank == lock_rank::stripe || rank == lock_rank::record;
      const bool second = may_be_two && count(rank) == 1 && std::less<>()(outer.lock, lock);
      if (outer.rank > rank || (outer.rank == rank && !second)) ++disorders_;
    }
    held_.push_back({rank, lock});
    ++taken_[static_cast<std::size_t>(rank)];
  }
  static void remove(const void* lock) {
    std::erase_if(held_, [&](const held& h) { return h.lock == lock; });
  }

  /// How often a lock was taken inside one that it must not be nested in.
  static std::size_t disorders() { return disorders_; }
  static std::size_t taken(lock_rank rank) { return taken_[static_cast<std::size_t>(rank)]; }

 private:
  struct held {
    lock_rank rank;
    const void* lock;
  };
  inline static thread_local std::vector<held> held_;
  inline static std::array<std::atomic<std::size_t>, 5> taken_{};
  inline static std::atomic<std::size_t> disorders_{0};
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
  static constexpr std::uint32_t redistributed_at_a_time = 2;  // so that it is interrupted
  // All threads share them, so that each use takes the lock.
  static constexpr std::size_t own_shards = 0;
  static constexpr std::size_t shared_shards = 16;

  static std::size_t thread_number() noexcept { return detail::thread_numbers::of_this_thread(); }
};

}  // namespace rondo::test
