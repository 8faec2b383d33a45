// Whether the memory that the process holds, looked at whenever all is at rest, stays what it has become.
#pragma once

#include "invariants.hpp"
#include "process.hpp"

namespace soak {

class memory {
 public:
  /// `share`: of the time that has passed, 0 … 1.
  void look(double share) {
    last_ = resident_memory();
    if (share <= 0.2 || early_ == 0) early_ = last_;
  }

  /// It may grow by a tenth and 8 MiB: buckets keep the room that they once needed, heaps what was freed in
  /// them. (Sanitizers keep all that was freed.)
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
