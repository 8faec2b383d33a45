// Processes, a database and a network on one thread, in virtual time, and the dice that decide what happens.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/time.hpp>

#include "durable/simulated_clocks.hpp"
#include "durable/simulated_database.hpp"
#include "durable/simulated_dispatcher.hpp"
#include "durable/simulation_account.hpp"
#include "durable/simulation_lateness.hpp"
#include "durable/simulation_ledger.hpp"
#include "durable/simulation_text.hpp"
#include "splitmix64.hpp"

namespace durable_test {

/// The choices of a simulation.
class simulation_dice {
 public:
  explicit simulation_dice(std::uint64_t seed) noexcept : next_(seed) {}

  std::uint64_t operator()() noexcept { return next_(); }
  /// Precondition: n > 0.
  std::uint64_t below(std::uint64_t n) noexcept { return next_() % n; }
  /// `n` times in 1,000 on average.
  bool in_1000(unsigned n) noexcept { return n != 0 && below(1000) < n; }
  rondo::duration evenly_up_to(rondo::duration most) noexcept {
    return rondo::duration(
        static_cast<rondo::duration::rep>(below(static_cast<std::uint64_t>(most.count()) + 1)));
  }
  /// Mostly short ones: each half of the range is as likely as all that is shorter.
  rondo::duration up_to(rondo::duration most) noexcept {
    return evenly_up_to(rondo::duration(most.count() >> below(8)));
  }
  template <class T>
  T one_of(std::initializer_list<T> choices) noexcept {
    return *std::next(choices.begin(), static_cast<std::ptrdiff_t>(below(choices.size())));
  }

 private:
  splitmix64 next_;
};

/// What may happen, and how often.
struct simulation_faults {
  rondo::duration between_events{};  // on average
  // Of 1,000 events
  unsigned deaths = 0, stalls = 0, clock_steps = 0, server_crashes = 0, stops = 0, returns = 0;
  // Of 1,000 stages of transactions
  unsigned deaths_inside = 0, breaks = 0, slow_stages = 0, nested = 0, stalls_inside = 0;
  rondo::duration longest_stall{}, longest_step{}, longest_stage{};
  rondo::duration longest_rest{};  // until a process that has died is started again
  bool fences_repeat = false;      // see simulated_database::let_fences_repeat()
  bool adopts_only = false;        // the database is full: it can say what it has, and not take more
  // Nothing breaks by these.
  rondo::duration usual_stage = std::chrono::microseconds(200);  // at most
  rondo::duration slow_claim{};                                  // what a claim takes
};

struct simulation_counts {
  std::uint64_t deaths = 0, stops = 0, server_crashes = 0, returns = 0, breaks = 0, stalls = 0,
                clock_steps = 0, turns = 0;

  void add(const simulation_counts& more) noexcept {
    deaths += more.deaths;
    stops += more.stops;
    server_crashes += more.server_crashes;
    returns += more.returns;
    breaks += more.breaks;
    stalls += more.stalls;
    clock_steps += more.clock_steps;
    turns += more.turns;
  }
};

/// Takes the steps of all processes in a random order. Time passes when nobody has anything to do.
class simulated_world {
 public:
  /// What the handlers do.
  struct handler_habits {
    unsigned fails = 0, snoozes = 0, gives_up = 0;  // of 1,000 runs
    rondo::duration longest{}, longest_snooze{};
    unsigned long_runs =
        0;  // of 1,000: these take `longest`, the others no time; 0: each any time up to that
    rondo::duration snoozes_back{};  // by this less: a snooze may be negative
    bool watches = false;
    /// Until it is quiet, some tasks snooze again and again for no time, and handlers do not wait for the database.
    bool restless = false;
  };

  simulated_world(simulation_dice& dice, simulated_database::locking how, const simulation_faults& faults,
                  const handler_habits& habits);
  simulated_world(const simulated_world&) = delete;
  simulated_world& operator=(const simulated_world&) = delete;

  /// A process that is started now, and again after each death.
  void add_process(const rondo::durable::dispatcher_options& options, const rondo::options& of_timer);
  /// Processes may leave tasks waiting: those that they hold and cannot run keep them from claiming others.
  void expect_delays() { next_look_ = rondo::time_point::max(); }
  /// Called at random times.
  void on_event(std::function<void()> f) { on_event_ = std::move(f); }
  /// Called with each thing that happens, if set.
  void trace(std::function<void(const std::string&)> f) { trace_ = std::move(f); }

