// What a scheduler measures about each run.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <rondo/detail/log_linear.hpp>
#include <rondo/histogram.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// Counts durations and adds them up. Takes 15 KiB, however many durations there are. All members may be called from
/// any thread at any time, with one exception: while a thread records alone, no other may record.
class histogram_recorder {
 public:
  histogram_recorder() noexcept = default;
  histogram_recorder(const histogram_recorder&) = delete;
  histogram_recorder& operator=(const histogram_recorder&) = delete;

  /// Makes two relaxed additions and nothing else: readers work out the extremes. A thread that is `alone` adds with
  /// loads and stores, which do not lock the bus. O(1), lock-free.
  template <bool alone = false>
  void record(duration d) noexcept {
    auto& count = counts_[log_linear::bucket_of(d)];
    if (alone)
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
      count.fetch_add(1, std::memory_order_relaxed);
    if (d <= duration::zero()) return;
    duration::rep sum =
        alone ? sum_.load(std::memory_order_relaxed) : sum_.fetch_add(d.count(), std::memory_order_relaxed);
    // A sum that has wrapped is replaced. This loses additions that other threads made in between; each later one wraps
    // the sum again.
    const bool wraps = __builtin_add_overflow(sum, d.count(), &sum);
    if (alone || wraps) sum_.store(wraps ? duration::max().count() : sum, std::memory_order_relaxed);
  }

  /// What was recorded by all calls that happened before, and perhaps by some that are in progress. Throws
  /// std::bad_alloc.
  histogram snapshot() const {
    // Counts only grow: one that is not zero now will not be zero when it is read again.
    std::size_t used = counts_.size();
    while (used != 0 && read(used - 1) == 0) --used;
    std::vector<std::uint64_t> counts(used);
    for (std::size_t b = 0; b != used; ++b) counts[b] = read(b);
    const duration sum(sum_.load(std::memory_order_relaxed));
    return histogram_access::make(std::move(counts), sum < duration::zero() ? duration::max() : sum);
  }

 private:
  std::uint64_t read(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }

  // No steps to be explored, because only readings depend on them.
  std::array<std::atomic<std::uint64_t>, log_linear::buckets> counts_{};
  std::atomic<duration::rep> sum_{0};
};

/// How late runs begin and how long they take.
struct run_meter {
  histogram_recorder lateness;
  histogram_recorder run_time;
  // Set by the driver, before it hands the first run over: until then, only the driver records.
  bool is_shared = false;

  void record(histogram_recorder& into, duration d) noexcept {
    if (is_shared)
      into.record(d);
    else
      into.record<true>(d);
  }
};

}  // namespace rondo::detail
