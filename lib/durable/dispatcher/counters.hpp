// What a dispatcher has done so far.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>

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
    lateness_.add(lateness);
  }

  void ended(duration run_time) noexcept {
    const std::lock_guard hold(mutex_);
    run_time_.add(run_time);
  }

  /// The caller fills in `held` and `running`. Throws std::bad_alloc.
  dispatcher_statistics snapshot() const {
    const std::lock_guard hold(mutex_);
    dispatcher_statistics s = sums_;
    s.lateness = lateness_.snapshot();
    s.run_time = run_time_.snapshot();
    return s;
  }

 private:
  struct distribution {
    std::array<std::uint64_t, rondo::detail::log_linear::buckets> counts{};
    duration sum{};

    void add(duration d) noexcept {
      ++counts[rondo::detail::log_linear::bucket_of(d)];
      sum += std::clamp(d, duration::zero(), duration::max() - sum);
    }
    histogram snapshot() const {
      return rondo::detail::histogram_access::make({counts.begin(), counts.end()}, sum);
    }
  };

  mutable std::mutex mutex_;
  dispatcher_statistics sums_;
  distribution lateness_, run_time_;
};

}  // namespace rondo::durable::detail
