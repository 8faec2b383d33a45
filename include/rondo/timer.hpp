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
/// A child made by fork() has no driver thread: make its timers there.
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
