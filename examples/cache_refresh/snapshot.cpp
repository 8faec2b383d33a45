#include "snapshot.hpp"

namespace cache_refresh {
namespace {

quantiles of(const common::histogram& all) { return {all.quantile(0.50), all.quantile(0.99), all.max()}; }

}  // namespace

snapshot take_snapshot(rondo::duration elapsed, const cache& cache, const metrics& counted,
                       const refresher& refresher) {
  snapshot now;
  now.elapsed = elapsed;
  now.keys = cache.count(rondo::scheduler::clock::now());
  now.reads = counted.reads;
  now.hits = counted.hits;
  now.stale_hits = counted.stale_hits;
  now.served = counted.behind.count();
  now.current = counted.current;
  now.behind = of(counted.behind);
  now.loads = counted.loads;
  now.failed_loads = counted.failed_loads;
  now.loads_at_once = counted.loads_at_once;
  now.lateness = of(counted.lateness);
  now.edits = counted.edits;
  now.failed_edits = counted.failed_edits;
  now.timer = refresher.timer_statistics();
  return now;
}

}  // namespace cache_refresh
