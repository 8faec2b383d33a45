// A lock for sections of a few instructions.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace rondo::detail {

/// How a thread passes the time until a short lock is free. If the holder is running, it is about to release the lock.
/// If it is not, because there are more threads than processors, it needs a processor first.
class patience {
 public:
  template <class Atomic>
  void wait(const Atomic&) noexcept {
    if (attempts_ < spins) {
      ++attempts_;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    } else if (attempts_ < spins + yields) {
      ++attempts_;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(nap);
    }
  }

 private:
  static constexpr int spins = 100;  // about as long as the sections take
  static constexpr int yields = 10;
  static constexpr std::chrono::microseconds nap{50};
  int attempts_ = 0;
};

/// One byte. unlock() wakes nobody: waiting threads check again by themselves, eventually after short naps. So unlock()
/// is a plain store. A lock that knows its sleepers needs an atomic exchange to find them, which is as expensive as
/// lock().
///
/// Memory order: lock() acquires what the preceding unlock() released. Nothing else needs an order: a waiting thread
/// leaves no note that the holder would have to see.
template <class Atomic, class Patience>
class spinning_lock {
 public:
  spinning_lock() noexcept = default;
  spinning_lock(const spinning_lock&) = delete;
  spinning_lock& operator=(const spinning_lock&) = delete;

  void lock() noexcept {
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      lock_slowly();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }
  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }

 private:
  // Not inlined, because lock() is inlined wherever a lock is taken.
  [[gnu::noinline]] void lock_slowly() noexcept {
    Patience waiting;
    do waiting.wait(held_);
    while (held_.load(std::memory_order_relaxed) || !try_lock());
  }

  Atomic held_{false};  // memory that reads as zero is an unlocked lock
};

using short_lock = spinning_lock<std::atomic<bool>, patience>;

}  // namespace rondo::detail
