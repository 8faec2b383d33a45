// The last two hours of a run, a sample for each second, so that a page that is opened or reloaded can draw them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include <rondo/time.hpp>

#include "snapshot.hpp"

namespace cache_refresh {

// Thread-safe.
class history {
 public:
  struct sample {
    rondo::duration at;  // since the run began
    double loads;        // begun per second, since the sample before
    double failed;       // per second
    double stale;        // the share of keys that are stale or empty, 0 to 1
  };
  static constexpr std::size_t most = 2 * 60 * 60;

  // Adds a sample, unless there is one of this second. Calls must be in the order of the snapshots.
  void add(const snapshot& now);

  std::vector<sample> all() const;  // oldest first

 private:
  mutable std::mutex lock_;
  std::deque<sample> samples_;
  rondo::duration at_{};  // of the last sample
  std::uint64_t loads_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace cache_refresh
