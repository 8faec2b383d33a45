// What is measured about each run.
#pragma once

#include <stdexcept>
#include <string>

#include <rondo/time.hpp>

#include "scheduler/histogram_recorder.hpp"

namespace rondo::detail {

/// How late runs begin and how long they take. Only the driver records until the first run goes to an executor.
class run_meter {
 public:
  /// Throws std::invalid_argument if `slow_after` is negative.
  explicit run_meter(duration slow_after) : slow_after_(slow_after) {
    if (slow_after < duration::zero())
      throw std::invalid_argument("rondo: slow_after must not be negative, but is " +
                                  std::to_string(slow_after.count()) + " ns");
  }

  /// Called when the driver is about to hand a run over: from now on, several threads may record.
  void share() noexcept {
    if (!is_shared_) is_shared_ = true;
  }

  // These may be called by the driver, and by any thread that runs what was handed over.
  void begins(duration lateness) noexcept { record(lateness_, lateness); }
  /// Returns whether the run was slow.
  bool ends(duration run_time) noexcept {
    record(run_time_, run_time);
    return run_time > slow_after_;
  }

  // These may be called from any thread.

  histogram lateness() const { return lateness_.snapshot(); }
  histogram run_time() const { return run_time_.snapshot(); }

 private:
  void record(histogram_recorder& into, duration d) noexcept {
    if (is_shared_)
      into.record(d);
    else
      into.record_alone(d);
  }

  const duration slow_after_;
  // Written once, by the driver, before any other thread reads it.
  bool is_shared_ = false;
  histogram_recorder lateness_;
  histogram_recorder run_time_;
};

}  // namespace rondo::detail
