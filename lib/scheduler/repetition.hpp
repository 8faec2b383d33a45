// How a periodic timer goes from one run to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <rondo/recurrence.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// Decides what a periodic timer does next: when the point that it waited for has come, when a run has ended, and when a
/// user has moved it. It is a state machine and nothing else: it knows no wheel, executor or lock.
///
/// Besides the runs in progress and those submitted, at most two are to come: the queued one, which
/// overlapping_runs::queue_one keeps until no other run is in progress, and the upcoming one. The timer waits for the
/// point of one of them. It does not if that is deferred: a late run of a burst waits until the run before it has ended.
class repetition {
 public:
  using occurrence = recurrence::occurrence;

  /// Of a pass.
  struct moment {
    time_point now;
    time_point tick;  // its beginning
  };

  /// What to do when a point has come.
  struct step {
    std::optional<occurrence> run;       // begins now
    std::uint64_t missed = 0;            // points; `run` is told of them
    std::uint64_t overlapped = 0;        // points dropped, as a run was in progress
    std::optional<time_point> wait_for;  // none: the timer waits for nothing, until a run ends
    bool is_late = false;                // wait_for has come as well, in a burst: it may run in the same pass
  };

  /// A timer that waits for its first run.
  repetition(recurrence plan, const occurrence& first) : plan_(std::move(plan)), upcoming_(first) {}

  /// The point that the timer waited for has come. `busy`: another run is in progress or submitted. `submits`: a run goes
  /// to an executor, so that it has not ended when the next point comes.
  step point_came(const moment&, bool busy, bool submits);

  /// A run has ended or was dropped, and no other is in progress or submitted. `waits`: the timer waits for a point.
  /// Returns the point to wait for from now on; none: nothing changes.
  std::optional<time_point> run_ended(time_point ended, bool waits);

  /// The timer waits for `due` now, and its grid goes on from there. `taken_back` submitted runs do not start any more;
  /// `oldest` is the first of them (null: none).
  void moved_to(time_point due, std::size_t taken_back, const occurrence* oldest) noexcept;

  /// Whether no run is to come, except those submitted.
  bool over() const noexcept { return exhausted_ && !queued_; }
  /// How many have started or are submitted.
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  void begin_queued(step&) noexcept;
  void begin_upcoming(const recurrence::look&, step&) noexcept;
  void overlap(const recurrence::look&, step&) noexcept;
  void wait_for_upcoming(const moment&, bool at_once, step&) noexcept;
  bool bursts() const noexcept { return plan_.on_missed() == missed_runs::burst; }
  bool allows_overlap() const noexcept { return plan_.on_overlap() == overlapping_runs::allow; }

  recurrence plan_;
  occurrence upcoming_;     // while points are to come; with after_completion() the run that began last
  std::uint64_t runs_ = 0;  // started or submitted
  std::optional<occurrence> queued_;
  bool queued_is_due_ = false;  // what it was queued behind has ended: the timer waits for it
  bool deferred_ = false;       // the upcoming run
  bool exhausted_ = false;      // no points are to come any more
  bool catching_up_ = false;    // the run that began last was a late one of a burst
};

}  // namespace rondo::detail
