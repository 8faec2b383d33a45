// The scheduler with a driver thread of its own.
#pragma once

#include <memory>

#include <rondo/scheduler.hpp>

namespace rondo {

namespace detail {
class thread_core;
}

/// A scheduler driven by its own thread, in real time.
///
///     rondo::timer timer;
///     timer.schedule_after(50ms, [] { std::puts("hello"); });
///
/// The thread sleeps until the earliest timer is due and for nothing else: it does not wake while nothing is
/// due, nor when a later timer is added; it does when an earlier one is, and it may once, at the old time,
/// after the earliest was cancelled or postponed. On Linux it sets its timer slack to the minimum, so that it
/// wakes on time.
///
/// Where there are POSIX signals, the thread blocks all but the synchronous ones (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
/// SIGTRAP and SIGSYS) from its first instruction on: the others are taken by your threads, also if you install
/// a handler or call sigwait() after making the timer. The mask of the thread that makes the timer is the same
/// afterwards. For tasks that run on the driver this means:
/// - A child forked there, and a thread started there, inherit the mask, and exec keeps it. Unblock the signals that
///   they want: in the child before exec, with POSIX_SPAWN_SETSIGMASK for posix_spawn(). system() has no way to.
/// - raise() signals the calling thread, so the signal stays pending: use kill(getpid(), …).
///
/// fork() leaves the driver thread in the parent. In the child a timer of the parent is a dead copy: to schedule
/// is refused with stopped_error, its ids are `gone`, nothing is pending, stop() returns nothing, and it can be
/// destroyed, which waits for nothing and destroys none of the callables. The child's own timers are to be made
/// there. (A polled_timer or manual_timer lives on in the child, as its own, if no other thread was in a call
/// of it; a timer_scope and keyed_timers can be destroyed there on the same condition. A task that forks does
/// not return in the child: it is to exec or _exit.)
class RONDO_EXPORT timer final : public scheduler {
 public:
  /// Starts the thread. std::invalid_argument as options says; std::system_error if there can be no thread.
  explicit timer(options = {});
  /// Stops, joins the thread, and destroys what was not fired. From inside a task on that very thread it does
  /// not join: the thread then ends by itself and touches only what it shares.
  ~timer() override;

 private:
  explicit timer(const std::shared_ptr<detail::thread_core>&);
};

}  // namespace rondo
