// The runs of a timer that an executor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <rondo/detail/node.hpp>
#include <rondo/recurrence.hpp>

namespace rondo::detail {

/// How a run goes from the driver to the thread of an executor, and how it is taken back:
///
/// 1. The driver submits: it gives out a ticket and, without a lock, calls the executor with a job that has it.
/// 2. The job is called, or destroyed without having been called. Either redeems the ticket, which works once: then the
///    run starts, or is dropped.
/// 3. cancel(), reschedule(), drain() and stop() take all tickets back: no job of the timer starts a run any more.
/// 4. A job that is destroyed inside the call of the executor (step 1) redeems nothing, but leaves a note: only when the
///    call returns does the driver know whether the executor has thrown, and so whether the run failed or was rejected.
///
/// A ticket is a number that no other run of the scheduler has. So a stale one names nothing, also if the record serves
/// another timer by then, and nothing is reset between two timers. Tickets grow, and so tell the order of submission.
///
/// The timer's lock guards all members. A one-shot has one ticket out at most, and needs no memory for it.
class handoff {
 public:
  using ticket = std::uint64_t;  // 0: none

  /// A run of a periodic timer that was submitted.
  struct run {
    ticket number;
    tick_number tick;
    recurrence::occurrence what;
  };

  /// For a periodic timer with an executor, before it is scheduled. Throws std::bad_alloc.
  void prepare_for_several() {
    runs_ = std::make_unique<std::vector<run>>();
    runs_->reserve(1);  // no more at a time, unless they may overlap
  }
  /// Makes submit(run) legal once. Throws std::bad_alloc; strong guarantee.
  void reserve_one() {
    if (runs_->size() == runs_->capacity()) runs_->reserve(2 * runs_->size());
  }

  void submit(ticket number) noexcept { only_ = in_call_ = number; }
  void submit(const run& r) noexcept {
    runs_->push_back(r);
    in_call_ = r.number;
  }

  /// Whether the ticket was good; it is not any more.
  bool redeem(ticket number) noexcept {
    if (runs_ == nullptr) {
      if (only_ != number) return false;
      only_ = 0;
      return true;
    }
    return std::erase_if(*runs_, [&](const run& r) { return r.number == number; }) != 0;
  }

  void take_all_back() noexcept {
    only_ = 0;
    if (runs_ != nullptr) runs_->clear();
  }

  /// The job with that ticket is destroyed. True: inside the call of the executor, whose end will tell.
  bool note_drop(ticket number) noexcept {
    if (in_call_ != number) return false;
    dropped_in_call_ = true;
    return true;
  }
  /// The call of the executor is over; returns whether it has destroyed the job. There is one such call at a time, as the
  /// driver makes it.
  bool end_call() noexcept {
    in_call_ = 0;
    return std::exchange(dropped_in_call_, false);
  }

  /// As a periodic timer ends.
  void release_memory() noexcept { runs_.reset(); }

  std::size_t size() const noexcept { return runs_ != nullptr ? runs_->size() : only_ != 0 ? 1 : 0; }
  /// Of a one-shot.
  ticket only() const noexcept { return only_; }
  /// The oldest run of a periodic timer, or null.
  const run* oldest() const noexcept {
    return runs_ == nullptr || runs_->empty() ? nullptr : &runs_->front();
  }

 private:
  ticket only_ = 0;     // of a one-shot
  ticket in_call_ = 0;  // of the job that the driver is just giving the executor
  bool dropped_in_call_ = false;
  std::unique_ptr<std::vector<run>> runs_;  // of a periodic timer, oldest first
};

}  // namespace rondo::detail
