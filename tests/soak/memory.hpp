// Checks that the memory of the process, measured whenever everything is quiescent, stops growing.
#pragma once

#include "invariants.hpp"
#include "process.hpp"

namespace soak {

class memory {
 public:
  /// `share` is the share of the time that has passed, 0 … 1.
  void look(double share) {
    last_ = resident_memory();
    if (share <= 0.2 || early_ == 0) early_ = last_;
  }

  /// Memory may grow by a tenth and 8 MiB, because buckets keep the capacity that they once needed, and heaps keep
  /// freed memory. (Sanitizers keep all freed memory.)
  void check() const {
    if (!is_sanitized)
      always().check(invariant::memory, last_ <= most(), early_, "MiB at 20 %,", last_, "MiB at the end");
  }

  double early() const { return early_; }
  double last() const { return last_; }
  double most() const { return early_ * 1.1 + 8; }

 private:
  double early_ = 0, last_ = 0;
};

}  // namespace soak
