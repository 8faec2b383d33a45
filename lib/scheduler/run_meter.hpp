// What is measured of each run.
#pragma once

#include <stdexcept>
#include <string>

#include <rondo/time.hpp>

#include "scheduler/histogram_recorder.hpp"

namespace rondo::detail {

/// How late runs begin and how long they take. All members are legal from any thread.
template <class Sync>
class run_meter {
 public:
  /// Negative: std::invalid_argument.
  explicit run_meter(duration slow_after) : slow_after_(slow_after) {
    if (slow_after < duration::zero())
      throw std::invalid_argument("rondo: slow_after must not be negative, as " +
                                  std::to_string(slow_after.count()) + " ns is");
  }

  void begins(duration lateness) noexcept { lateness_.record(lateness); }
  /// Returns whether it was slow.
  bool ends(duration run_time) noexcept {
    run_time_.record(run_time);
    return run_time > slow_after_;
  }

  histogram lateness() const { return lateness_.snapshot(); }
  histogram run_time() const { return run_time_.snapshot(); }

 private:
  const duration slow_after_;
  histogram_recorder<Sync> lateness_;
  histogram_recorder<Sync> run_time_;
};

}  // namespace rondo::detail
