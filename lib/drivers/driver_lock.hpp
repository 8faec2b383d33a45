// Makes the threads that drive a scheduler take turns.
#pragma once

#include <condition_variable>
#include <mutex>

namespace rondo::detail {

/// Held by the one call that drives, even while it runs tasks. No mutex is locked during that time.
class driver_lock {
 public:
  void lock() {
    std::unique_lock hold(mutex_);
    released_.wait(hold, [this] { return !held_; });
    held_ = true;
  }

  void unlock() noexcept {
    const std::lock_guard hold(mutex_);
    held_ = false;
    released_.notify_all();  // notify_one() would do, but glibc before 2.41 can lose it (its bug 25847)
  }

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  bool held_ = false;
};

}  // namespace rondo::detail
