// Notices fork(), which leaves all threads but one in the parent.
#pragma once

#include "platform.hpp"

#if RONDO_HAS_FORK
#include <pthread.h>

#include <mutex>
#include <new>
#endif

namespace rondo::detail {

#if RONDO_HAS_FORK

/// Calls a function in each child made by fork().
class fork_watch {
 public:
  /// Calls left_behind(who) in the child before fork() returns there. The calling thread is then the only one. What
  /// other threads were doing stays half done, and what they had locked stays locked. Throws std::bad_alloc.
  fork_watch(void (*left_behind)(void* who) noexcept, void* who) : left_behind_(left_behind), who_(who) {
    static const bool watching = pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, &tell_all) == 0;
    if (!watching) throw std::bad_alloc();
    const std::lock_guard hold(mutex);
    after_ = first;
    if (after_ != nullptr) after_->before_ = this;
    first = this;
  }
  ~fork_watch() {
    const std::lock_guard hold(mutex);
    (before_ != nullptr ? before_->after_ : first) = after_;
    if (after_ != nullptr) after_->before_ = before_;
  }
  fork_watch(const fork_watch&) = delete;
  fork_watch& operator=(const fork_watch&) = delete;

 private:
  static void tell_all() noexcept {
    for (const fork_watch* w = first; w != nullptr; w = w->after_) w->left_behind_(w->who_);
    mutex.unlock();
  }

  // All watches of this process. The mutex is held during fork(), so the list is consistent in the child. It is also held while
  // those handlers run that were registered before ours: they must not create or destroy a watch.
  static inline constinit std::mutex mutex;
  static inline constinit fork_watch* first = nullptr;

  void (*const left_behind_)(void* who) noexcept;
  void* const who_;
  fork_watch* before_ = nullptr;
  fork_watch* after_ = nullptr;
};

#else

/// This system has no fork(), so there is nothing to notice.
class fork_watch {
 public:
  fork_watch(void (*)(void* who) noexcept, void*) noexcept {}
  fork_watch(const fork_watch&) = delete;
  fork_watch& operator=(const fork_watch&) = delete;
};

#endif

}  // namespace rondo::detail
