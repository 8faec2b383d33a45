// How a periodic timer goes from one run to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <rondo/recurrence.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// Says what a periodic timer does next when the point that it waited for has come, when a run has ended, and when a
/// user has moved it. It knows neither wheel nor executor nor locks: what of these matters is an argument, and what is to
/// be done a result.
///
/// Besides the runs in progress and those submitted there are at most two: the queued one, which overlapping_runs::
/// queue_one keeps until no other run is in progress, and the upcoming one. The timer waits for the point of one of
/// them, unless that is deferred, as a late run of a burst is until the run before it has ended.
class repetition {
 public:
  using occurrence = recurrence::occurrence;

  /// Of a pass.
  struct moment {
    time_point now;
    time_point tick;  // its beginning
  };

  /// What is to be done when a point has come.
  struct step {
    std::optional<occurrence> run;       // begins now
    std::uint64_t missed = 0;            // points; `run` is told of them
    std::uint64_t overlapped = 0;        // points dropped, as a run was in progress
    std::optional<time_point> wait_for;  // none: the timer waits for nothing, until a run ends
    bool is_late = false;                // wait_for has come as well, in a burst: it may run in the same pass
  };

  /// A timer that waits for its first run.
  repetition(recurrence plan, const occurrence& first) : plan_(std::move(plan)), upcoming_(first) {}

  /// The point that the timer waited for has come. `busy`: a run is in progress or was submitted. `one_at_a_time`: the
  /// run that may begin does not end before the next point is asked for.
  step point_came(const moment&, bool busy, bool submits);

  /// A run has ended or was dropped, and none is in progress or submitted. `waits`: the timer waits for a point.
  /// Returns the point to wait for from now on; none: all stays as it is.
  std::optional<time_point> run_ended(time_point ended, bool waits);

  /// The timer waits for `due` now, and its grid goes on from there. So many runs that were submitted are taken back,
  /// the oldest of which was `oldest` (null: none).
  void moved_to(time_point due, std::size_t taken_back, const occurrence* oldest) noexcept;

  /// Whether no run is to come but those submitted.
  bool over() const noexcept { return exhausted_ && !queued_; }
  /// How many have started or are submitted.
  std::uint64_t runs() const noexcept { return runs_; }
  /// When the first run is due.
  time_point upcoming_due() const noexcept { return upcoming_.due; }

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
