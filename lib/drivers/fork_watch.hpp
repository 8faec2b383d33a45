// Notices fork(), which leaves all threads but one in the parent.
#pragma once

#include "platform.hpp"

namespace rondo::detail {

#if RONDO_HAS_FORK

/// Calls a function in each child made by fork().
class fork_watch {
 public:
  /// Calls left_behind(who) in the child before fork() returns there. The calling thread is then the only one. What
  /// other threads were doing stays half done, and what they had locked stays locked. Throws std::bad_alloc.
  fork_watch(void (*left_behind)(void* who) noexcept, void* who);
  ~fork_watch();
  fork_watch(const fork_watch&) = delete;
  fork_watch& operator=(const fork_watch&) = delete;

 private:
  struct list;

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
