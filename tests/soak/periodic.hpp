// Periodic timers.
#pragma once

#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "one_shot.hpp"
#include "pattern.hpp"
#include "station.hpp"

namespace soak {

/// Checks when each run is due and which number it has. Is slow or throws at times, and may move or cancel itself.
class periodic : public life {
 public:
  periodic(station& s, pattern p, std::uint64_t seed)
      : life(p.points.first), station_(s), pattern_(std::move(p)), chance_(seed) {}

  void run(const rondo::firing& f) {
    if (pattern_.is_sequential() || station_.runs_inline())
      always().check(invariant::no_overlap, running == 1, pattern_.when);
    const unsigned nature = look_at(f);
    if (nature < 3) work_for(3ms);
    if (nature < 1 && pattern_.is_sequential()) cancel_itself(f.id);
    if (nature > 10 && pattern_.moves_itself && nature < 30) move_itself(f.id);
    note_end();
    if (nature >= 990) {
      ++station_.books().threw;
      throw std::runtime_error("a periodic task that throws");
    }
  }

 private:
  /// Does all checks, and then returns a number that decides what the run does, 0 … 999.
  unsigned look_at(const rondo::firing& f) {
    const std::lock_guard hold(mutex_);
    const bool is_in_sequence = pattern_.is_sequential() || station_.runs_inline();
    if (is_in_sequence)
      always().check(invariant::run_numbers, station_.is_moody() ? f.run > last_.run : f.run == last_.run + 1,
                     pattern_.when, "run", f.run, "after", last_.run);
    if (const auto most = pattern_.when.times())
      always().check(invariant::times_kept, f.run <= *most, pattern_.when, "run", f.run);
    always().check(invariant::on_grid, !is_in_sequence ? is_on_grid(f) : is_on_grid(f) && follows(f),
                   pattern_.when, "on", station_.name(), "run", f.run, "due",
                   (f.due - pattern_.points.first).count(), "ns after the first, missed", f.missed,
                   "; before: due", (last_.due - pattern_.points.first).count(), "missed", last_.missed);
    last_ = f;
    return static_cast<unsigned>(chance_.below(1000));
  }

  /// (With missed_runs::delay the grid moves, so any due time is accepted.)
  bool is_on_grid(const rondo::firing& f) const {
    if (pattern_.what == pattern::kind::after_completion) return true;
    if (pattern_.when.on_missed() == rondo::missed_runs::delay) return true;
    if (f.run == 1) return f.due >= pattern_.points.first;  // at once, if it was scheduled later than that
    return pattern_.points.has(f.due, pattern_.jitter);
  }

  /// Checks the run against the one before. Precondition: runs do not overlap.
  bool follows(const rondo::firing& f) const {
    if (last_.run == 0 || (last_.run == 1 && last_.due != pattern_.points.first)) return true;
    if (pattern_.what == pattern::kind::after_completion) return f.due >= last_end_ + pattern_.gap;
    if (pattern_.what == pattern::kind::list || pattern_.jitter.count() != 0) return true;
    const auto missed_runs = pattern_.when.on_missed();
    const bool may_move = missed_runs == rondo::missed_runs::delay;
    const rondo::duration gap = f.due - last_.due;
    if (!station_.runs_inline() || (may_move && last_.missed != 0)) return gap >= pattern_.gap;
    // No point is lost: in a burst `missed` counts the points beyond the limit, otherwise the points that are skipped.
    const std::uint64_t missed = missed_runs == rondo::missed_runs::burst ? f.missed : last_.missed;
    return gap == pattern_.gap * static_cast<std::int64_t>(1 + missed);
  }

  /// Moves the grid, from inside a run.
  void move_itself(rondo::timer_id self) {
    const rondo::time_point to = from_now(1ms + pattern_.gap);
    if (!station_.timers().reschedule_at(self, to)) return;
    const std::lock_guard hold(mutex_);
    pattern_.points.first = to;
    last_.due = to - pattern_.gap;
    last_.missed = 0;
  }

  void cancel_itself(rondo::timer_id self) {
    const rondo::cancel_result said = station_.timers().cancel_and_wait(self);
    if (said == rondo::cancel_result::running) ruled_out = true;
  }

  void note_end() {
    const std::lock_guard hold(mutex_);
    last_end_ = clock::now();
  }

  station& station_;
  std::mutex mutex_;  // runs may overlap
  pattern pattern_;
  dice chance_;
  rondo::firing last_;
  rondo::time_point last_end_;
};

}  // namespace soak
