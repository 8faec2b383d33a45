// Which runs of a task are in progress, and asking them to stop.
#pragma once

#include <cstdint>

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

  /// Which of the timers that the task serves, one after another, it serves now. Precondition: the lock of the timer's shard
  /// is held, and a run is in progress.
  std::uint64_t timer() const noexcept { return timer_; }
  /// Requests the stop of all runs of that timer: of those in progress, and of those that begin later. Runs their stop
  /// callbacks, so the caller must not hold a lock. For a run that another thread is asking, it does not wait.
  void request_stop(std::uint64_t timer) noexcept;
  /// The task no longer serves that timer, which has no run in progress: its later runs are asked only if they are those of
  /// another timer. Precondition: the lock of the shard was held since the last run.
  void leave_timer() noexcept;

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
  std::uint64_t timer_ = 0;
};

}  // namespace rondo::detail
