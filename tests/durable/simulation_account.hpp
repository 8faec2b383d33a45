// What a process of a simulation has claimed, begun and reported, and what its counters must therefore say. Also how soon
// it tries its database again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

#include "durable/dispatcher/run.hpp"
#include "durable/engine.hpp"
#include "durable/simulated_clocks.hpp"
#include "durable/simulated_dispatcher.hpp"
#include "durable/simulation_ledger.hpp"

namespace durable_test {

/// Knows the turns of one dispatcher that have failed.
class simulation_backoff {
 public:
  /// With `alarm_may_lack`, the dispatcher's scheduler may have no room for the timer that ends a rest.
  explicit simulation_backoff(bool alarm_may_lack) noexcept : alarm_may_lack_(alarm_may_lack) {}

  void failed(rondo::time_point now) noexcept;
  /// `adopts`: it was only to reconcile the dispatcher with its database. `some_are_locked`: a part must be repeated.
  void succeeded(rondo::time_point now, bool adopts, bool some_are_locked) noexcept;
  /// Before a turn. Returns what is wrong with its time, or nothing. `calm_since`: since then nothing but tasks has
  /// happened to the dispatcher.
  std::string check(rondo::time_point now, rondo::time_point calm_since, rondo::duration longest_step) const;

 private:
  static constexpr int in_full = 6;  // after so many failures in a row, the longest rest can be no longer

  const bool alarm_may_lack_;
  int in_a_row_ = 0;
  bool has_failed_ = false, some_are_locked_ = false;  // the last turn
  rondo::time_point last_{}, in_full_since_{};
};

/// Knows the requests of one dispatcher, the answers that it got, and what its handler did. Tells the ledger what is
/// wrong.
class simulation_account final : public turn_watcher {
 public:
  using ticket = rondo::durable::detail::ticket;
  using run = rondo::durable::detail::run;

  /// `timers_are_limited`: some claims may find no timer.
  /// `own`: its clock, which stands still while the process is stalled.
  simulation_account(simulation_ledger& ledger, const simulated_clocks& clocks, const rondo::scheduler& own,
                     std::string owner, const rondo::durable::dispatcher_options& options,
                     bool timers_are_limited)
      : ledger_(ledger),
        clocks_(clocks),
        own_(own),
        owner_(std::move(owner)),
        options_(options),
        timers_are_limited_(timers_are_limited),
        backoff_(timers_are_limited) {}

  // Its dispatcher

  /// Before each step. `longest_step`: of those before.
  void steps(bool is_stopping, rondo::duration longest_step) noexcept;
  void sends(const turn& t, const state& now) override;
  void took(const turn& t, const turn_result& done) override;
  void failed(const turn& t, bool perhaps_done) override;
  /// To the operator. A fault after its last run, which is tried again every 50 ms, is reported once.
  void reports(const std::string& line, bool is_telling);
  /// Something other than tasks has happened to it.
  void trouble() noexcept { calm_since_ = clocks_.now(); }
  /// The history has gone back. It must report that before it takes another turn.
  void went_back() noexcept { must_tell_ = true; }
  /// Whether it has claimed that, and the database has not answered what became of it.
  bool knows(const ticket& of) const { return claims_.contains(of); }

  // Its handler

  void runs(const run& r);
  void worked_for(rondo::duration d) noexcept { run_time_ += d; }
  void ends(const ticket& of, ending how, rondo::duration snoozed_for);
  /// The run was to be executed, but its lease had run out.
  void does_not_run(const ticket& of);
  std::uint64_t called() const noexcept { return called_; }
  /// When the first transaction was sent in which that run should begin; `max` if there was none.
  rondo::time_point asked(const ticket& of) const;

  /// Whether so many runs may have begun, waiting for a thread or in progress.
  bool may_have_begun(std::size_t runs) noexcept;
  /// Always. (Otherwise a task may wait for a thread until its lease runs out.)
  bool had_idle_threads() const noexcept { return had_idle_threads_; }
  /// `all_is_told`: it has stopped in order.
  void check(const rondo::durable::dispatcher_statistics& s, bool all_is_told) const;

 private:
  using count = std::uint64_t rondo::durable::dispatcher_statistics::*;
  static constexpr count completed = &rondo::durable::dispatcher_statistics::completed,
                         retried = &rondo::durable::dispatcher_statistics::retried,
                         dead = &rondo::durable::dispatcher_statistics::dead,
                         snoozed = &rondo::durable::dispatcher_statistics::snoozed,
                         withdrawn = &rondo::durable::dispatcher_statistics::withdrawn,
                         leases_lost = &rondo::durable::dispatcher_statistics::leases_lost,
                         handed_back = &rondo::durable::dispatcher_statistics::handed_back;

  /// A task, from its claim until the database has answered what became of it.
  struct claimed {
    rondo::time_point sent, received;  // the turn that claimed it
    rondo::durable::wall_time due;
    rondo::time_point due_here, lease_until;
    int attempt, max_attempts;
    bool is_readable;
    bool has_begun = false;                              // as the database has answered
    rondo::time_point asked = rondo::time_point::max();  // when its run should begin for the first time
    bool was_given_back = false;                         // the database has been told of that
    bool is_in_doubt = false;                            // it was in a turn whose answer was lost
    std::optional<ending> how = {};
    rondo::duration snoozed_for{};
  };
  struct again {
    int times;
    rondo::time_point since;
  };

  void sure(count which, std::uint64_t n = 1) noexcept {
    least_.*which += n;
    most_.*which += n;
  }
  void perhaps(count which, std::uint64_t n = 1) noexcept { most_.*which += n; }

  void check_retry(const rondo::durable::detail::failure& f) const;
  bool lacks_thread(const turn& t);
  void settle_ends(const turn& t, const turn_result& done);
  void settle(const ticket& of, bool is_settled, bool is_removed, count by_kind, bool is_point);
  void settle_given_back(const turn& t, const turn_result& done);
  void settle_beginnings(const turn& t, const turn_result& done);
  void settle_claims(const turn& t, const turn_result& done);
  void claims_again(std::int64_t id);
  void wrong(const std::string& what) const { ledger_.wrong(owner_ + ' ' + what); }
  void wrong(const ticket& of, const std::string& what) const;

  simulation_ledger& ledger_;
  const simulated_clocks& clocks_;
  const rondo::scheduler& own_;
  const std::string owner_;
  const rondo::durable::dispatcher_options& options_;
  const bool timers_are_limited_;
  const rondo::time_point started_ = clocks_.now();
  std::map<ticket, claimed> claims_;
  std::map<std::int64_t, again> again_;  // by task: claims since its last run
  rondo::durable::dispatcher_statistics least_, most_;
  std::uint64_t called_ = 0;
  rondo::duration run_time_{}, least_late_{}, most_late_{};
  bool is_lateness_known_ = true;
  bool answer_was_lost_ = false, had_idle_threads_ = true;
  bool must_tell_ = false, must_have_told_ = false;  // by the turn in progress
  int last_faults_ = 0;
  bool last_claim_was_slow_ = false;  // or it failed
  rondo::time_point sent_{};          // the turn in progress
  bool steps_stopping_ = false, sends_stopping_ = false;
  simulation_backoff backoff_;
  rondo::time_point calm_since_ = started_;
  rondo::duration longest_step_{};
  std::size_t ended_ = 0, most_ended_ = 0;
};

}  // namespace durable_test
