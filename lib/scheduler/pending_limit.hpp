// options::max_pending.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include <rondo/errors.hpp>
#include <rondo/time.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// Limits how many timers may be pending at a time. Both members may be called from any thread. Without a limit, each
/// costs one comparison.
class pending_limit {
 public:
  explicit pending_limit(std::size_t most) noexcept : most_(most) {}

  /// Claims a place for one more timer. Throws capacity_error if none is free.
  void claim_place() {
    if (most_ == unlimited) return;
    std::size_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (taken >= most_)
        throw capacity_error("rondo: max_pending is " + std::to_string(most_) +
                             ", and that many timers are pending");
    } while (!taken_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed));
  }

  void free_place() noexcept {
    if (most_ != unlimited) taken_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  const std::size_t most_;
  sync::atomic<std::size_t> taken_{0};
};

}  // namespace rondo::detail
