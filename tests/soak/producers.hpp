// What loads a scheduler, each on a thread of its own until it is over, and leaves nothing behind.
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

/// Time-outs, most of which are cancelled, some moved, some left to fire.
void request_timeouts(station&, dice, const orders&);
/// Periodic timers of every kind and policy.
void periodic_jobs(station&, dice, const orders&);
/// Timers by key, set again and again.
void sessions(station&, dice, const orders&);
/// Objects that end with timers of theirs pending.
void owners(station&, dice, const orders&);
/// Coroutines that sleep again and again.
void sleepers(station&, dice, const orders&);
/// Schedulers of all kinds that are made, used, and stopped, drained or destroyed; counts them.
void brief_stations(dice, const orders&, counter& made);
/// Somebody who asks for statistics and drawings, and replaces on_earlier, at any time.
void onlooker(station&, const orders&);

}  // namespace soak
