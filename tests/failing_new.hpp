// Replaces this program's operator new with one that counts, and that can be made to fail.
#pragma once

#include <atomic>
#include <cstddef>

namespace rondo::test {

/// During its lifetime, `count` allocations of this thread fail, after the first `after` have succeeded.
class failing_new {
 public:
  static constexpr std::size_t all = static_cast<std::size_t>(-1);
  /// False if the toolchain does not allow operator new to be replaced.
  static const bool available;

  explicit failing_new(std::size_t after = 0, std::size_t count = all);
  ~failing_new();
  failing_new(const failing_new&) = delete;
  failing_new& operator=(const failing_new&) = delete;

  /// Whether an allocation has failed so far.
  bool struck() const;
};

/// While one lives, a block of this size that is released is the next one that is handed out, to whichever thread asks for
/// one. (Others may or may not be.) Does nothing if failing_new is not available.
class reusing_blocks {
 public:
  explicit reusing_blocks(std::size_t size) noexcept;
  ~reusing_blocks();
  reusing_blocks(const reusing_blocks&) = delete;
  reusing_blocks& operator=(const reusing_blocks&) = delete;
};

/// Called after each allocation and before each release, if it is not null and failing_new is available.
using block_watcher = void (*)(const void* begin, std::size_t bytes, bool released) noexcept;
inline constinit std::atomic<block_watcher> watch_blocks{nullptr};

/// Of all threads: the number of allocations so far, and the bytes allocated at the moment, as requested. Both are
/// always 0 if failing_new is not available.
std::size_t allocations() noexcept;
std::ptrdiff_t bytes_held() noexcept;

/// What the calling thread has allocated less what it has released, in bytes, whatever other threads do; 0 as above.
std::ptrdiff_t bytes_held_by_this_thread() noexcept;

}  // namespace rondo::test
