// What a scheduler keeps of one timer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include <rondo/detail/node.hpp>
#include <rondo/executor.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>

#include "scheduler/repetition.hpp"

namespace rondo::detail {

/// Where a live timer waits for its next run.
enum class waiting : std::uint8_t {
  in_wheel,  // or taken out of it for the pass in progress
  apart,     // never due, or to be found by the stop() in progress
  unplaced,  // there was no memory to put it into the wheel: the driver tries again
  nowhere,   // it is with the executor, or running
};

/// One timer. Records are pooled and never move, so one can be looked at whenever its slot is known; the
/// generation tells whether it still is the timer one had in mind.
///
/// Life of a one-shot: waiting → (handed over) → running → free. A periodic timer waits for its next run as
/// soon as the one before has been handed over or started, or when that has ended. `live` is what users call
/// pending; once it is false no run starts any more, and when the runs in progress have ended the callable is
/// destroyed and the record freed.
///
/// All members are guarded by `mutex`, but for these: until schedule() returns, the scheduling thread alone
/// knows the record, and writes what is marked [new] without it; while a run is in progress, `work` is its
/// own.
///
/// In three cache lines: for all that waits; the callable; for what has an executor or a recurrence.
template <class Sync>
struct alignas(64) record : node {
  explicit record(std::uint32_t own_slot) noexcept : slot(own_slot) {}

  typename Sync::record_mutex mutex;
  const std::uint32_t slot;           // in the pool
  bool live = false;                  // [new]
  bool completes = false;             // it is not live any more as its last run has started or was given up
  bool dropped = false;               // the job that is being handed over was destroyed meanwhile
  waiting place = waiting::in_wheel;  // of a free record too: schedule() need not write it
  std::uint32_t running = 0;          // runs in progress
  std::uint32_t handed = 0;           // good tickets: see below
  std::uint64_t generation = 1;       // moves on as the record is freed
  // Moves on as it ceases to wait for a certain moment. Written inside the lock, read also by those who only
  // pass by.
  typename Sync::template atomic<std::uint64_t> arming{0};
  time_point deadline;  // [new] exact, of the run that it waits for; `due` is its tick

  record* next = nullptr;  // in a list of free or of unplaced records
  task work;               // [new]

  std::unique_ptr<repetition> repeats;     // [new] null: once
  std::shared_ptr<const executor> run_on;  // [new] null: the scheduler's
  std::uint64_t order = 0;                 // in which it was handed over, if once, or set apart

  // A ticket stands for a run that the executor has and that has not started. It is given out once.
  std::uint64_t tickets = 0;       // numbers given out so far
  std::uint64_t only_ticket = 0;   // of a one-shot; a periodic timer's are in `repeats`
  std::uint64_t in_hand_over = 0;  // the ticket that the driver is just handing over; 0: none

  bool periodic() const noexcept { return repeats != nullptr; }
  bool in_progress() const noexcept { return running != 0 || handed != 0; }

  /// Whether its end destroys nothing of the user's.
  bool owns_nothing() const noexcept {
    return repeats == nullptr && run_on == nullptr && task_access::trivial_to_destroy(work);
  }

  /// Of the oldest run that the executor has. Precondition: there is one.
  time_point handed_due() const noexcept { return repeats ? repeats->handed.front().what.due : deadline; }
  tick_number handed_tick() const noexcept { return repeats ? repeats->handed.front().tick : due; }
  std::uint64_t handed_order() const noexcept { return repeats ? repeats->handed.front().order : order; }

  /// Whether the ticket was good; it is not any more. Precondition: live.
  bool spend_ticket(std::uint64_t number) noexcept {
    const bool good = repeats ? repeats->spend_ticket(number) : handed != 0 && only_ticket == number;
    if (good) --handed;
    return good;
  }

  /// Precondition: live, or just not any more.
  void take_back_tickets() noexcept {
    handed = 0;
    if (repeats) repeats->take_back_tickets();
  }

  /// Whether no run will start any more.
  bool over() const noexcept { return handed == 0 && (!repeats || repeats->over()); }
};

}  // namespace rondo::detail
