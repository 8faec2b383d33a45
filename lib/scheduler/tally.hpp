// What a scheduler counts.
#pragma once

#include <cstdint>

namespace rondo::detail {

/// How many timers went which way.
struct tally {
  std::uint64_t scheduled = 0;
  std::uint64_t left = 0;  // ceased to be pending
  std::uint64_t fired = 0;
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t returned = 0;
  std::uint64_t failed = 0;
  std::uint64_t missed = 0;
  std::uint64_t overlapped = 0;
  std::uint64_t rejected = 0;

  std::uint64_t pending() const noexcept { return scheduled > left ? scheduled - left : 0; }

  tally& operator+=(const tally& other) noexcept {
    scheduled += other.scheduled;
    left += other.left;
    fired += other.fired;
    completed += other.completed;
    cancelled += other.cancelled;
    returned += other.returned;
    failed += other.failed;
    missed += other.missed;
    overlapped += other.overlapped;
    rejected += other.rejected;
    return *this;
  }
};

}  // namespace rondo::detail
