// What a scheduler on virtual time should do, as simply as possible: a list of timers that is searched from end to end
// for everything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <rondo/scheduler.hpp>

#include "model/recurrence_model.hpp"

namespace rondo::test {

/// The shortest and the longest of some durations.
struct extremes {
  std::uint64_t count = 0;
  ns shortest = std::numeric_limits<ns>::max(), longest = 0;

  void add(ns d) {
    ++count;
    shortest = std::min(shortest, d);
    longest = std::max(longest, d);
  }
};

/// Where a timer's task runs: on the driver, on the scheduler's executor, or on the timer's own.
enum class runs_on { driver, executor, own_executor };

/// Counts everything in ticks and nanoseconds from its own start, which is 0.
class scheduler_model {
 public:
  scheduler_model(ns tick, std::size_t max_pending) : tick_(tick), max_pending_(max_pending) {}

  /// A run that begins or, if there is an executor, is submitted.
  struct run {
    std::size_t timer;
    std::uint64_t ticket;  // of the hand-over to an executor
    ns due, lateness;
    std::uint64_t number, missed;
    std::optional<std::uint64_t> to_come;  // runs that have not begun
  };
  struct unfired {
    std::size_t timer;
    ns due;
  };
  /// A timer that is pending or running.
  struct listed {
    std::size_t timer;
    std::optional<ns> due;
    std::uint64_t runs;
    bool periodic;
    int running;
  };
  struct counts {
    std::uint64_t scheduled, fired, completed, cancelled, returned, failed, missed, overlapped, rejected;
  };

  ns now() const { return now_; }
  std::size_t pending() const;
  bool pending(std::size_t which) const { return all_[which].live; }
  bool running(std::size_t which) const { return all_[which].running != 0; }
  /// Whether its runs in progress are asked to stop.
  bool asked(std::size_t which) const { return all_[which].asked; }
  /// None if the timer waits for no moment.
  std::optional<ns> due(std::size_t which) const;
  std::vector<listed> list() const;
  runs_on where(std::size_t which) const { return all_[which].where; }
  const plan& how(std::size_t which) const { return all_[which].how; }
  const counts& stats() const { return counts_; }
  const extremes& lateness() const { return lateness_; }
  bool stopped() const { return stopped_; }
  /// How many timers the model has examined so far. This is almost the whole cost of a program.
  std::uint64_t looks() const { return looks_; }

  /// Whether schedule() is refused.
  bool closed() const { return stopped_ || draining_; }
  bool full() const { return max_pending_ != unlimited && pending() >= max_pending_; }

  /// When there is work next, or `never` if there is none.
  ns next_due() const;
  /// Whether, at `to`, a periodic timer that waits for the end of a run would be millions of points behind. The model
  /// would walk over them one by one.
  bool walks_too_far(ns to) const;

  /// `due` is for single runs.
  std::size_t schedule(plan, runs_on, ns due = 0, ns slack = 0);
  /// If not `asks`, its runs in progress are not asked to stop.
  cancel_result cancel(std::size_t which, bool asks = true);
  /// False if the timer is not pending.
  bool reschedule(std::size_t which, ns due);

  void elapse(ns d) { now_ += d; }

  /// Begins an advance up to `end`. Then next_run() returns each run in order, until there are no more.
  void begin_advance(ns end);
  std::optional<run> next_run();
  /// Ends the advance early, because a task has thrown. Due timers that have not run come first in the next advance.
  void leave();
  /// Whether there are such timers: then next_due() may be any past time.
  bool has_left() const;

  /// A job is called. Returns the run that starts, if any.
  std::optional<run> start(const run& job);
  /// A run ends.
  void end(std::size_t which, bool threw);
  /// A job is destroyed without having been called. Returns whether a run is lost by that.
  bool drop(run& job);
  /// The executor throws.
  void refuse(const run& job);

  std::vector<unfired> stop();

  /// Begins a drain. Then next_run() returns each run in order, and end_drain() what drain() should return.
  void begin_drain(ns limit);
  bool end_drain();

 private:
  struct hand_over {
    std::uint64_t ticket, order;
    ns tick;
    grid_point point;
  };
  struct timer {
    plan how;
    runs_on where = runs_on::driver;
    ns slack = 0;
    bool live = false;
    bool waits = false;    // for the moment `due`, which may be never
    bool in_turn = false;  // has a late run that takes its turn in the pass in progress
    std::uint64_t left =
        0;  // number of the leave() that left it over, or 0; timers of one leave() are in order
    ns due = 0, tick = 0;
    std::uint64_t armed = 0;  // its position in the order of calls
    int running = 0;
    bool asked = false;
    std::vector<hand_over> submitted;  // oldest first
    bool completes = false;            // has ended by itself, perhaps with a run in progress

    // Only for periodic timers.
    grid_point upcoming;
    std::uint64_t runs = 0;
    bool no_more_points = false;
    std::optional<grid_point> kept;  // kept back by queue_one
    bool kept_is_due = false;
    bool held_back = false;    // the upcoming run is late and waits for the run in progress
    bool catching_up = false;  // the last run that began was a late run of a burst

    bool periodic() const { return how.what != plan::kind::once; }
    bool in_progress() const { return running != 0 || !submitted.empty(); }
  };

  ns floor_tick(ns t) const { return t / tick_ - (t % tick_ < 0 ? 1 : 0); }
  ns tick_at_or_after(ns t) const;
  ns tick_of(ns due) const;
  ns tick_taken(const timer&, ns due, ns own) const;
  bool in_pass(const timer&) const;
  bool drained() const;
  void arm(timer&, ns due);
  std::optional<std::size_t> first_in_pass() const;
  template <class Qualifies>
  std::optional<std::size_t> earliest(Qualifies&& qualifies) const;
  void end_now(timer&);

  std::optional<run> come_to(std::size_t i);
  void overlap(timer&, const plan::look&);
  void wait_for_next(timer&);
  void rearm(timer&);

  std::optional<std::uint64_t> to_come(const timer&) const;
  run hand(std::size_t i, const grid_point&, ns tick, std::uint64_t number, std::uint64_t missed);
  void begin(timer&, const run&);
  bool spend(timer&, std::uint64_t ticket);
  void give_up(timer&);
  void end_if_over(timer&);
  void complete_if_over(timer&);

  const ns tick_;
  const std::size_t max_pending_;
  ns now_ = 0, end_ = 0, pass_tick_ = 0;
  bool stopped_ = false, stopped_listed_ = false, draining_ = false, stop_when_drained_ = false;
  std::uint64_t armings_ = 0, pass_end_ = 0, tickets_ = 0, leaves_ = 0;
  counts counts_{};
  extremes lateness_;
  std::vector<timer> all_;
  std::vector<std::size_t> perhaps_live_;  // all others are not live
  mutable std::uint64_t looks_ = 0;
};

}  // namespace rondo::test
