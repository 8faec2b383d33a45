// What a recurrence should do, as simply as possible: the model walks its grid from point to point.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <rondo/manual_timer.hpp>

namespace rondo::test {

/// Times and durations of the models, in nanoseconds.
using ns = std::int64_t;
constexpr ns never = std::numeric_limits<ns>::max();

/// The jitter that a seed draws for the points of a grid, as fractions of the gap. The library chooses these numbers,
/// so the model observes them: for gaps of 2^53 ns, each is a whole number of nanoseconds.
class draws {
 public:
  static double of(std::uint64_t seed, std::uint64_t point) {
    static std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<double>> all;
    std::vector<double>& some = all[{seed, point / at_once}];
    if (some.empty()) some = watched(seed, point / at_once * at_once);
    return some[point % at_once];
  }

 private:
  static constexpr std::uint64_t at_once = 512;  // a duration can hold almost twice as many such gaps
  static constexpr ns gap = ns{1} << 53;

  /// The draws from `first` on. The points before it have gaps that are too short for jitter.
  static std::vector<double> watched(std::uint64_t seed, std::uint64_t first) {
    std::vector<double> seen;
    std::vector<duration> gaps(first == 0 ? 0 : first - 1, duration(1));
    const auto is_short = static_cast<ns>(gaps.size());
    gaps.resize(gaps.size() + at_once, duration(gap));
    const time_point start = time_point::min() + duration(gap);
    manual_timer time({.tick = duration(1)}, start);
    const recurrence r = first == 0 ? every(duration(gap)) : intervals(gaps);
    time.schedule(r.first_after(duration(0)).times(first + at_once).jitter(1, seed), [&](const firing& f) {
      const auto n = static_cast<ns>(f.run) - 1;
      const ns grid = std::min(n, is_short) + std::max<ns>(n - is_short, 0) * gap;
      if (f.run > first)
        seen.push_back(static_cast<double>((f.due - start).count() - grid) / static_cast<double>(gap));
    });
    while (time.advance_to_next() != 0) continue;
    return seen;
  }
};

/// A point of a grid.
struct grid_point {
  ns grid = 0;                                     // its position
  ns due = 0;                                      // when its run is due: `grid` plus the jitter
  std::uint64_t gaps = 0;                          // how many of the recurrence's gaps precede it
  ns run_before = std::numeric_limits<ns>::min();  // when the run before was due, including its jitter
};

/// A recurrence, or a single run.
struct plan {
  enum class kind { once, every, after_completion, intervals, cycle, backoff };
  enum class start { one_gap, after, at, aligned };

  kind what = kind::once;
  std::vector<ns> gaps;  // those of a list; otherwise the only gap, or the first
  double factor = 1;     // of backoff()
  ns cap = 0;            // of backoff()
  start first_is = start::one_gap;
  ns first_time = 0;
  std::uint64_t times = 0;  // 0 is no limit
  double jitter = 0;
  std::uint64_t seed = 0;
  missed_runs missed = missed_runs::skip;
  std::size_t burst_limit = 1000;
  overlapping_runs overlap = overlapping_runs::skip;

  bool is_list() const { return what == kind::intervals || what == kind::cycle || what == kind::backoff; }
  bool from_end() const { return what == kind::after_completion; }
  bool bursts() const { return missed == missed_runs::burst && !from_end(); }

  /// The gap after `index` others.
  std::optional<ns> gap(std::uint64_t index) const {
    if (what == kind::intervals && index >= gaps.size()) return std::nullopt;
    if (what == kind::backoff) {
      auto grown = static_cast<long double>(gaps[0]);
      for (std::uint64_t i = 0; i != index && grown < static_cast<long double>(cap); ++i) grown *= factor;
      return std::min(static_cast<ns>(std::llround(grown)), cap);
    }
    return gaps[index % gaps.size()];
  }

  ns jitter_after(ns gap_before, std::uint64_t index) const {
    if (jitter == 0) return 0;
    return static_cast<ns>(draws::of(seed, index) * jitter * static_cast<double>(gap_before));
  }

  /// The point one gap after `p`, counted from `from`, or none at the end of a list.
  std::optional<grid_point> following(const grid_point& p, ns from) const {
    const auto step = gap(p.gaps);
    if (!step) return std::nullopt;
    const ns grid = from + *step;
    return grid_point{grid, grid + jitter_after(*step, p.gaps + 1), p.gaps + 1};
  }
  std::optional<grid_point> following(const grid_point& p) const { return following(p, p.grid); }

  /// The first point of a timer that is scheduled at `now`.
  grid_point first(ns now) const {
    if (first_is == start::one_gap) return *following({now, now, 0}, now);
    if (first_is == start::aligned) {
      const ns since_origin = (now - first_time) % gaps[0];
      const ns last = now - (since_origin < 0 ? since_origin + gaps[0] : since_origin);
      return *following({last, last, 0});
    }
    if (first_time == never) return {never, never, 0};
    const ns wanted = first_is == start::after ? now + first_time : first_time;
    grid_point p{wanted, wanted, 0};
    while (gap(p.gaps) && p.grid + *gap(p.gaps) <= now) p = {p.grid + *gap(p.gaps), 0, p.gaps + 1};
    const ns soonest = std::max(wanted, now);
    p.due = soonest + jitter_after(is_list() ? soonest - now : gaps[0], p.gaps);
    return p;
  }

  /// What to do at `now`, in a tick that began at `tick`, about a point whose time has come. Later points have come if
  /// their tick has begun.
  struct look {
    grid_point run;            // the point that runs
    std::uint64_t missed = 0;  // points without a run
    std::uint64_t points = 1;  // points that have come
    std::optional<grid_point> next;
  };
  look look_at(const grid_point& planned, ns now, ns tick) const {
    if (from_end()) return {planned, 0, 1, std::nullopt};
    std::vector<grid_point> come{planned};
    // A point is as late as its run. Jitter delays the run, so it does not cause missed points.
    for (ns due = std::max(planned.due, planned.run_before); gap(come.back().gaps);
         due += *gap(come.back().gaps - 1)) {
      if (due + *gap(come.back().gaps) > tick) break;
      come.push_back(*following(come.back()));
    }
    const std::size_t kept = missed == missed_runs::burst ? burst_limit : 1;
    look l{planned, 0, come.size(), std::nullopt};
    l.missed = come.size() > kept ? come.size() - kept : 0;
    if (missed != missed_runs::burst) {
      const bool moves = missed == missed_runs::delay && l.missed != 0;
      l.next = following(come.back(), moves ? now : come.back().grid);
    } else {
      while (l.missed != 0 && come[l.missed].due > tick)
        --l.missed;  // a point that is delayed by its jitter is not late yet
      l.run = come[l.missed];
      l.next = following(l.run);
    }
    if (l.next) l.next->run_before = std::max(planned.run_before, l.run.due);
    return l;
  }
};

}  // namespace rondo::test
