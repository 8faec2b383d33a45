// Timers that end together: the timers of an object, a connection, a request.
#pragma once

#include <cstddef>

#include <rondo/export.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/scheduling_calls.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

/// Owns the timers scheduled through it: its destructor cancels them and waits for runs in progress. As the last member
/// of an object that its tasks use, a scope guarantees that none of its tasks runs after the object is destroyed.
///
///     class connection {
///       …
///       rondo::timer_scope timers_{scheduler};   // timers_.schedule_after(30s, [this] { close(); });
///     };
///
/// - Threads: all members may be called from any thread and from inside its tasks, which may also destroy it.
/// - The calls return and throw what the scheduler's calls do. For an id that was not scheduled through this scope they
///   return `gone` or false.
/// - It forgets timers that have ended. A timer that stop() returned belongs to the caller of stop(): it may be run by
///   hand, even after the scope is destroyed.
/// - Cost: the scheduler's call plus two short locks to set a timer and one to end it. A timer takes 24 bytes more than without a scope; they are used again
///   when it has ended, and kept until the scope is destroyed.
/// - It may outlive its scheduler. It treats the scheduler's destruction as a stop().
class RONDO_EXPORT timer_scope : public scheduling_calls {
 public:
  /// Creates a scope without timers. Throws std::bad_alloc.
  explicit timer_scope(scheduler& s);
  /// Calls close(). Tasks that may run meanwhile must use a reference to the scope: see ~scheduler().
  ~timer_scope();
  timer_scope(const timer_scope&) = delete;
  timer_scope& operator=(const timer_scope&) = delete;

  ///@{
  /// As the scheduler's call of the same name. Returns `gone` or false for an id that was not scheduled through this
  /// scope.
  cancel_result cancel(timer_id id);
  cancel_result cancel_and_wait(timer_id id);
  bool reschedule_after(timer_id id, any_duration delay);
  bool reschedule_at(timer_id id, any_time_point due);
  bool pending(timer_id id) const;
  ///@}

  /// The number of its pending timers. O(n): visits each timer.
  std::size_t pending() const;

  /// Cancels all its timers; runs in progress continue, and are asked to stop as cancel() does. A timer that another
  /// thread schedules during the call may remain.
  void cancel_all();

  /// Cancels all its timers, asks the runs in progress to stop as cancel() does, and returns when none of their runs is in
  /// progress and their callables are destroyed; it does not wait for those on its own stack. Once close() has begun,
  /// scheduling through the scope throws stopped_error, so a task in progress cannot leave a timer behind.
  ///
  /// It deadlocks if two tasks of the scope, on a pool, call it at the same time, because each waits for the other, or if it is
  /// called while holding a mutex that a task locks.
  void close();
};

}  // namespace rondo
