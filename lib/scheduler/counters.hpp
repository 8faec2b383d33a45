// What a scheduler counts.
#pragma once

#include <cstdint>

namespace rondo::detail {

/// How a timer ceases to be pending.
enum class ending : std::uint8_t {
  last_run,   // its last run begins
  over,       // no run is to come: it has ended by itself, or drain() or stop() ends it
  cancelled,  // by cancel()
  returned,   // stop() hands it back
  refused,    // schedule() throws: it never was pending to its caller
};

/// How many timers went which way.
struct counters {
  std::uint64_t scheduled = 0;
  std::uint64_t ended = 0;  // ceased to be pending
  std::uint64_t fired = 0;
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t returned = 0;
  std::uint64_t failed = 0;
  std::uint64_t missed = 0;
  std::uint64_t overlapped = 0;
  std::uint64_t rejected = 0;

  std::uint64_t pending() const noexcept { return scheduled > ended ? scheduled - ended : 0; }

  /// A timer ceases to be pending. If it completes with a run in progress, the end of that counts it as completed.
  void count(ending how, bool running) noexcept {
    if (how == ending::refused) {
      --scheduled;
      return;
    }
    ++ended;
    if (how == ending::last_run) ++fired;
    if (how == ending::over && !running) ++completed;
    if (how == ending::cancelled) ++cancelled;
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
