// When a timer runs again: a value, and all the arithmetic of it, without any scheduler.
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

/// What becomes of points of the grid that went by because the driver stalled or a task was slow. Say
/// every(300ms) from 0 is looked at again only at 950, after its run at 300.
///
/// A point has gone by when its tick has come: the scheduler's first tick at or after it. Late by less than a period,
/// or with the next point's tick still to come, misses nothing and keeps the grid. So a period of one tick misses
/// nothing, wherever in a tick its points lie; of several points in one tick the first one runs.
enum class missed_runs {
  skip,   ///< runs once at 950 (`due` 600, `missed` 1) and goes on at 1200, 1500, …
  burst,  ///< runs for 600 and for 900, each with its own `due`, and then at 1200. More than the limit at a
          ///< time: the newest, the others are missed
  delay   ///< runs once at 950 (`missed` 1) and goes on at 1250, 1550, …: the grid moves
};

/// What becomes of a point of the grid that comes while the run before it is still in progress on an
/// executor (handed over and not started included).
///
/// What is dropped counts in `statistics::overlapped`. The late runs of missed_runs::burst, and points that
/// come while one of them is in progress, are not dropped but follow one after another as each ends; with
/// `allow` at once.
enum class overlapping_runs {
  skip,       ///< it is dropped
  queue_one,  ///< one run is kept back until that one ends, the others are dropped
  allow       ///< both run at once: the callable is called concurrently. (If jobs start out of order and the
              ///< others are taken back by reschedule_*(), `firing::run` counts on from the runs begun.)
};

namespace detail {

/// Throws std::invalid_argument.
[[noreturn]] RONDO_EXPORT void refuse_times(std::intmax_t n);

}  // namespace detail

/// When a timer runs: made by every(), after_completion(), intervals(), cycle() or backoff(), and refined by
/// its members, each of which returns a new value:
///
///     scheduler.schedule(every(1s).times(10).jitter(0.1), work);
///
/// A value: copied for the price of a pointer, compared, and printed as the calls that make it. Its members
/// may be called from any thread.
class RONDO_EXPORT recurrence {
 public:
  ///@{
  /// So many runs, also failed and rejected ones; missed points do not count. 0 or less:
  /// std::invalid_argument.
  recurrence times(std::uint64_t n) const;
  template <std::signed_integral Integer>
  recurrence times(Integer n) const {
    if (n < 1) detail::refuse_times(n);
    return times(static_cast<std::uint64_t>(n));
  }
  ///@}

  /// The first run is `delay` after scheduling, instead of one period or gap; of a list, the first gap
  /// follows it. Replaces an earlier first_after() or first_at().
  recurrence first_after(any_duration delay) const;

  /// The first run is at `t`, and the grid starts there. Past: the first run is due when it is scheduled, the
  /// others are at those points of the grid that are still to come, and nothing is missed.
  recurrence first_at(any_time_point t) const;

  ///@{
  /// Delays each run by a random part, 0 … `fraction`, of the period (of a list: of the gap before that
  /// run). The grid stays where it is, and nothing of it is missed for that. The draws follow from the seed;
  /// without one every timer draws its own. Not in 0 … 1, or NaN: std::invalid_argument.
  recurrence jitter(double fraction) const;
  recurrence jitter(double fraction, std::uint64_t seed) const;
  ///@}

  /// What becomes of points that went by, instead of `skip`. `burst_limit`, of burst alone: how many are made up
  /// for at a time. 0: std::invalid_argument.
  recurrence on_missed(missed_runs, std::size_t burst_limit = 1000) const;
  /// What becomes of points that come while a run is in progress, instead of `skip`.
  recurrence on_overlap(overlapping_runs) const;

  /// How many runs there are at most, if times() was said.
  std::optional<std::uint64_t> times() const noexcept { return times_; }
  /// What becomes of points that went by.
  missed_runs on_missed() const noexcept { return missed_; }
  /// What becomes of points that come while a run is in progress.
  overlapping_runs on_overlap() const noexcept { return overlap_; }
  /// Whether gaps are counted from the end of the run before, as with after_completion(); else from due to
  /// due.
  bool counts_from_end() const noexcept { return kind_ == kind::after_completion; }

  /// Whether the same was said of both, in whichever order. (Two that jitter without a seed are equal, though their
  /// draws are not.) O(length of the list).
  friend RONDO_EXPORT bool operator==(const recurrence&, const recurrence&) noexcept;
  /// Prints the calls that make it: every(300ms).times(3).
  friend RONDO_EXPORT std::ostream& operator<<(std::ostream&, const recurrence&);

