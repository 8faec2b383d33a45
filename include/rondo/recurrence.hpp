// When a timer runs again: a value type with all of its arithmetic, independent of any scheduler.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

#include <rondo/export.hpp>
#include <rondo/time.hpp>

namespace rondo {

/// What happens to grid points that passed before their run could start, because the driver stalled or a task was slow.
/// The examples are for every(300ms) from 0, where the run after 300 cannot start until 950.
///
/// A point has passed when its tick has come, that is, the scheduler's first tick at or after it. A run that is late by
/// less than a period, or that starts before the next point's tick, misses nothing and keeps the grid. A period of one
/// tick therefore misses nothing, wherever in a tick its points lie. If several points fall into one tick, the first
/// one runs.
enum class missed_runs {
  /// Runs once at 950 (`due` 600, `missed` 1), then at 1200, 1500, …
  skip,
  /// Runs for 600 and for 900, each with its own `due`, then at 1200. If more points than the limit have passed, only
  /// the newest of them are run, and the others are missed.
  burst,
  /// Runs once at 950 (`missed` 1), then at 1250, 1550, …: the grid moves.
  delay
};

/// What happens to a grid point that arrives while the previous run is in progress on an executor (or while the
/// executor has its job and has not started it).
///
/// Dropped points are counted in `statistics::overlapped`. The late runs of missed_runs::burst, and points that arrive
/// while one of these is in progress, are not dropped: each starts when the run before it ends, or at once with
/// `allow`.
enum class overlapping_runs {
  /// The point is dropped.
  skip,
  /// One run is deferred until the one in progress ends; further points are dropped.
  queue_one,
  /// Both run at once: the callable is called concurrently. (If jobs start out of order and reschedule_*() takes the
  /// others back, `firing::run` continues from the runs that have begun.)
  allow
};

namespace detail {

/// Throws std::invalid_argument.
[[noreturn]] RONDO_EXPORT void refuse_times(std::intmax_t n);

}  // namespace detail

/// When a timer runs. Created by every(), after_completion(), intervals(), cycle() or backoff(), and refined by its
/// members, each of which returns a new value:
///
///     scheduler.schedule(every(1s).times(10).jitter(0.1), work);
///
/// A value type: it can be copied without allocation, compared, and printed as the calls that create it. Any number of
/// threads may read one recurrence.
class RONDO_EXPORT recurrence {
 public:
  ///@{
  /// Ends after `n` runs. Failed and rejected runs count; missed points do not. Throws std::invalid_argument if `n` is
  /// 0 or less.
  recurrence times(std::uint64_t n) const;
  template <std::signed_integral Integer>
  recurrence times(Integer n) const {
    if (n < 1) detail::refuse_times(n);
    return times(static_cast<std::uint64_t>(n));
  }
  ///@}

  /// The first run is `delay` after scheduling, instead of one period or gap; in a list, the first gap follows that
  /// run. Replaces an earlier first_after(), first_at() or aligned_to().
  recurrence first_after(any_duration delay) const;

  /// The first run is at `t`, and the grid starts there. If `t` is in the past, the first run is due when the timer is
  /// scheduled and the others at the grid points still to come; nothing counts as missed.
  recurrence first_at(any_time_point t) const;

  /// The grid is `origin` + k * period, for all integers k, and the first run is at the first of these points that is
  /// later than the time of scheduling. So timers with the same period and origin are due at the same moments, whenever
  /// each was scheduled. As usual, reschedule_*() and missed_runs::delay move the grid. Replaces an earlier
  /// first_after() or first_at(), and these replace it. Throws std::invalid_argument if this is not an every().
  recurrence aligned_to(any_time_point origin) const;

  ///@{
  /// Delays each run by a random part, 0 … `fraction`, of the period (in a list, of the gap before that run). The grid
  /// does not move, and jitter causes no missed points. Equal seeds give equal delays; without a seed, each scheduled
  /// timer draws its own. Throws std::invalid_argument if the fraction is outside 0 … 1 or NaN.
  recurrence jitter(double fraction) const;
  recurrence jitter(double fraction, std::uint64_t seed) const;
  ///@}

  /// What happens to points that have passed, instead of `skip`. `burst_limit` is the maximum number of them that run;
  /// only `burst` uses it. Throws std::invalid_argument if `burst_limit` is 0.
  recurrence on_missed(missed_runs, std::size_t burst_limit = 1000) const;
  /// What happens to points that arrive while a run is in progress, instead of `skip`.
  recurrence on_overlap(overlapping_runs) const;

  /// The maximum number of runs, if times() has set one.
  std::optional<std::uint64_t> times() const noexcept { return times_; }
  /// What happens to points that have passed.
  missed_runs on_missed() const noexcept { return missed_; }
  /// What happens to points that arrive while a run is in progress.
  overlapping_runs on_overlap() const noexcept { return overlap_; }
  /// Whether it ends by itself: because of times(), or at the end of the list of intervals().
  bool ends() const noexcept { return times_ || kind_ == kind::intervals; }
  /// Whether gaps are counted from the end of the previous run, as with after_completion(); otherwise they are counted
  /// from deadline to deadline.
  bool counts_from_end() const noexcept { return kind_ == kind::after_completion; }

  /// Whether all properties are equal, regardless of the order in which they were set. (Two recurrences with jitter and
  /// without a seed are equal, although their delays differ.) O(length of the list).
  friend RONDO_EXPORT bool operator==(const recurrence&, const recurrence&) noexcept;
  /// Prints the calls that create it: every(300ms).times(3).
  friend RONDO_EXPORT std::ostream& operator<<(std::ostream&, const recurrence&);

  // For schedulers, and for users who want to know the runs in advance. Pure functions: the time is an argument.

