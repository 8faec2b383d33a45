// What a scheduler has done so far.
#pragma once

#include <cstdint>

#include <rondo/histogram.hpp>

namespace rondo {

/// Counts since the scheduler was made. At rest `scheduled == pending + completed + cancelled + returned`;
/// while other calls are in progress the members are readings taken one after another.
struct statistics {
  std::uint64_t pending = 0;     ///< now: one-shots not yet started, and periodic timers that go on
  std::uint64_t scheduled = 0;   ///< timers ever scheduled
  std::uint64_t fired = 0;       ///< runs
  std::uint64_t completed = 0;   ///< timers that ended by themselves or by drain(), or ran as stop() came
  std::uint64_t cancelled = 0;   ///< timers that were cancelled; a periodic one also while it was running
  std::uint64_t returned = 0;    ///< timers that stop() handed back
  std::uint64_t failed = 0;      ///< runs that threw, and hand-overs that the executor refused by throwing
  std::uint64_t missed = 0;      ///< grid points of periodic timers that went by without a run
  std::uint64_t overlapped = 0;  ///< grid points dropped because the run before was still in progress
  std::uint64_t rejected = 0;    ///< runs that an executor dropped
  std::uint64_t wakeups = 0;     ///< returns of the driver thread from its wait, for a firing too

  // On the scheduler's own clock, virtual or real.
  histogram lateness;  ///< of each run: its start − its exact deadline
  histogram run_time;  ///< of each run: its end − its start, also if it threw
};

}  // namespace rondo
