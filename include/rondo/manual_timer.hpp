// A scheduler on virtual time.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {
class manual_core;
}

/// A scheduler whose time passes only when its members make it pass: for tests, simulations, and programs that count
/// time in turns. Everything else works as with `timer`, to the tick.
///
///     rondo::manual_timer time;
///     time.schedule_after(1h, [] { … });
///     time.advance(1h);                     // runs it, now
///
/// advance() and advance_to_next() throw std::logic_error from inside and, with options::propagate_exceptions, what a
/// task throws. Time then stays where that task ran, and tasks that were due there and have not run come first in the
/// next call. Calls from several threads wait for each other.
class RONDO_EXPORT manual_timer final : public scheduler {
 public:
  ///@{
  /// Time begins at `start`, or at time_point{}. Throws std::invalid_argument as documented for options.
  explicit manual_timer(options o = {}) : manual_timer(std::move(o), time_point{}) {}
  manual_timer(options o, any_time_point start);
  ///@}
  /// As the destructor of scheduler.
  ~manual_timer() override;

  /// Moves time to now() + d, with now() read before the first task runs (if another thread's call is in progress,
  /// after that call has ended). On the way it stops at each due tick and, with now() at that tick, runs what is due
  /// there (or submits it to the executor). Returns the number of tasks that it ran or submitted. Tasks that become due
  /// before the end because of other tasks run too, in a later pass. Throws std::invalid_argument if `d` is negative,
  /// and std::logic_error if a chain of zero delays continues for a million passes at the same time.
  std::size_t advance(any_duration d);

  /// Moves time to the next due tick, unless that tick is in the past, and runs what is due there. Returns the number
  /// of tasks that it ran or submitted: 0 if nothing is going to fire, or if everything due was dropped, as a periodic
  /// run is while an executor still has the previous one.
  std::size_t advance_to_next();

  /// Lets time pass without running anything, as a stalled driver or a suspended machine does, or, when called inside a
  /// task, a slow task. What becomes due runs late, in the next advance(), including advance(0s). Throws
  /// std::invalid_argument if `d` is negative.
  void elapse(any_duration d);

 private:
  std::shared_ptr<detail::manual_core> core_;
  explicit manual_timer(std::shared_ptr<detail::manual_core>);
};

}  // namespace rondo
