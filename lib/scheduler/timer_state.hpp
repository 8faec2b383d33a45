// The state of a timer: the table of its states, and the transitions between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace rondo::detail {

/// Where a timer waits for its next run.
enum class waits_in : std::uint8_t {
  wheel,       // or the list of what is due in the pass in progress
  never_due,   // nothing: no tick of the clock is its due tick
  retry_list,  // there was no memory to insert it into the wheel
  nowhere,
};

/// The state of one timer, which is a row of this table. The members change it as their comments say. A flat
/// enumeration would need the product of these columns: a periodic timer may wait, be submitted and run, all at the
/// same time.
///
///     life              waits in                    submitted   running   next
///     free              –                           0           0         live
///     live, one-shot    anywhere but nowhere        0           0         live, completed, ended
///                       nowhere                     1           0         live, completed, ended
///     live, periodic    anywhere; nowhere only if   n           m         live, completed, ended
///                       n + m > 0
///     completed, ended  nowhere                     0           m         free
///
/// `live` is what users call pending. `submitted` counts the runs that an executor has and that have not started,
/// `running` counts those in progress. A timer is completed if its last run has begun, or if drain() or stop() has
/// ended it. It is counted as completed when none of its runs is in progress any more. A timer has ended if it was
/// cancelled or handed back, which is counted at once.
///
/// The timer's lock guards the state, with two exceptions, which change only `life`: schedule() makes a free timer live
/// that nobody else knows yet, and cancel() makes a plain timer free that waits in the wheel, under its stripe's lock.
class timer_state {
 public:
  bool live() const noexcept { return get() == life::live; }
  bool completed() const noexcept { return get() == life::completed; }
  waits_in where() const noexcept { return where_; }
  std::uint32_t submitted() const noexcept { return submitted_; }
  std::uint32_t running() const noexcept { return running_; }
  bool in_progress() const noexcept { return running_ != 0 || submitted_ != 0; }

  /// free → live. The timer waits in the wheel, which is what the state of a free one already says.
  void begin_life() noexcept { set(life::live); }
  void wait_in(waits_in where) noexcept { where_ = where; }
  void submit() noexcept { ++submitted_; }
  /// A submitted run is about to start, or will not happen.
  void withdraw_one() noexcept { --submitted_; }
  void withdraw_all() noexcept { submitted_ = 0; }
  void start_run() noexcept { ++running_; }
  void end_run() noexcept { --running_; }
  /// live → completed. Precondition: it waits nowhere, and nothing is submitted.
  void complete() noexcept { set(life::completed); }
  /// live → ended. Precondition: as above.
  void end() noexcept { set(life::ended); }
  /// completed, ended → free. Precondition: the last run in progress is over.
  void free() noexcept {
    where_ = waits_in::wheel;
    submitted_ = running_ = 0;
    set(life::free);
  }
  /// live → free. Precondition: it waits in the wheel, and no run is submitted or in progress.
  void free_waiting() noexcept { set(life::free); }

  /// Describes why the state is not a row of the table, or returns an empty string. If the timer waits in the wheel,
  /// with no run submitted or in progress, nothing more is checked, because schedule() may be writing its life without
  /// the lock.
  std::string fault(bool periodic) const;

 private:
  enum class life : std::uint8_t { free, live, completed, ended };  // memory that reads as zero is free, too

  life get() const noexcept { return life_.load(std::memory_order_relaxed); }
  void set(life l) noexcept { life_.store(l, std::memory_order_relaxed); }

  std::atomic<life> life_{life::free};
  waits_in where_ = waits_in::wheel;
  std::uint32_t submitted_ = 0;
  std::uint32_t running_ = 0;
};

}  // namespace rondo::detail
