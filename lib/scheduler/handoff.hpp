// The runs that an executor has.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/recurrence.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// How a run gets from the driver to an executor's thread, and how it is taken back:
///
/// 1. The driver submits: it issues a ticket and, without a lock, calls the executor with a job that has the ticket.
/// 2. The job is called, or destroyed without having been called. Either redeems the ticket, which works only once:
///    then the run starts or is dropped.
/// 3. cancel(), reschedule(), drain() and stop() take all tickets back: no job of the timer starts a run any more.
/// 4. A job that is destroyed inside the call of the executor (step 1) redeems nothing, but leaves a note. Only when
///    the call returns does the driver know whether the executor threw, and so whether the run failed or was rejected.
///
/// A ticket is a number that no other run of the scheduler has. So a stale ticket refers to nothing, even if the record
/// serves another timer by then, and nothing is reset between two timers. Tickets increase, and so give the order of
/// submission.
///
/// A one-shot has at most one outstanding ticket: see record::ticket().
using run_ticket = std::uint64_t;  // 0 means none

/// The outstanding tickets of a periodic timer. The lock of the timer's shard guards them.
class submitted_runs {
 public:
  struct run {
    run_ticket number;
    tick_number tick;
    recurrence::occurrence what;
  };

  /// Makes one call of submit() legal. Throws std::bad_alloc; strong guarantee. (Unless runs may overlap, room for one
  /// run is enough. It is allocated when the timer is scheduled.)
  void reserve_one() {
    if (runs_.size() == runs_.capacity()) runs_.reserve(std::max<std::size_t>(2 * runs_.size(), 1));
  }
  void submit(const run& r) noexcept { runs_.push_back(r); }

  /// Returns whether the ticket was valid. It no longer is.
  bool redeem(run_ticket number) noexcept {
    return std::erase_if(runs_, [&](const run& r) { return r.number == number; }) != 0;
  }
  void take_all_back() noexcept { runs_.clear(); }

  std::size_t size() const noexcept { return runs_.size(); }
  /// Null if there is none.
  const run* oldest() const noexcept { return runs_.empty() ? nullptr : &runs_.front(); }

 private:
  std::vector<run> runs_;  // oldest first
};

/// The call of an executor that is in progress. A scheduler has only one at a time, because the driver makes it. Any
/// thread may destroy its job while the call is ending: whoever changes the word first decides which of the two drops
/// the run. If that is the driver, what the other thread did before happens before it.
class executor_call {
 public:
  /// Only the driver calls these two. (It makes the job after begin(), so whoever destroys it finds this ticket or a later
  /// one.)
  void begin(run_ticket number) noexcept { state_.store(number << 1, std::memory_order_relaxed); }
  /// Returns whether the job was destroyed during the call.
  bool end() noexcept { return (state_.exchange(0, std::memory_order_acquire) & dropped) != 0; }

  /// Notes that the job with that ticket is destroyed. Returns true if this is inside the call; end() will then report
  /// it.
  bool note_drop(run_ticket number) noexcept {
    std::uint64_t expected = number << 1;
    return state_.compare_exchange_strong(expected, number << 1 | dropped, std::memory_order_release,
                                          std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t dropped = 1;

  sync::atomic<std::uint64_t> state_{0};  // twice the ticket (0 for no call), and `dropped`
};

}  // namespace rondo::detail
