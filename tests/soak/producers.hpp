// Producers of load on a scheduler. Each runs on its own thread until the load is over, and leaves nothing behind.
#pragma once

#include <atomic>
#include <cstddef>

#include "dice.hpp"
#include "station.hpp"

namespace soak {

struct orders {
  const std::atomic<bool>& over;
  std::size_t batch;  // timers that a producer sets before it rests a millisecond or two

  void rest() const { std::this_thread::sleep_for(2ms); }
};

/// Timeouts, most of which are cancelled, some moved, and some left to fire.
void request_timeouts(station&, dice, const orders&);
/// Periodic timers of every kind and policy.
void periodic_jobs(station&, dice, const orders&);
/// Timers by key, set again and again.
void sessions(station&, dice, const orders&);
/// Objects that end while their timers are pending.
void owners(station&, dice, const orders&);
/// Coroutines that sleep repeatedly.
void sleepers(station&, dice, const orders&);
/// Schedulers of all kinds that are created, used, and stopped, drained or destroyed. Counts them.
void brief_stations(dice, const orders&, counter& made);
/// Asks for statistics and drawings, and replaces on_earlier, at any time.
void onlooker(station&, const orders&);

}  // namespace soak
