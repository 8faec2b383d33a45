// What a scheduler keeps of one timer.
#pragma once

#include <cstdint>

#include <rondo/detail/node.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>

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
/// soon as the one before has been handed over or started. `live` is what users call pending; once it is
/// false no run starts any more, and when the runs in progress have ended the callable is destroyed and the
/// record freed.
///
/// All members are guarded by `mutex`, but for these: until schedule() returns, the scheduling thread alone
/// knows the record, and writes what is marked [new] without it; while a run is in progress, `work` is its
/// own.
template <class Sync>
struct record : node {
  explicit record(std::uint32_t own_slot) noexcept : slot(own_slot) {}

  typename Sync::record_mutex mutex;
  const std::uint32_t slot;           // in the pool
  bool live = false;                  // [new]
  bool dropped = false;               // the job that is being handed over was destroyed meanwhile
  waiting place = waiting::in_wheel;  // of a free record too: schedule() need not write it
  std::uint64_t generation = 1;       // moves on as the record is freed
  // Moves on as it ceases to wait for a certain moment. Written inside the lock, read also by those who only
  // pass by.
  typename Sync::template atomic<std::uint64_t> arming{0};
  time_point deadline;        // [new] exact, of the run that it waits for; `due` is its tick
  duration period{};          // [new] zero: once
  task work;                  // [new]
  std::uint64_t runs = 0;     // [new] started or handed over
  record* next = nullptr;     // in a list of free or of unplaced records
  std::uint32_t running = 0;  // runs in progress
  std::uint64_t order = 0;    // in which it was last handed over or set apart

  // Runs with the executor, not started. Their tickets are numbered; those up to `void_tickets` are worth
  // nothing.
  std::uint32_t handed = 0;
  std::uint64_t tickets = 0;  // numbers given out so far
  std::uint64_t void_tickets = 0;
  std::uint64_t in_hand_over = 0;  // the number of the ticket that the driver is just handing over; 0: none
  time_point handed_due;           // of the oldest
  tick_number handed_tick = 0;

  bool periodic() const noexcept { return period != duration::zero(); }
  bool ticket_is_good(std::uint64_t number) const noexcept { return handed != 0 && number > void_tickets; }

  void take_back_tickets() noexcept {
    runs -= handed;
    handed = 0;
    void_tickets = tickets;
  }
};

}  // namespace rondo::detail
