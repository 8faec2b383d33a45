#include "summary.hpp"

#include <fmt/core.h>

#include "common/text.hpp"

namespace cache_refresh {

namespace {

using common::percent;
using common::readable;

void compare_one(const record& truth, const served& held, comparison& result) {
  if (held.value == nullptr) {
    ++result.empty;
  } else if (held.value->version != truth.version) {
    ++result.older;
  } else if (held.value->value != truth.value) {
    ++result.wrong;
  } else {
    ++result.equal;
  }
}

}  // namespace

comparison compare(const std::vector<row>& rows, const cache& cache, const ledger& ledger,
                   origin_reader& origin) {
  comparison result;
  for (key_number key = 0; key < rows.size(); ++key) {
    try {
      const record truth = origin.load(rows[key].id);
      compare_one(truth, cache.find(key, rondo::scheduler::clock::now()), result);
      result.unannounced += static_cast<std::uint64_t>(ledger.unannounced(key, truth.version));
    } catch (const sqlite::error&) {
      ++result.unread;
    }
  }
  return result;
}

void print_summary(const snapshot& end, const comparison& at_end) {
  const std::uint64_t keys = at_end.equal + at_end.older + at_end.empty + at_end.wrong + at_end.unread;
  fmt::print("\nSummary of {}, {} keys, {} edits at the origin\n", readable(end.elapsed), keys, end.edits);
  fmt::print("  reads      {}: hits {} ({}), stale hits {} ({}), misses {}\n", end.reads, end.hits,
             percent(end.hits, end.reads), end.stale_hits, percent(end.stale_hits, end.reads),
             end.reads - end.hits);
  fmt::print("  served     {}: current {}, behind the origin p99 {}, worst {}\n", end.served,
             percent(end.current, end.served), readable(end.behind.p99), readable(end.behind.max));
  fmt::print("  refreshes  {}: failed and retried {}, two at once for one key {}\n", end.loads,
             end.failed_loads, end.loads_at_once);
  fmt::print("  lateness   p50 {}, p99 {}, max {}, deadline to start on the pool\n",
             readable(end.lateness.p50), readable(end.lateness.p99), readable(end.lateness.max));
  fmt::print("  timer      {} scheduled, {} fired, {} handed back, {} wake-ups\n", end.timer.scheduled,
             end.timer.fired, end.timer.returned, end.timer.wakeups);
  fmt::print("  at the end {} equal to the origin, {} older, {} never loaded, {} wrong\n", at_end.equal,
             at_end.older, at_end.empty, at_end.wrong);
  if (at_end.unread > 0) fmt::print("  {} rows could not be read at the end\n", at_end.unread);
  if (end.failed_edits > 0) fmt::print("  {} edits failed at the origin\n", end.failed_edits);
  if (at_end.unannounced > 0) {
    fmt::print(
        "  {} changes were made by somebody else; when is not known, so these rows may have been further "
        "behind\n",
        at_end.unannounced);
  }
}

}  // namespace cache_refresh