  void run_for(rondo::duration d) { run_until(clocks_.now() + d); }
  /// From now on nothing breaks, and what was halted or dead goes on.
  void become_quiet();
  /// Stops all processes in order.
  void stop_all();

  const simulated_clocks& clocks() const noexcept { return clocks_; }
  simulated_database& database() noexcept { return database_; }
  simulation_ledger& ledger() noexcept { return ledger_; }
  const simulation_counts& counts() const noexcept { return counts_; }
  bool is_wrong() const noexcept { return !ledger_.what_is_wrong().empty(); }
  bool is_quiet() const noexcept { return is_quiet_; }
  rondo::durable::detail::engine& engine() noexcept { return *engine_; }
  template <class Words>
  void say(const Words& words) const {
    if (trace_)
      trace_(std::to_string((clocks_.now() - rondo::time_point{}).count() / 1000) + " us: " + words());
  }

 private:
  struct process_died {};

  struct active_run {
    simulated_dispatcher::place at;
    rondo::time_point began, ends;
    ending how;
    rondo::duration snoozed_for;
    bool is_lost;  // the claim, or the database may not know that the run has begun
  };

  struct process {
    process(rondo::durable::dispatcher_options o, const rondo::options& of_timer)
        : options(std::move(o)),
          timer(of_timer),
          timers_are_limited(of_timer.max_pending != rondo::unlimited) {}

    rondo::durable::dispatcher_options options;
    rondo::manual_timer timer;
    bool timers_are_limited;
    std::unique_ptr<simulation_account> account;
    std::unique_ptr<simulated_dispatcher> dispatcher;
    std::string owner;
    std::vector<active_run> active;
    rondo::time_point starts_at{}, stalled_until = simulated_clocks::never;
    rondo::time_point calm_since{}, started{}, step_began{}, unable_at{};
    rondo::duration longest_step{};
    bool in_step = false, is_failing = false, is_doomed = false;
    const rondo::durable::detail::run* executed = nullptr;
    active_run plan{};
    std::uint64_t told_dead = 0;
  };

  // Time
  void run_until(rondo::time_point until);
  void pass_to(rondo::time_point t);
  void go_on(process& p);
  rondo::time_point next_event() const;
  bool is_stalled(const process& p) const noexcept { return p.stalled_until > clocks_.now(); }

  // Steps
  bool step_any();
  bool step_database(process& p);
  bool step_handlers(process& p);
  void begin_run(process& p, simulated_dispatcher::place at);
  rondo::duration run_time();
  rondo::durable::outcome handle(process& p, const rondo::durable::task& t);
  void start(process& p);
  void kill(process& p);
  void account_for(process& p, bool in_order);
  void trouble(process& p);
  void check(process& p);
  bool is_halted(const process& p) const;
  bool is_able(const process& p) const;
  server server_of(const process& p) const;
  void check_lateness();
  runner runner_of(const process& p) const { return {p.owner, p.calm_since, &p.options, p.longest_step}; }

  // Faults
  void event();
  void crash_server();
  void copy_history();
  void go_back();
  bool has_claim(const process& p, const rondo::durable::detail::run& r) const;
  void look_at_claims(process& p);
  void look_at_expired();
  void check_known();
  void observe(const std::string& who, stage at);
  void maybe_fail(process& p, stage at);
  void maybe_break(stage at);
  void check_interruption(const process& p, const active_run& r);
  void check_overlap(const process& by, const rondo::durable::detail::run& r);
  void check_released();

  simulation_dice& dice_;
  const simulation_faults faults_;
  const handler_habits habits_;
  simulated_clocks clocks_;
  simulated_database database_;
  simulation_ledger ledger_;
  simulation_lateness lateness_;
  const rondo::duration longest_calm_step_;
  std::shared_ptr<rondo::durable::detail::engine> engine_;
  std::deque<process> processes_;
  std::function<void()> on_event_;
  std::function<void(const std::string&)> trace_;
  rondo::time_point next_event_{}, next_look_{};
  struct death {
    std::string owner;
    rondo::time_point at;
  };
  std::vector<death> dead_;
  /// To which the history may go back.
  struct history {
    simulated_copy rows;
    simulation_ledger::memory known;
  };
  std::deque<history> histories_;
  bool is_quiet_ = false, restarts_ = true;
  int depth_ = 0;
  std::uint64_t started_ = 0;
  simulation_counts counts_;
};

}  // namespace durable_test
