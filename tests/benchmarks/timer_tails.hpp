// How long single calls take while the driver is busy. The timers are those of timer_workloads.hpp, and can also
// reschedule(i, delay) a pending timer.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure.hpp"

/// `pending` timers of half a minute to a minute, while the driver fires `per_second` others every second.
template <template <class> class Timers>
class busy_timers {
 public:
  using milliseconds = std::chrono::milliseconds;

  busy_timers(std::size_t pending, std::size_t per_second)
      : pending_(pending), timers_(pending + per_second, {this}) {
    for (std::size_t i = 0; i != pending; ++i) timers_.set(i, far_away());
    for (std::size_t i = 0; i != per_second; ++i) timers_.set(pending + i, milliseconds(random_.up_to(1000)));
  }

  /// Cancels, sets and reschedules random pending timers, and returns how many nanoseconds each of these calls took,
  /// sorted. The cost of reading the clock, the least of many readings, is subtracted.
  std::array<std::vector<double>, 3> time_calls(std::size_t calls) {
    std::array<std::vector<double>, 3> ns;
    for (std::vector<double>& each : ns) each.reserve(calls);
    const double of_clock = clock_cost();
    for (std::size_t i = 0; i != calls; ++i) {
      const std::size_t which = random_.below(pending_);
      const std::size_t other = random_.below(pending_);
      const milliseconds first = far_away(), second = far_away();
      const auto begin = measure::now();
      timers_.cancel(which);
      const auto cancelled = measure::now();
      timers_.set(which, first);
      const auto set = measure::now();
      timers_.reschedule(other, second);
      const auto rescheduled = measure::now();
      ns[0].push_back(nanoseconds(set - cancelled) - of_clock);
      ns[1].push_back(nanoseconds(cancelled - begin) - of_clock);
      ns[2].push_back(nanoseconds(rescheduled - set) - of_clock);
    }
    for (std::vector<double>& each : ns) std::sort(each.begin(), each.end());
    return ns;
  }

  std::uint64_t fired() const { return fired_.load(); }

 private:
  struct set_again {
    busy_timers* all;
    void operator()(std::size_t which) const {
      all->fired_.fetch_add(1, std::memory_order_relaxed);
      all->timers_.set(which, milliseconds(1000));
    }
  };

  static double nanoseconds(measure::clock::duration d) {
    return std::chrono::duration<double, std::nano>(d).count();
  }

  static double clock_cost() {
    double least = 1e9;
    for (int i = 0; i != 10'000; ++i) {
      const auto begin = measure::now();
      least = std::min(least, nanoseconds(measure::now() - begin));
    }
    return least;
  }

  milliseconds far_away() { return milliseconds(30'000 + random_.up_to(30'000)); }

  const std::size_t pending_;
  measure::random random_{9};
  std::atomic<std::uint64_t> fired_{0};
  Timers<set_again> timers_;
};
