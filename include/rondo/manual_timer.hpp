// The scheduler on virtual time.
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

/// A scheduler whose time passes when it is told to: for tests, simulations, and programs that count time in
/// turns. Everything else is as with `timer`, to the tick.
///
///     rondo::manual_timer time;
///     time.schedule_after(1h, [] { … });
///     time.advance(1h);                     // runs it, now
///
/// advance() and advance_to_next() from inside a task: std::logic_error. Calls from several threads wait for
/// each other.
class RONDO_EXPORT manual_timer final : public scheduler {
 public:
  ///@{
  /// Its time begins at `start`. std::invalid_argument as options says.
  explicit manual_timer(options o = {}) : manual_timer(std::move(o), time_point{}) {}
  manual_timer(options o, any_time_point start);
  ///@}
  /// As that of scheduler.
  ~manual_timer() override;

  /// Steps from due tick to due tick, running what is due (or handing it over, if there is an executor) with
  /// now() standing at that tick, up to now() + d as of the call, where it ends; returns how many it ran or
  /// handed over. What a task makes due before that end runs too, in a pass of its own. Negative:
  /// std::invalid_argument. A chain of zero delays that goes on for a million passes at one instant:
  /// std::logic_error.
  std::size_t advance(any_duration d);

  /// Moves to the next due tick, unless it is past, and runs all that is due then; returns how many it ran or
  /// handed over: 0 if there is none, or if all that was due is dropped, as a periodic run is whose previous
  /// one an executor still has.
  std::size_t advance_to_next();

  /// Lets time pass with nothing run, as a stalled driver, a suspended machine or, called inside a task, a
  /// slow task would. What fell due runs, late, at the next advance(), advance(0s) included. Negative:
  /// std::invalid_argument.
  void elapse(any_duration d);

 private:
  std::shared_ptr<detail::manual_core> core_;
  explicit manual_timer(std::shared_ptr<detail::manual_core>);
};

}  // namespace rondo
