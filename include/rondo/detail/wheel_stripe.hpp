// The parts of the wheel: buckets, the stripes that guard them, and the policy that defines their locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <rondo/detail/chain.hpp>
#include <rondo/detail/chunk_pool.hpp>
#include <rondo/detail/far_store.hpp>
#include <rondo/detail/ticks.hpp>

namespace rondo::detail {

/// The policy of a wheel that only one thread uses: it has no locks.
struct unlocked {
  struct mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
  };
  using stripe_mutex = mutex;
  using queue_mutex = mutex;
  static constexpr std::size_t stripes = 1;
  // This takes about 0.1 ms, because most nodes miss the cache.
  static constexpr std::uint32_t redistributed_at_a_time = 4096;
};

template <class Sync>
inline constexpr bool is_locked = !std::is_empty_v<typename Sync::stripe_mutex>;

/// Holds the nodes of one tick of the window. It has chunks if and only if it has an entry in the delay queue.
// With locks, each bucket has a cache line of its own, because threads contend for it. Without locks, closer is better.
template <class Sync>
struct alignas(is_locked<Sync> ? 64 : alignof(chain)) wheel_bucket {
  chain nodes;
  tick_number due = 0;
};

/// Holds the ticks with the same low bits, except for their buckets, which lie in one array for all stripes.
template <class Sync>
struct alignas(is_locked<Sync> ? 64 : alignof(std::max_align_t)) wheel_stripe {
  [[no_unique_address]] mutable typename Sync::stripe_mutex mutex;
  bool queued = false;           // the far stores have an entry in the delay queue
  bool key_is_exact = false;     // a node is due at its key
  tick_number key = 0;           // of that entry
  tick_number window_begin = 0;  // no node in a bucket is due before it
  tick_number window_last = 0;   // precedes the tick of the last bucket while redistribution is in progress
  tick_number far_after = 0;     // every later tick has a list in `future`, and is not before the key
  chunk_pool pool;
  far_store future{pool};
  far_store past{pool};
};

/// Locks two stripes, or only one if both are the same.
template <class Sync>
class stripe_pair_lock {
 public:
  using stripe = wheel_stripe<Sync>;

  stripe_pair_lock(stripe& a, stripe& b) noexcept : first_(&a < &b ? a : b), second_(&a < &b ? b : a) {
    first_.mutex.lock();
    if (&first_ != &second_) second_.mutex.lock();
  }
  ~stripe_pair_lock() {
    if (&first_ != &second_) second_.mutex.unlock();
    first_.mutex.unlock();
  }
  stripe_pair_lock(const stripe_pair_lock&) = delete;
  stripe_pair_lock& operator=(const stripe_pair_lock&) = delete;

 private:
  stripe& first_;  // in the order of their addresses, so that two threads never wait for each other
  stripe& second_;
};

}  // namespace rondo::detail
