// Which calls of Rondo are on the calling thread's stack.
#pragma once

#include <cstddef>
#include <memory>

namespace rondo::detail {

/// Marks a place on the calling thread's stack during its lifetime. Each thread has a list of its markers, so every
/// call can tell whether it comes from inside a task, and of which timer.
class stack_marker {
 public:
  enum class kind {
    in_flight,    // a pass of the driver, or a job on an executor's thread: see in_flight
    user_code,    // a task, the destruction of its callable after a run, the executor
    handler,      // a handler that the driver notifies: `record` identifies the handler, not a timer
    destruction,  // of the callable of a timer that was cancelled
    request,      // the stop callbacks of a timer's runs: `record` identifies the request, not a timer
  };

  /// A record's address suffices to identify a timer, except in a request: no other user code runs below a marker after the
  /// record was freed.
  stack_marker(kind k, const void* core, const void* record = nullptr) noexcept;
  ~stack_marker();
  stack_marker(const stack_marker&) = delete;
  stack_marker& operator=(const stack_marker&) = delete;

  /// Whether user code of that scheduler is on this thread's stack.
  static bool inside(const void* core) noexcept;
  /// Whether that handler is on this thread's stack.
  static bool inside(const void* core, const void* record) noexcept;
  /// Whether a run, the destruction of a callable, or a request is on this thread's stack for which is(kind, record)
  /// returns true.
  template <class Is>
  static bool inside_any(const void* core, Is&& is) {
    for (const stack_marker* m = innermost(); m != nullptr; m = m->outer_)
      if (m->core_ == core && m->record_ != nullptr && m->kind_ != kind::handler && is(m->kind_, m->record_))
        return true;
    return false;
  }
  /// How many of that scheduler's passes and jobs are on this thread's stack.
  static std::size_t in_flight(const void* core) noexcept;
  /// Keeps the scheduler's core alive as long as the outermost of its markers on this thread, if there is one: user
  /// code may destroy the scheduler, and the calls that it was called from go on.
  static void keep(const void* core, std::shared_ptr<void> alive) noexcept;

 private:
  static stack_marker* innermost() noexcept;

  const kind kind_;
  const void* const core_;
  const void* const record_;
  stack_marker* const outer_;
  std::shared_ptr<void> kept_;
};

}  // namespace rondo::detail
