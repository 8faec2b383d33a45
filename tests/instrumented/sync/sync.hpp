// As lib/sync/sync.hpp, but each use of a lock, an atomic or a condition is a step of the explorer, and the locks that a
// thread holds are known: see interleavings/explored.hpp. The suite `interleavings` compiles the library's sources with
// this header, because its folder comes first on the include path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interleavings/explored.hpp"

namespace rondo::detail::sync {

using shard_mutex = test::ranked_mutex<test::lock_rank::shard>;
using table_mutex = test::ranked_mutex<test::lock_rank::table>;
using list_mutex = test::ranked_mutex<test::lock_rank::list>;

using waiting_mutex = test::ranked_mutex<test::lock_rank::waiting>;
using condition = test::explored_condition;

template <class T>
using atomic = test::explored_atomic<T>;

inline constexpr std::uint32_t redistributed_at_a_time = 1;  // so that it is always interrupted
inline constexpr std::size_t own_shards = 2;
inline constexpr std::size_t shared_shards = 1;
inline constexpr bool can_check = false;  // the checks would be steps; the tests check more

/// Whether the first two threads of a scenario have a shard each. Otherwise all have this number, by which they share a
/// shard, so that each use is a step.
inline bool threads_have_own_shards = false;
inline std::size_t number_of_all = own_shards;

/// While one lives, they have.
struct with_own_shards {
  with_own_shards() { threads_have_own_shards = true; }
  ~with_own_shards() { threads_have_own_shards = false; }
  with_own_shards(const with_own_shards&) = delete;
  with_own_shards& operator=(const with_own_shards&) = delete;
};

inline std::size_t thread_number() noexcept {
  return threads_have_own_shards ? test::this_thread() : number_of_all;
}
inline std::size_t known_thread_number() noexcept { return thread_number(); }

}  // namespace rondo::detail::sync
