// What a scheduler on virtual time is to do, said as simply as possible: a list of timers, looked through from
// end to end for everything.
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

/// Where a timer's task runs: on the scheduler's executor, or one of its own.
enum class runs_on { driver, executor, own_executor };

/// Counts everything in ticks and nanoseconds from its own start, which is 0.
class scheduler_model {
 public:
  scheduler_model(ns tick, std::size_t max_pending) : tick_(tick), max_pending_(max_pending) {}

  /// One that begins or, on an executor, is submitted.
  struct run {
    std::size_t timer;
    std::uint64_t ticket;  // of a hand-over
    ns due, lateness;
    std::uint64_t number, missed;
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
  /// None: it waits for no moment.
  std::optional<ns> due(std::size_t which) const;
  std::vector<listed> list() const;
  runs_on where(std::size_t which) const { return all_[which].where; }
  const plan& how(std::size_t which) const { return all_[which].how; }
  const counts& stats() const { return counts_; }
  const extremes& lateness() const { return lateness_; }
  bool stopped() const { return stopped_; }
  /// How many timers have been looked at so far, one after another: nearly all that a program costs.
  std::uint64_t looks() const { return looks_; }

  /// Whether schedule() is refused.
  bool closed() const { return stopped_ || draining_; }
  bool full() const { return max_pending_ != unlimited && pending() >= max_pending_; }

  /// When there is work next, never if there is none.
  ns next_due() const;
  /// Whether, by then, some periodic timer that waits for the end of a run would be millions of points behind: the model
  /// walks over them one by one.
  bool walks_too_far(ns to) const;

  /// `due`: of a single run.
  std::size_t schedule(plan, runs_on, ns due = 0);
  cancel_result cancel(std::size_t which);
  /// False: it is not pending.
  bool reschedule(std::size_t which, ns due);

  void elapse(ns d) { now_ += d; }

  /// Begins an advance up to `end`; then next_run() says what is to run, until there is nothing more.
  void begin_advance(ns end);
  std::optional<run> next_run();
  /// Ends it early, as a task has thrown: what was due and has not run comes first in the next one.
  void leave();
  /// Whether such timers wait: then next_due() is any time that is past.
  bool has_left() const;

  /// A job is called: the run that starts, if one does.
  std::optional<run> start(const run& job);
  /// A run ends.
  void end(std::size_t which, bool threw);
  /// A job is destroyed uncalled. Whether that is a run that does not happen.
  bool drop(const run& job);
  /// The executor throws.
  void refuse(const run& job);

  std::vector<unfired> stop();

  /// Begins a drain; next_run() says what is to run, then end_drain() what drain() is to say.
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
    bool live = false;
    bool waits = false;      // for a moment: `due`, which may be never
    bool in_turn = false;    // a late run that takes its turn in the pass in progress
    std::uint64_t left = 0;  // which leave() has left it, the others of its pass being in order
    ns due = 0, tick = 0;
    std::uint64_t armed = 0;  // when, in the order of calls
    int running = 0;
    std::vector<hand_over> submitted;  // oldest first
    bool completes = false;            // it has ended by itself, perhaps with a run in progress

    // Of a periodic one.
    grid_point upcoming;
    std::uint64_t runs = 0;
    bool no_more_points = false;
    std::optional<grid_point> kept;  // by queue_one
    bool kept_is_due = false;
    bool held_back = false;    // the upcoming one: a late one, which waits for the run in progress
    bool catching_up = false;  // the run that began last was late, of a burst

    bool periodic() const { return how.what != plan::kind::once; }
    bool in_progress() const { return running != 0 || !submitted.empty(); }
  };

  ns floor_tick(ns t) const { return t / tick_ - (t % tick_ < 0 ? 1 : 0); }
  ns tick_at_or_after(ns t) const;
  ns tick_of(ns due) const;
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
  std::vector<std::size_t> perhaps_live_;  // all others are not
  mutable std::uint64_t looks_ = 0;
};

}  // namespace rondo::test
