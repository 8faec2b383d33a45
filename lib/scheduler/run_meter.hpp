// What is measured of each run.
#pragma once

#include <stdexcept>
#include <string>

#include <rondo/time.hpp>

#include "scheduler/histogram_recorder.hpp"

namespace rondo::detail {

/// How late runs begin and how long they take. The driver alone records, until the first run goes to an executor.
template <class Sync>
class run_meter {
 public:
  /// Negative: std::invalid_argument.
  explicit run_meter(duration slow_after) : slow_after_(slow_after) {
    if (slow_after < duration::zero())
      throw std::invalid_argument("rondo: slow_after must not be negative, as " +
                                  std::to_string(slow_after.count()) + " ns is");
  }

  /// The driver is about to hand a run over: what records from now on may be several threads.
  void share() noexcept {
    if (!is_shared_) is_shared_ = true;
  }

  // Legal for the driver, and for whoever runs what was handed over.
  void begins(duration lateness) noexcept { record(lateness_, lateness); }
  /// Returns whether it was slow.
  bool ends(duration run_time) noexcept {
    record(run_time_, run_time);
    return run_time > slow_after_;
  }

  // Legal from any thread.

  histogram lateness() const { return lateness_.snapshot(); }
  histogram run_time() const { return run_time_.snapshot(); }

 private:
  void record(histogram_recorder<Sync>& into, duration d) noexcept {
    if (is_shared_)
      into.record(d);
    else
      into.record_alone(d);
  }

  const duration slow_after_;
  // Written once, by the driver, before there is another thread that reads it.
  bool is_shared_ = false;
  histogram_recorder<Sync> lateness_;
  histogram_recorder<Sync> run_time_;
};

}  // namespace rondo::detail
