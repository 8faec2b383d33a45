// All numbers at one moment, as the display and the summary show them.
#pragma once

#include <cstdint>

#include <rondo/statistics.hpp>
#include <rondo/time.hpp>

#include "cache.hpp"
#include "metrics.hpp"
#include "refresher.hpp"

namespace cache_refresh {

struct quantiles {
  rondo::duration p50{};
  rondo::duration p99{};
  rondo::duration max{};
};

struct snapshot {
  rondo::duration elapsed{};
  key_counts keys;

  std::uint64_t reads = 0;
  std::uint64_t hits = 0;
  std::uint64_t stale_hits = 0;
  std::uint64_t served = 0;  // hits, and misses that were served after a short wait
  std::uint64_t current = 0;
  quantiles behind;

  std::uint64_t loads = 0;
  std::uint64_t failed_loads = 0;
  std::uint64_t loads_at_once = 0;
  quantiles lateness;

  std::uint64_t edits = 0;
  std::uint64_t failed_edits = 0;

  rondo::statistics timer;
};

snapshot take_snapshot(rondo::duration elapsed, const cache&, const metrics&, const refresher&);

}  // namespace cache_refresh
