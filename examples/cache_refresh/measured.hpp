// What the threads of a run measure, in addition to what the cache and the timer count.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <rondo/time.hpp>

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

// The latest 8,192 loads that ended, for the page that draws them.
class landings {
 public:
  struct landing {
    std::uint64_t number = 0;  // 1, 2, …
    std::uint32_t key = 0;
    rondo::time_point began;
    bool succeeded = false;
    rondo::time_point ended;
  };

  void add(std::uint32_t key, rondo::time_point began, bool succeeded, rondo::time_point ended) {
    const std::lock_guard guard(lock_);
    ++number_;
    latest_[number_ % latest_.size()] = {number_, key, began, succeeded, ended};
  }

  // Returns the loads that ended since `since`, oldest first. If there are more than `most`, returns a selection of
  // them at even intervals.
  std::vector<landing> latest(rondo::time_point since, std::size_t most) const {
    const std::lock_guard guard(lock_);
    const std::uint64_t held = std::min<std::uint64_t>(number_, latest_.size());
    std::uint64_t first = number_ + 1;
    while (first > number_ - held + 1 && latest_[(first - 1) % latest_.size()].ended >= since) --first;
    const std::uint64_t step = (number_ - first + 1) / most + 1;
    std::vector<landing> some;
    for (std::uint64_t n = first; n <= number_; n += step) some.push_back(latest_[n % latest_.size()]);
    return some;
  }

 private:
  mutable std::mutex lock_;
  std::uint64_t number_ = 0;
  std::array<landing, 8192> latest_;
};

}  // namespace cache_refresh
