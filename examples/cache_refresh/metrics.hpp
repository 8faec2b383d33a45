// The counters and histograms of all threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/histogram.hpp"

namespace cache_refresh {

using counter = std::atomic<std::uint64_t>;

struct metrics {
  // Readers.
  counter reads{0};
  counter hits{0};           // found a value
  counter stale_hits{0};     // of these, one past its time to live
  counter current{0};        // values served, also after a miss, that were the origin's newest
  common::histogram behind;  // of each value served: the time since it was superseded, 0 if it was current

  // The refresher.
  counter loads{0};  // that succeeded
  counter failed_loads{0};
  counter loads_at_once{0};    // a load began while another of the same key was in progress: must stay 0
  common::histogram lateness;  // from a refresh's deadline until it started on the pool

  // The writer.
  counter edits{0};
  counter failed_edits{0};
};

}  // namespace cache_refresh
