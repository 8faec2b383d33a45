// A scheduler with its own driver thread.
#pragma once

#include <memory>

#include <rondo/scheduler.hpp>

namespace rondo {

namespace detail {
class thread_core;
}

/// A scheduler in real time, driven by its own thread.
///
///     rondo::timer timer;
///     timer.schedule_after(50ms, [] { std::puts("hello"); });
///
/// The thread sleeps until the earliest timer is due. It also wakes when an earlier timer is scheduled, but not for a
/// later one, and it never wakes periodically. After the earliest timer was cancelled or postponed, it may wake once at
/// the old time. On Linux it sets its timer slack to the minimum, so that it wakes on time.
///
/// Signals (POSIX): the thread blocks all signals except the synchronous ones (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP
/// and SIGSYS) from its first instruction. Your threads receive the others, even if you install a handler or call
/// sigwait() after creating the timer. The signal mask of the thread that creates the timer does not change. For tasks
/// that run on the driver this means:
/// - A child process forked there, and a thread started there, inherit the mask, and exec keeps it. Unblock the signals
///   that they need: in the child before exec, or with POSIX_SPAWN_SETSIGMASK for posix_spawn(); system() offers no way
///   to do so.
/// - raise() signals the calling thread, so the signal stays pending: use kill(getpid(), …) instead.
///
/// fork() leaves the driver thread in the parent. In the child, a timer of the parent is a dead copy: scheduling throws
/// stopped_error, its ids are `gone`, nothing is pending, stop() returns nothing, and its destructor neither waits nor
/// destroys any callable. Create the child's own timers in the child. (A polled_timer or manual_timer can be used in
/// the child, as its own, if no other thread was inside one of its calls during the fork; under the same condition a
/// timer_scope and keyed_timers can be destroyed there. A task that forks must not return in the child: it must call
/// exec or _exit.) A handler that was given to pthread_atfork() before the process created its first timer or polled_timer
/// must not create or destroy one: it would wait for ever.
class RONDO_EXPORT timer final : public scheduler {
 public:
  /// Starts the thread. Throws std::invalid_argument as documented for options, and std::system_error if the thread
  /// cannot be started.
  explicit timer(options = {});
  /// Stops, joins the thread, and destroys what has not fired. Called by a task on that thread it does not join: the
  /// thread then ends by itself, and touches only state that it shares.
  ~timer() override;

 private:
  explicit timer(const std::shared_ptr<detail::thread_core>&);
};

}  // namespace rondo
