// A lock for sections of a few instructions.
#pragma once

#include <atomic>

namespace rondo::detail {

/// Four bytes. Spins briefly, because the holder is about to release it, then sleeps until it is released. (The
/// state is an int: atomic waits on other widths use a table that the whole process shares.)
template <class Atomic, int Spins>
class spinning_lock {
 public:
  spinning_lock() noexcept = default;
  spinning_lock(const spinning_lock&) = delete;
  spinning_lock& operator=(const spinning_lock&) = delete;

  void lock() noexcept {
    int expected = free;
    if (!state_.compare_exchange_strong(expected, held, std::memory_order_acquire, std::memory_order_relaxed))
      lock_slowly();
  }

  void unlock() noexcept {
    if (state_.exchange(free, std::memory_order_release) == contended) wake_one();
  }

 private:
  static constexpr int free = 0;
  static constexpr int held = 1;
  static constexpr int contended = 2;  // held, and a thread may be asleep

  // The slow paths are not inlined, because the fast ones are, wherever a lock is taken.
  [[gnu::noinline]] void wake_one() noexcept { state_.notify_one(); }

  [[gnu::noinline]] void lock_slowly() noexcept {
    for (int i = 0; i != Spins; ++i) {
      int expected = free;
      if (state_.load(std::memory_order_relaxed) == free &&
          state_.compare_exchange_weak(expected, held, std::memory_order_acquire, std::memory_order_relaxed))
        return;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
    while (state_.exchange(contended, std::memory_order_acquire) != free) state_.wait(contended);
  }

  Atomic state_{free};
};

/// Spins about as long as the sections that it guards take.
using short_lock = spinning_lock<std::atomic<int>, 100>;

}  // namespace rondo::detail
