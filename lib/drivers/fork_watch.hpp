// For what has threads: fork() leaves them behind, in the parent.
#pragma once

namespace rondo::detail {

/// Tells when this process is a child made by fork(). (Where there is no fork() it never does.)
class fork_watch {
 public:
  /// left_behind(who) is called in the child before fork() returns there. The calling thread is the only one
  /// then: what others were in the midst of stays half done, and what they had locked stays locked.
  /// Throws std::bad_alloc.
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

}  // namespace rondo::detail
