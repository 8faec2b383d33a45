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
/// time in turns. Everything else is as with `timer`, to the tick.
///
///     rondo::manual_timer time;
///     time.schedule_after(1h, [] { … });
///     time.advance(1h);                     // runs it, now
///
/// advance() and advance_to_next() throw std::logic_error from inside and, with options::propagate_exceptions, what a
/// task throws: time then stays where that was, and what was due there and has not run comes first in the next call.
/// Calls from several threads wait for each other.
class RONDO_EXPORT manual_timer final : public scheduler {
 public:
  ///@{
  /// Its time begins at `start`, or at time_point{}. Throws std::invalid_argument as options says.
  explicit manual_timer(options o = {}) : manual_timer(std::move(o), time_point{}) {}
  manual_timer(options o, any_time_point start);
  ///@}
  /// As that of scheduler.
  ~manual_timer() override;

  /// Moves time to now() + d as of the call. On the way it stops at each due tick and runs what is due there (or hands
  /// it to the executor), with now() at that tick; returns how many tasks it ran or submitted. What a task makes
  /// due before the end runs too, in a later pass. Negative: std::invalid_argument. A chain of zero delays that
  /// continues for a million passes at one instant: std::logic_error.
  std::size_t advance(any_duration d);

  /// Moves time to the next due tick, unless that is past, and runs what is due there; returns how many tasks it ran or
  /// submitted. 0 if nothing is going to fire, or if everything due was dropped, as a periodic run is while an
  /// executor still has the one before.
  std::size_t advance_to_next();

  /// Lets time pass without running anything, as a stalled driver or a suspended machine does or, called inside a
  /// task, a slow task. What becomes due runs late, in the next advance(), advance(0s) included. Negative:
  /// std::invalid_argument.
  void elapse(any_duration d);

 private:
  std::shared_ptr<detail::manual_core> core_;
  explicit manual_timer(std::shared_ptr<detail::manual_core>);
};

}  // namespace rondo
