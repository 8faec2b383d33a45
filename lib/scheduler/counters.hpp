// What a scheduler counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace rondo::detail {

/// How a timer ceases to be pending.
enum class ending : std::uint8_t {
  last_run,   // its last run begins
  over,       // no run is to come: it has ended by itself, or drain() or stop() ends it
  cancelled,  // by cancel()
  replaced,   // as cancelled, but another timer now has its place under the limit
  returned,   // stop() hands it back
  refused,    // schedule() throws: to its caller, the timer was never pending
};

/// A number that one thread at a time writes, and that others may read at any time. Uses plain loads and stores,
/// because an atomic addition would lock the bus.
class counter {
 public:
  counter() noexcept = default;
  counter(std::uint64_t value) noexcept : value_(value) {}
  counter(const counter& other) noexcept : value_(other) {}
  counter& operator=(const counter& other) noexcept {
    value_.store(other, std::memory_order_relaxed);
    return *this;
  }

  operator std::uint64_t() const noexcept { return value_.load(std::memory_order_relaxed); }
  void operator+=(std::uint64_t more) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  void operator++() noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void operator--() noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Counts what became of the timers.
struct counters {
  counter scheduled = 0;
  counter ended = 0;  // ceased to be pending
  counter fired = 0;
  counter completed = 0;
  counter cancelled = 0;
  counter returned = 0;
  counter failed = 0;
  counter missed = 0;
  counter overlapped = 0;
  counter rejected = 0;

  std::uint64_t pending() const noexcept {
    const std::uint64_t all = scheduled;
    return all > ended ? all - ended : 0;
  }

  /// Counts a timer that ceases to be pending. If it completes with a run in progress, the end of that run counts it as
  /// completed.
  void count(ending how, bool running) noexcept {
    if (how == ending::refused) {
      --scheduled;
      return;
    }
    ++ended;
    if (how == ending::last_run) ++fired;
    if (how == ending::over && !running) ++completed;
    if (how == ending::cancelled || how == ending::replaced) ++cancelled;
    if (how == ending::returned) ++returned;
  }

  counters& operator+=(const counters& other) noexcept {
    scheduled += other.scheduled;
    ended += other.ended;
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
