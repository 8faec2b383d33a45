// The workloads for timers that have a driver thread.
//
// `Timers<OnFire>(n, on_fire)` is n timers with their own driver thread. set(i, delay) sets timer i, which is not
// pending; cancel(i) cancels it unless it has fired. Any thread may call both, but not at the same time for the same i.
// When timer i fires, on_fire(i) is called on the driver thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "measure.hpp"

using std::chrono::milliseconds;

struct ignore_firing {
  void operator()(std::size_t) const noexcept {}
};

/// Each producer has `pending` timers, and repeatedly cancels a random one and re-arms it with delay(random).
/// A timer that has fired in the meantime is not re-armed until it is chosen.
template <template <class> class Timers, class Delay>
measure::sample produce(std::size_t producers, std::size_t pending, std::uint64_t pairs, Delay delay) {
  Timers<ignore_firing> timers(producers * pending, {});
  std::atomic<std::size_t> ready{0};
  std::atomic<std::uint64_t> chosen{0};
  std::vector<measure::clock::time_point> starts(producers);
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p != producers; ++p) {
    threads.emplace_back([&, p] {
      measure::random random(p);
      const std::size_t first = p * pending;
      for (std::size_t i = 0; i != pending; ++i) timers.set(first + i, delay(random));
      ++ready;
      while (ready.load() != producers) std::this_thread::yield();
      starts[p] = measure::now();
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i != pairs; ++i) {
        const std::size_t which = first + random() % pending;
        timers.cancel(which);
        timers.set(which, delay(random));
        sum += which;
      }
      chosen += sum;
    });
  }
  for (std::thread& t : threads) t.join();
  const auto start = *std::min_element(starts.begin(), starts.end());
  return {measure::per_operation(start, 2 * pairs * producers), chosen.load()};
}

/// The first timer blocks the driver until all are due. Measures the time from then until all have fired.
template <template <class> class Timers>
measure::sample release_backlog(std::size_t n, milliseconds span) {
  struct backlog {
    explicit backlog(std::size_t n) : left(n) {}
    std::promise<void> held_up, released, all_fired;
    std::size_t left;
    std::uint64_t sum = 0;
  };
  struct on_fire {
    backlog* all;
    void operator()(std::size_t which) const {
      if (which == 0) {
        all->held_up.set_value();
        all->released.get_future().wait();
        return;
      }
      all->sum += which;
      if (--all->left == 0) all->all_fired.set_value();
    }
  };
  backlog all(n);
  Timers<on_fire> timers(n + 1, {&all});
  timers.set(0, milliseconds(0));
  all.held_up.get_future().wait();
  measure::random random(7);
  for (std::size_t i = 1; i <= n; ++i)
    timers.set(i, milliseconds(random.up_to(static_cast<std::uint64_t>(span.count()))));
  std::this_thread::sleep_for(span + milliseconds(10));
  const auto start = measure::now();
  all.released.set_value();
  all.all_fired.get_future().wait();
  return {measure::per_operation(start, n), all.sum};
}

/// How late each of n one-shots fires, in microseconds. They are set in one burst, with delays of whole milliseconds.
template <template <class> class Timers>
std::vector<double> lateness(std::size_t n, milliseconds span) {
  using time_point = std::chrono::steady_clock::time_point;
  struct burst {
    std::vector<time_point> due;
    std::vector<double> late_us;
    std::promise<void> all_fired;
  };
  struct on_fire {
    burst* all;
    void operator()(std::size_t which) const {
      const auto late = std::chrono::steady_clock::now() - all->due[which];
      all->late_us.push_back(std::chrono::duration<double, std::micro>(late).count());
      if (all->late_us.size() == all->due.size()) all->all_fired.set_value();
    }
  };
  burst all{std::vector<time_point>(n), {}, {}};
  all.late_us.reserve(n);
  Timers<on_fire> timers(n, {&all});
  measure::random random(8);
  for (std::size_t i = 0; i != n; ++i) {
    const milliseconds delay(random.up_to(static_cast<std::uint64_t>(span.count())));
    all.due[i] = std::chrono::steady_clock::now() + delay;
    timers.set(i, delay);
  }
  all.all_fired.get_future().wait();
  return std::move(all.late_us);
}
