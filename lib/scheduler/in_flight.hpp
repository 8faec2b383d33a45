// Passes, jobs and calls of handlers in progress.
#pragma once

#include <atomic>
#include <cstddef>

#include <rondo/time.hpp>

#include "sync/sync.hpp"
#include "sync/wait_point.hpp"

namespace rondo::detail {

/// Counts passes, jobs and calls of handlers. Whatever ends a scheduler waits until there are none, or only its own.
/// All members may be called from any thread.
class in_flight {
 public:
  /// Threads wait at `endings`, which must outlive this.
  explicit in_flight(wait_point& endings) noexcept : endings_(endings) {}

  void begin() noexcept { count_.fetch_add(1, std::memory_order_seq_cst); }
  void end() noexcept {
    count_.fetch_sub(1, std::memory_order_seq_cst);
    endings_.wake();
  }

  bool none() const noexcept { return count_.load(std::memory_order_seq_cst) == 0; }
  /// Waits until only `own` of them are left, those that the calling thread is inside, but no longer than until `end`,
  /// in real time. Returns whether only those are left.
  bool wait_for_others(std::size_t own, time_point end = time_point::max()) {
    return endings_.wait_until(end, [&] { return count_.load(std::memory_order_seq_cst) == own; });
  }

 private:
  wait_point& endings_;
  sync::atomic<std::size_t> count_{0};
};

}  // namespace rondo::detail
