// What a dispatcher tells: counts, and errors.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>

#include <rondo/detail/log_linear.hpp>
#include <rondo/durable.hpp>
#include <rondo/histogram.hpp>

#include "durable/text.hpp"

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

/// Calls dispatcher_options::on_error. All members may be called from any thread.
class error_reports {
 public:
  explicit error_reports(std::function<void(const std::string&)> to) : to_(std::move(to)) {}

  /// `words()` returns the line; what it quotes may contain line breaks. If memory for it runs out, or on_error throws,
  /// the report is lost.
  template <class Words>
  void say(const Words& words) const noexcept {
    try {
      if (to_)
        to_(on_one_line(words()));
      else
        std::cerr << "rondo: " + on_one_line(words()) + '\n';
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

 private:
  std::function<void(const std::string&)> to_;
};

}  // namespace rondo::durable::detail