  // What schedulers ask, and whoever wants to know in advance. Pure: the time is an argument.

  /// A run that is to come.
  struct occurrence {
    time_point due;                             ///< when
    time_point grid;                            ///< `due` without its jitter
    std::uint64_t gaps = 0;                     ///< of the list, used so far
    std::uint64_t run = 1;                      ///< its number: 1, 2, …
    std::uint64_t seed = 0;                     ///< of the jitter
    time_point not_before = time_point::min();  ///< the run before, whose jitter may put it behind this one
    /// Whether all members are equal.
    friend bool operator==(const occurrence&, const occurrence&) = default;
  };

  /// What is to be done about an occurrence.
  struct look {
    occurrence run;            ///< what runs: the one looked at, or with too long a burst a later one
    std::uint64_t missed = 0;  ///< points that went by without a run; `run` is told of them
    std::uint64_t points = 1;  ///< points that have come, the one looked at included
    bool last = false;         ///< no run follows
    /// The point that comes then, perhaps past. None at the end of a list, and with after_completion().
    std::optional<occurrence> next;
  };

  /// The first run of a timer that is scheduled at `now`. `seed` is for a jitter without one.
  occurrence first(time_point now, std::uint64_t seed = 0) const;

  /// What is to be done about `planned` at `now`, when `planned.due` has come. O(1), of a list O(its
  /// length), of a backoff that has not reached its cap O(points that went by).
  look look_at(const occurrence& planned, time_point now) const;
  /// The same for a scheduler whose current tick began at `tick`: points after that have not gone by yet.
  /// Precondition: tick <= now.
  look look_at(const occurrence& planned, time_point now, time_point tick) const;

  /// The run after `previous`, if that ran at `now` (with after_completion(): ended at `now`). None if
  /// `previous` was the last.
  std::optional<occurrence> next(const occurrence& previous, time_point now) const;

 private:
  enum class kind { every, after_completion, intervals, cycle, backoff };
  enum class start { one_gap, after, at };
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
  std::uint64_t move_over(point&, time_point until, std::uint64_t limit) const noexcept;
  duration jitter_of(duration before, const occurrence&) const noexcept;
  occurrence occurrence_at(const point&, const occurrence& model) const noexcept;
  std::optional<occurrence> after(const point&, const occurrence& model, time_point from) const noexcept;
  bool is_last(std::uint64_t run) const noexcept { return times_ && run >= *times_; }

  kind kind_;
  duration gap_;  // of every, after_completion; the first of backoff; all gaps of a cycle together
  std::shared_ptr<const std::vector<duration>> gaps_;  // of intervals and cycle
  double factor_ = 1;
  duration cap_{};
  std::optional<std::uint64_t> times_;
  start start_ = start::one_gap;
  duration first_after_{};
  time_point first_at_{};
  double jitter_ = 0;
  std::optional<std::uint64_t> seed_;
  missed_runs missed_ = missed_runs::skip;
  std::size_t burst_limit_ = 1000;
  overlapping_runs overlap_ = overlapping_runs::skip;
};

/// Fixed rate: runs at first + k * period. The grid is kept for ever: a period that is no multiple of the
/// tick does not drift. Not positive: std::invalid_argument.
RONDO_EXPORT recurrence every(any_duration period);

/// Fixed delay: each run starts `delay` after the one before has ended (or was dropped by its executor), so
/// runs neither overlap nor are missed. Not positive: std::invalid_argument.
RONDO_EXPORT recurrence after_completion(any_duration delay);

///@{
/// Runs with these gaps from due to due, then ends: intervals({1s, 2s, 5s}) runs at 1, 3 and 8 s. Points that
/// were missed or dropped are not made up for. Empty, or a gap not positive: std::invalid_argument.
RONDO_EXPORT recurrence intervals(std::vector<duration> gaps);
RONDO_EXPORT recurrence intervals(std::initializer_list<duration> gaps);
///@}

///@{
/// The same gaps as in intervals(), over and over again.
RONDO_EXPORT recurrence cycle(std::vector<duration> gaps);
RONDO_EXPORT recurrence cycle(std::initializer_list<duration> gaps);
///@}

/// Gaps from due to due that grow: first, first * factor, first * factor², … (to the nearest nanosecond) up
/// to `cap`, and that for ever. `first` not positive, `factor` below 1 or NaN, `cap` below `first`:
/// std::invalid_argument.
RONDO_EXPORT recurrence backoff(any_duration first, double factor, any_duration cap);

}  // namespace rondo
