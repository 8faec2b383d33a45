// What of Rondo lies on the calling thread's stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rondo::detail {

/// Entered in a list of the thread for as long as it lives; so every call can tell whether it comes from
/// inside a task, and of which.
class frame {
 public:
  enum class kind {
    activity,     // counted in the scheduler's activities: a pass of the driver, or a job on an executor's
                  // thread
    user_code,    // a task, the destruction of its callable after a run, a handler, the executor
    destruction,  // of the callable of a timer that was cancelled
  };

  frame(kind k, const void* core, const void* record = nullptr, std::uint64_t generation = 0) noexcept;
  ~frame();
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;

  /// Whether this thread's stack holds user code of that scheduler.
  static bool inside(const void* core) noexcept;
  /// Whether it holds a run of that timer, or the destruction of its callable.
  static bool inside(const void* core, const void* record, std::uint64_t generation) noexcept;
  /// How many of that scheduler's activities lie on it.
  static std::size_t activities(const void* core) noexcept;
  /// Lets the scheduler's core live as long as the outermost of its frames on this thread, if there is one:
  /// user code in these may destroy the scheduler, and the calls that they belong to go on.
  static void keep(const void* core, std::shared_ptr<void> alive) noexcept;

 private:
  const kind kind_;
  const void* const core_;
  const void* const record_;
  const std::uint64_t generation_;
  frame* const outer_;
  std::shared_ptr<void> kept_;
};

}  // namespace rondo::detail
