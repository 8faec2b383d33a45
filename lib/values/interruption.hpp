// Which runs of a task are in progress, and asking them to stop.
#pragma once

#include <rondo/detail/interruption.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// The runs in progress of a task that can be interrupted. It outlives the task as long as somebody is about to interrupt
/// them. All members may be called from any thread.
class interruption {
 public:
  interruption() noexcept;
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;

  /// Requests the stop of all runs in progress, and of those that begin later. Runs their stop callbacks, so the caller
  /// must not hold a lock. For a run that another thread is asking, it does not wait.
  void request_stop() noexcept;

  /// Whether there are any in this process. If not, nobody need look for them. Counts those that
  /// were made before anything with which the caller has synchronised.
  static bool any() noexcept;

 private:
#ifdef __cpp_lib_jthread
  friend class interruptible_run;

  void add(interruptible_run&) noexcept;
  void remove(interruptible_run&) noexcept;

  sync::list_mutex mutex_;
  bool requested_ = false;
  interruptible_run* first_ = nullptr;
#endif
};

}  // namespace rondo::detail
