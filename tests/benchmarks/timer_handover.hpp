// Timers that one thread sets and other threads cancel: a server that accepts requests on one thread and answers them on
// others. The timers are those of timer_workloads.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "measure.hpp"

/// Each cancelling thread has a ring of `ring` timers. The setting thread sets them in turn, and is at most the ring ahead;
/// a timer is cancelled when half of the ring has been set after it.
template <template <class> class Timers>
class handover {
 public:
  handover(std::size_t cancelling, std::size_t ring, std::size_t cancels)
      : ring_(ring),
        cancels_(cancels),
        is_set_(cancelling * ring),
        timers_(cancelling * ring, {}),
        ns_(cancelling) {}

  /// Each cancelling thread makes the given number of cancels. `timed`: notes how long each of them takes.
  measure::sample run(std::chrono::milliseconds delay, bool timed) {
    std::vector<std::uint64_t> sums(ns_.size());
    const auto start = measure::now();
    std::vector<std::thread> threads;
    for (std::size_t c = 0; c != ns_.size(); ++c)
      threads.emplace_back([this, c, timed, &sums] { sums[c] = cancel_all(c, timed); });
    for (std::size_t i = 0; i != cancels_ + ring_ / 2; ++i) {
      for (std::size_t c = 0; c != ns_.size(); ++c) {
        const std::size_t which = place(c, i);
        wait_until(which, false);
        timers_.set(which, delay);
        is_set_[which].store(true, std::memory_order_release);
      }
    }
    for (std::thread& t : threads) t.join();
    return {measure::per_operation(start, 2 * cancels_ * ns_.size()),
            std::accumulate(sums.begin(), sums.end(), std::uint64_t{0})};
  }

  /// How long one cancel of this part of all took, in nanoseconds.
  double part(double of_all) {
    std::vector<double> all;
    for (const std::vector<double>& each : ns_) all.insert(all.end(), each.begin(), each.end());
    const auto which =
        all.begin() + static_cast<std::ptrdiff_t>(of_all * static_cast<double>(all.size() - 1));
    std::nth_element(all.begin(), which, all.end());
    return *which;
  }

 private:
  struct ignore_firing {
    void operator()(std::size_t) const noexcept {}
  };

  std::size_t place(std::size_t c, std::size_t i) const { return c * ring_ + i % ring_; }

  void wait_until(std::size_t which, bool set) const {
    while (is_set_[which].load(std::memory_order_acquire) != set) std::this_thread::yield();
  }

  std::uint64_t cancel_all(std::size_t c, bool timed) {
    std::uint64_t sum = 0;
    if (timed) ns_[c].reserve(cancels_);
    for (std::size_t i = 0; i != cancels_; ++i) {
      wait_until(place(c, i + ring_ / 2), true);
      const std::size_t which = place(c, i);
      const auto begin = timed ? measure::now() : measure::clock::time_point();
      timers_.cancel(which);
      if (timed) ns_[c].push_back(std::chrono::duration<double, std::nano>(measure::now() - begin).count());
      is_set_[which].store(false, std::memory_order_release);
      sum += which;
    }
    return sum;
  }

  const std::size_t ring_;
  const std::size_t cancels_;
  std::vector<std::atomic<bool>> is_set_;
  Timers<ignore_firing> timers_;
  std::vector<std::vector<double>> ns_;  // of each cancelling thread
};
