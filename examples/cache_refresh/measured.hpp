// What the threads of a run measure, in addition to what the cache and the timer count.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/histogram.hpp"

namespace cache_refresh {

using counter = std::atomic<std::uint64_t>;

struct measured {
  // Readers.
  common::histogram reads;  // how long each read waited for its answer
  common::histogram ages;   // of the values served, since the origin was asked
  counter unserved{0};      // reads without a value
  counter stale{0};         // reads with a stale value
  counter waited{0};        // reads that were not answered at once

  // By the ledger, where this program makes the changes.
  common::histogram behind;  // of each value served, the time since it was superseded; 0 if it was current
  counter current{0};

  common::histogram loads;  // how long the origin took to answer or fail

  counter edits{0};
  counter failed_edits{0};
};

}  // namespace cache_refresh
