// All figures at one moment, for the table, the page, the metrics and the summary, and their history.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/statistics.hpp>
#include <rondo/time.hpp>

#include "refreshing_cache.hpp"

namespace cache_refresh {

// A distribution of durations, made from this program's histograms or Rondo's.
struct distribution {
  struct bucket {
    rondo::duration upper;  // inclusive
    std::uint64_t count;
  };
  std::vector<bucket> buckets;  // ascending, without empty buckets
  std::uint64_t count = 0;
  rondo::duration sum{};
  rondo::duration p50{};
  rondo::duration p99{};
  rondo::duration max{};
};

// An error with which keys fail now.
struct current_error {
  std::string text;
  rondo::duration lasts{};  // since the first failure of a key that fails with it
};

struct snapshot {
  std::string origin;  // its name
  std::string mode;    // "refresh-ahead", "refresh-on-read" or "expire-then-load"
  rondo::duration elapsed{};
  std::size_t names = 0;  // keys that the run uses

  key_counts keys;
  cache_statistics cache;

  std::optional<current_error> error;           // the latest; none if no key fails
  rondo::duration failing_for{};                // since the first of cache.failed_in_a_row
  std::optional<rondo::duration> served_for{};  // until keys.served_until

  distribution reads;          // how long readers waited for an answer
  distribution ages;           // of the values served, since the origin was asked
  distribution loads;          // how long the origin took
  std::uint64_t waited = 0;    // reads that were not answered at once
  std::uint64_t stale = 0;     // reads that got a stale value
  std::uint64_t unserved = 0;  // reads that got no value

  // By the ledger, if this program makes the changes.
  distribution behind;        // of the values served, the time since they were superseded
  std::uint64_t current = 0;  // values served that were the newest
  std::uint64_t edits = 0;
  std::uint64_t failed_edits = 0;

  rondo::duration processor{};  // processor time of the whole process
  rondo::duration driver{};     // processor time of the timer's thread
  rondo::statistics timer;      // its lateness is the lateness of refreshes
};

// The share of the keys whose values are stale or missing, 0 to 1; 0 if there are no keys.
inline double stale_share(const key_counts& keys) {
  const std::size_t all = keys.fresh + keys.stale + keys.empty;
  return all == 0 ? 0 : static_cast<double>(keys.stale + keys.empty) / static_cast<double>(all);
}

// Why loads began late.
struct late_reason {
  std::string reason;
  std::uint64_t runs = 0;
  rondo::duration longest{};  // their longest lateness
};

// Keys whose last load failed.
struct failing_keys {
  std::size_t all = 0;
  std::size_t matching = 0;  // of all: those that match the search

  struct item {
    std::string key;
    std::string error;                         // of the last load
    rondo::duration since{};                   // how long ago the first of its failed loads was
    std::optional<rondo::duration> next_load;  // none while it is being loaded
    rondo::duration served_for{};              // 0 if it has nothing to serve
  };
  std::vector<item> first;  // of those that match
};

// A picture of the timer's wheel: the bucket of each pending timer, and whether it is of this turn or of a later one.
struct wheel_picture {
  rondo::duration tick{};
  std::int64_t now = 0;                  // in ticks; the bucket of now is now % buckets
  std::vector<std::uint32_t> this_turn;  // [bucket]: timers due within the next `buckets` ticks
  std::vector<std::uint32_t> later;      // [bucket]: timers of later rounds

  struct due_timer {
    std::string key;
    rondo::duration in;
  };
  std::vector<due_timer> next;  // the earliest ten

  // Loads that ended within the last second, oldest first; if there are many, a selection. Numbers increase.
  struct landing {
    std::uint64_t number;
    std::string key;
    std::size_t bucket;  // the bucket of its timer
    bool succeeded;
    rondo::duration took;
  };
  std::vector<landing> landings;  // about 200 at most
};

// The last two hours of a run, a sample for each second, so that a page that is opened or reloaded can draw them.
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

inline void history::add(const snapshot& now) {
  const std::lock_guard guard(lock_);
  using std::chrono::floor;
  using std::chrono::seconds;
  if (floor<seconds>(now.elapsed) <= floor<seconds>(at_)) return;
  const double passed = std::chrono::duration<double>(now.elapsed - at_).count();
  const auto per_second = [passed](std::uint64_t to, std::uint64_t from) {
    return static_cast<double>(to - from) / passed;
  };
  samples_.push_back({now.elapsed, per_second(now.cache.loads, loads_), per_second(now.cache.failed, failed_),
                      stale_share(now.keys)});
  if (samples_.size() > most) samples_.pop_front();
  at_ = now.elapsed;
  loads_ = now.cache.loads;
  failed_ = now.cache.failed;
}

inline std::vector<history::sample> history::all() const {
  const std::lock_guard guard(lock_);
  return {samples_.begin(), samples_.end()};
}

}  // namespace cache_refresh
