// How a periodic timer goes from one run to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <rondo/recurrence.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// Decides what a periodic timer does next: when the point that it waited for has come, when a run has ended, and when
/// a user has moved it. It is only a state machine: it knows no wheel, executor or lock.
///
/// Apart from the runs in progress and those submitted, at most two runs are to come: the queued one, which
/// overlapping_runs::queue_one keeps until no other run is in progress, and the upcoming one. The timer waits for the
/// point of one of them, unless that run is deferred: a late run of a burst waits until the previous run has ended.
class repetition {
 public:
  using occurrence = recurrence::occurrence;

  /// The time of a pass.
  struct moment {
    time_point now;
    time_point tick;  // the beginning of the tick in progress
  };

  /// What to do when a point has come.
  struct step {
    std::optional<occurrence> run;       // begins now
    std::uint64_t missed = 0;            // points; they are reported to `run`
    std::uint64_t overlapped = 0;        // points dropped because a run was in progress
    std::optional<time_point> wait_for;  // none if the timer waits for nothing until a run ends
    bool is_late = false;                // in a burst, wait_for has also come: it may run in the same pass
  };

  /// A timer that waits for its first run.
  repetition(recurrence plan, const occurrence& first) : plan_(std::move(plan)), upcoming_(first) {}

  /// Called when the point that the timer waited for has come. `busy` means that another run is in progress or
  /// submitted. `submits` means that a run goes to an executor, so it has not ended when the next point comes.
  step point_came(const moment&, bool busy, bool submits);

  /// Called when a run has ended or was dropped, and no other is in progress or submitted. `waits` means that the timer
  /// waits for a point. Returns the point to wait for from now on, or none if nothing changes.
  std::optional<time_point> run_ended(time_point ended, bool waits);

  /// Called when the timer has been moved to `due`; its grid continues from there. `taken_back` submitted runs no
  /// longer start; `oldest` is the first of them, or null if there are none.
  void moved_to(time_point due, std::size_t taken_back, const occurrence* oldest) noexcept;

  bool allows_overlap() const noexcept { return plan_.on_overlap() == overlapping_runs::allow; }
  /// Whether no run is to come, apart from those submitted.
  bool over() const noexcept { return exhausted_ && !queued_; }
  /// Whether a number of runs is to come, and that number, apart from those submitted.
  bool ends() const noexcept { return plan_.ends(); }
  std::uint64_t left() const noexcept;
  /// How many runs have started or are submitted.
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  void begin_upcoming(const recurrence::look&, step&) noexcept;
  void overlap(const recurrence::look&, step&) noexcept;
  bool bursts() const noexcept { return plan_.on_missed() == missed_runs::burst; }

  recurrence plan_;
  occurrence upcoming_;     // while points are to come; with after_completion() the run that began last
  std::uint64_t runs_ = 0;  // started or submitted
  std::optional<occurrence> queued_;
  bool queued_is_due_ = false;  // what it was queued behind has ended: the timer waits for it
  bool deferred_ = false;       // the upcoming run
  bool exhausted_ = false;      // no more points are to come
  bool catching_up_ = false;    // the run that began last was a late one of a burst
};

}  // namespace rondo::detail
