// The locks, atomics and condition variables that threads share, and how many of each there are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "sync/short_lock.hpp"
#include "sync/thread_numbers.hpp"

/// Chosen when the library is built: tests/instrumented has another header of this name, with which one test program
/// compiles the same sources. Its locks and atomics yield to an explorer of interleavings at each step, and keep track
/// of which locks a thread holds.
namespace rondo::detail::sync {

using shard_mutex = short_lock;
using table_mutex = short_lock;
using list_mutex = short_lock;

using waiting_mutex = std::mutex;
using condition = std::condition_variable;

template <class T>
using atomic = std::atomic<T>;

/// Each of the first shards belongs to one thread.
inline constexpr std::size_t own_shards = thread_numbers::exclusive;
inline constexpr std::size_t shared_shards = 8;
// Takes about 0.1 ms, during which other threads wait for the shard's lock.
inline constexpr std::uint32_t redistributed_at_a_time = 4096;
// Checked builds verify the scheduler after each call.
inline constexpr bool can_check = true;

inline std::size_t thread_number() noexcept { return thread_numbers::of_this_thread(); }
inline std::size_t known_thread_number() noexcept { return thread_numbers::known(); }

}  // namespace rondo::detail::sync