  /// A run in the future.
  struct occurrence {
    time_point due;          ///< when it is due
    time_point grid;         ///< `due` without its jitter
    std::uint64_t gaps = 0;  ///< how many gaps of the list have been used
    std::uint64_t run = 1;   ///< its number: 1, 2, …
    std::uint64_t seed = 0;  ///< the seed of the jitter
    /// The latest deadline of earlier runs; because of jitter it may be after `due`.
    time_point not_before = time_point::min();
    /// Whether all members are equal.
    friend bool operator==(const occurrence&, const occurrence&) = default;
  };

  /// The decision about a planned occurrence.
  struct look {
    occurrence run;            ///< what runs: the planned one or, if a burst exceeds its limit, a later one
    std::uint64_t missed = 0;  ///< points that passed without a run; reported to `run`
    std::uint64_t points = 1;  ///< points that have come, including the planned one
    bool last = false;         ///< whether `run` is the last
    /// The point after `run`, which may be in the past. None at the end of a list, and with after_completion().
    std::optional<occurrence> next;
  };

  /// The first run of a timer that is scheduled at `now`. If the jitter has no seed of its own, it uses `seed`.
  occurrence first(time_point now, std::uint64_t seed = 0) const;

  /// Decides at `now` about `planned`, whose `due` has come. O(1); for a list O(its length); for a backoff that has not
  /// reached its cap O(points that have passed).
  look look_at(const occurrence& planned, time_point now) const;
  /// As above, for a scheduler whose current tick began at `tick`: points after `tick` have not passed. Precondition:
  /// tick <= now.
  look look_at(const occurrence& planned, time_point now, time_point tick) const;

  /// The maximum number of runs to come after the first `runs` runs, if the next one follows the first `gaps` gaps.
  /// Precondition: ends().
  std::uint64_t left(std::uint64_t runs, std::uint64_t gaps) const noexcept;

  /// The run after `previous`, which started at `now` (with after_completion(): ended at `now`). Returns std::nullopt
  /// if `previous` was the last.
  std::optional<occurrence> next(const occurrence& previous, time_point now) const;

 private:
  enum class kind { every, after_completion, intervals, cycle, backoff };
  enum class start { one_gap, after, at, aligned };
  struct point;
  struct stretch;

  friend RONDO_EXPORT recurrence every(any_duration period);
  friend RONDO_EXPORT recurrence after_completion(any_duration delay);
  friend RONDO_EXPORT recurrence intervals(std::vector<duration> gaps);
  friend RONDO_EXPORT recurrence cycle(std::vector<duration> gaps);
  friend RONDO_EXPORT recurrence backoff(any_duration first, double factor, any_duration cap);

  recurrence(kind k, duration gap) noexcept : kind_(k), gap_(gap) {}

  std::optional<duration> gap(std::uint64_t index) const noexcept;
  std::optional<stretch> repeated_from(std::uint64_t gaps) const noexcept;
  time_point aligned_after(time_point now) const noexcept;
  std::uint64_t move_over(point&, time_point until, std::uint64_t limit) const noexcept;
  duration jitter_of(duration before, const occurrence&) const noexcept;
  occurrence occurrence_at(const point&, const occurrence& model) const noexcept;
  std::optional<occurrence> after(const point&, const occurrence& model, time_point from) const noexcept;
  bool is_last(std::uint64_t run) const noexcept { return times_ && run >= *times_; }

  kind kind_;
  duration gap_;  // of every and after_completion; the first gap of backoff; the sum of all gaps of cycle
  std::shared_ptr<const std::vector<duration>> gaps_;  // of intervals and cycle
  double factor_ = 1;
  duration cap_{};
  std::optional<std::uint64_t> times_;
  start start_ = start::one_gap;
  duration first_after_{};
  time_point first_at_{};  // or the origin of aligned_to()
  double jitter_ = 0;
  std::optional<std::uint64_t> seed_;
  missed_runs missed_ = missed_runs::skip;
  std::size_t burst_limit_ = 1000;
  overlapping_runs overlap_ = overlapping_runs::skip;
};

/// Fixed rate: runs at first + k * period. It does not drift, even if the period is not a multiple of the tick. Throws
/// std::invalid_argument if the period is not positive.
RONDO_EXPORT recurrence every(any_duration period);

/// Fixed delay: each run starts `delay` after the end of the previous one (or after its executor dropped it), so runs
/// are never missed and never overlap. Throws std::invalid_argument if the delay is not positive.
RONDO_EXPORT recurrence after_completion(any_duration delay);

///@{
/// Runs with these gaps from deadline to deadline, then ends: intervals({1s, 2s, 5s}) runs at 1, 3 and 8 s. A missed or
/// dropped point uses up its gap. Throws std::invalid_argument if the list is empty or a gap is not positive.
RONDO_EXPORT recurrence intervals(std::vector<duration> gaps);
RONDO_EXPORT recurrence intervals(std::initializer_list<duration> gaps);
///@}

///@{
/// Repeats these gaps indefinitely: cycle({1s, 2s}) runs at 1, 3, 4, 6, 7 s, … Throws as intervals() does.
RONDO_EXPORT recurrence cycle(std::vector<duration> gaps);
RONDO_EXPORT recurrence cycle(std::initializer_list<duration> gaps);
///@}

/// Growing gaps from deadline to deadline: first, first * factor, first * factor², … (to the nearest nanosecond), up to
/// `cap`, which then repeats indefinitely. Throws std::invalid_argument if `first` is not positive, `factor` is below 1
/// or NaN, or `cap` is below `first`.
RONDO_EXPORT recurrence backoff(any_duration first, double factor, any_duration cap);

}  // namespace rondo
