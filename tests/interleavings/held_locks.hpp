// Which locks of the library the calling thread holds.
#pragma once

#include <cstddef>

namespace rondo::test {

/// In the order in which they may be nested: the last three only inside any of the others. A thread may hold one lock of
/// a rank at a time, or two shards (of a timer and of the one that replaces it), in the order of their addresses. (`keys` is
/// the lock of keyed timers.)
enum class lock_rank : std::size_t { keys, waiting, shard, table, list };

/// For the printout of a schedule.
constexpr const char* name_of(lock_rank rank) noexcept {
  constexpr const char* names[]{"keys", "waiting", "shard", "table", "list"};
  return names[static_cast<std::size_t>(rank)];
}

/// The locks that this thread holds, and the mistakes of all threads so far.
class held_locks {
 public:
  static std::size_t count();

  static void add(lock_rank rank, const void* lock);
  static void remove(const void* lock);

  /// How often a lock was taken inside another one in which it must not be nested.
  static std::size_t disorders();
  static std::size_t taken(lock_rank rank);
};

}  // namespace rondo::test
