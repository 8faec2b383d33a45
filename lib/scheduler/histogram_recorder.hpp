// What a scheduler measures with.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <rondo/detail/log_linear.hpp>
#include <rondo/histogram.hpp>

namespace rondo::detail {

/// Counts durations: 15 KiB, however many there are. All members are legal from any thread at any time, but one: while a
/// thread is in record_alone(), no other may record.
template <class Sync>
class histogram_recorder {
 public:
  histogram_recorder() noexcept = default;
  histogram_recorder(const histogram_recorder&) = delete;
  histogram_recorder& operator=(const histogram_recorder&) = delete;

  /// One relaxed addition and nothing else: a reader works out extremes and sums. O(1), lock-free.
  void record(duration d) noexcept {
    counts_[log_linear::bucket_of(d)].fetch_add(1, std::memory_order_relaxed);
  }

  /// The same with a load and a store, which do not lock the bus.
  void record_alone(duration d) noexcept {
    auto& count = counts_[log_linear::bucket_of(d)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// What was recorded by all calls that happened before, and perhaps some of those in progress.
  /// Throws std::bad_alloc.
  histogram snapshot() const {
    // Counts only grow: what is not zero now will not be when it is read again.
    std::size_t used = counts_.size();
    while (used != 0 && read(used - 1) == 0) --used;
    std::vector<std::uint64_t> counts(used);
    for (std::size_t b = 0; b != used; ++b) counts[b] = read(b);
    return histogram_access::make(std::move(counts));
  }

 private:
  std::uint64_t read(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }

  std::array<typename Sync::template atomic<std::uint64_t>, log_linear::buckets> counts_{};
};

}  // namespace rondo::detail
