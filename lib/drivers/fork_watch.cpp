#include "drivers/fork_watch.hpp"

#include <pthread.h>

#include <mutex>
#include <new>

namespace rondo::detail {

/// All watches of this process. The mutex is held during fork(), so the list is consistent in the child.
struct fork_watch::list {
  static inline constinit std::mutex mutex;
  static inline constinit fork_watch* first = nullptr;

  static void lock() noexcept { mutex.lock(); }
  static void unlock() noexcept { mutex.unlock(); }
  static void tell_all() noexcept {
    for (const fork_watch* w = first; w != nullptr; w = w->after_) w->left_behind_(w->who_);
    mutex.unlock();
  }

  static void begin_to_watch() {
    static const bool watching = pthread_atfork(&lock, &unlock, &tell_all) == 0;
    if (!watching) throw std::bad_alloc();
  }
};

fork_watch::fork_watch(void (*left_behind)(void* who) noexcept, void* who)
    : left_behind_(left_behind), who_(who) {
  list::begin_to_watch();
  const std::lock_guard hold(list::mutex);
  after_ = list::first;
  if (after_ != nullptr) after_->before_ = this;
  list::first = this;
}

fork_watch::~fork_watch() {
  const std::lock_guard hold(list::mutex);
  (before_ != nullptr ? before_->after_ : list::first) = after_;
  if (after_ != nullptr) after_->before_ = before_;
}

}  // namespace rondo::detail
