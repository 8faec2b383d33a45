// Counters of a scheduler.
#pragma once

#include <cstdint>

#include <rondo/histogram.hpp>

namespace rondo {

/// Counts since the scheduler was created. When no other call is in progress, `scheduled == pending + completed +
/// cancelled + returned`; otherwise the members are read one after another and may disagree.
struct statistics {
  std::uint64_t pending = 0;    ///< at present: one-shots not yet started, and periodic timers not yet ended
  std::uint64_t scheduled = 0;  ///< timers ever scheduled
  std::uint64_t fired = 0;      ///< runs, including those that threw
  /// Timers that ended by themselves or by drain(), and periodic ones with a run in progress at a stop() from inside; counted
  /// when the last run is over.
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;  ///< cancelled timers, including periodic timers cancelled during a run
  std::uint64_t returned = 0;   ///< timers that stop() returned
  std::uint64_t failed = 0;     ///< runs that threw, and calls of the executor that threw
  /// The sum of firing::missed over the runs that have started. What a run would have reported that was rejected, or
  /// taken back before it started, is not counted.
  std::uint64_t missed = 0;
  std::uint64_t overlapped = 0;  ///< grid points dropped because the previous run was in progress
  std::uint64_t rejected =
      0;                      ///< runs whose job was destroyed without being called, see options::on_rejected
  std::uint64_t wakeups = 0;  ///< returns of the driver thread from its wait, including those to fire

  // On the scheduler's own clock, virtual or real.
  histogram lateness;  ///< of each run: its start − its exact deadline
  histogram run_time;  ///< of each run: its end − its start, even if it threw
};

}  // namespace rondo
