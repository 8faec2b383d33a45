// What a dispatcher has done so far.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include <rondo/detail/log_linear.hpp>
#include <rondo/durable.hpp>
#include <rondo/histogram.hpp>

namespace rondo::durable::detail {

/// All members may be called from any thread.
class counters {
 public:
  using count = std::uint64_t dispatcher_statistics::*;

  void add(count which, std::uint64_t n = 1) noexcept {
    const std::lock_guard hold(mutex_);
    sums_.*which += n;
  }

  void began(duration lateness) noexcept {
    const std::lock_guard hold(mutex_);
    ++sums_.fired;
    ++lateness_[rondo::detail::log_linear::bucket_of(lateness)];
  }

  void ended(duration run_time) noexcept {
    const std::lock_guard hold(mutex_);
    ++run_time_[rondo::detail::log_linear::bucket_of(run_time)];
  }

  /// `held` and `running` are left to the caller. Throws std::bad_alloc.
  dispatcher_statistics snapshot() const {
    const std::lock_guard hold(mutex_);
    dispatcher_statistics s = sums_;
    s.lateness = histogram_of(lateness_);
    s.run_time = histogram_of(run_time_);
    return s;
  }

 private:
  using buckets = std::array<std::uint64_t, rondo::detail::log_linear::buckets>;

  static histogram histogram_of(const buckets& b) {
    return rondo::detail::histogram_access::make(std::vector<std::uint64_t>(b.begin(), b.end()));
  }

  mutable std::mutex mutex_;
  dispatcher_statistics sums_;
  buckets lateness_{}, run_time_{};
};

}  // namespace rondo::durable::detail
