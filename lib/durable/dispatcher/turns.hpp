// What a dispatcher does with its database.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/scheduler.hpp>

#include "durable/dispatcher/backoff.hpp"
#include "durable/dispatcher/begun_runs.hpp"
#include "durable/dispatcher/claim_size.hpp"
#include "durable/dispatcher/counters.hpp"
#include "durable/dispatcher/error_reports.hpp"
#include "durable/dispatcher/held_tasks.hpp"
#include "durable/dispatcher/inbox.hpp"
#include "durable/dispatcher/unsettled.hpp"
#include "durable/dispatcher/wheel_jobs.hpp"
#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// The other parts of a dispatcher.
struct dispatcher_parts {
  scheduler& clock;
  session& database;
  inbox& arrivals;
  held_tasks& held;
  begun_runs& runs;
  wheel_jobs& wheel;
  counters& counts;
  const error_reports& errors;
};

/// Takes the contents of the inbox and puts them into transactions, the *turns*. What arrives during a turn goes into the
/// next one, so the busier the dispatcher, the more each turn does. Never waits for anything but the database, and has no
/// thread: the caller asks for one step after the other. All members are called from one thread at a time.
///
/// A turn that fails is repeated, together with what has arrived since. Before that, another turn reconciles this
/// dispatcher with the database: the database returns the claims that it knows, learns again which runs have begun, and
/// renews their leases, so that the claims of the next turn do not find them expired.
class turns {
 public:
  /// What a step has done.
  enum class step {
    turn,     ///< a turn, whether or not it failed: there may be more to do
    nothing,  ///< nothing: the next step is due when the session has been interrupted, or has news
    last,     ///< nothing, as inbox::last has been raised: tell() does what is left
  };

  /// How often the database is checked for due tasks, whether or not it notifies.
  static duration look_every(const dispatcher_options& o) noexcept {
    return std::max<duration>(std::min(o.window, soon) / 2, std::chrono::milliseconds(1));
  }

  /// `watches`: whether the handler wants to know when its task is cancelled.
  turns(const dispatcher_parts& parts, const dispatcher_options& options, bool watches, std::uint64_t seed);

  step next();
  /// The session's wait() has returned true.
  void there_is_news() noexcept;

  // After step::last

  bool all_is_told() const noexcept { return unsettled_.empty() && !adopt_; }
  /// Whether the last turn has failed.
  bool has_failed() const noexcept { return adopt_; }
  /// Takes a turn. Returns false if it should be repeated only after a rest.
  bool tell();
  /// Reports what is left to the leases, if anything is.
  void give_up() noexcept;

 private:
  // Pending work
  void gather();
  void add_ended(run_list& ended);
  void begin_due() noexcept;
  bool is_to_run(detail::run& r) noexcept;
  void give_back_waiting() noexcept;
  void close() noexcept;
  void stop_claiming() noexcept;
  bool is_turn_due() const;
  std::size_t free_places() const;
  std::size_t free_bytes() const;
  std::size_t claims_wanted() const;

  // One turn
  bool take_turn();
  turn next_turn();
  void begin_again(turn& t);
  void settle_ends(turn_result& done);
  bool settle_end(const detail::run& r, const turn_result& done);
  void count_end(const detail::run& r, bool is_settled, bool is_removed);
  void settle_returned(const turn_result& done) noexcept;
  void settle_begun(turn_result& done, time_point sent);
  void settle_expired(const turn_result& done);
  void tell_dead(const task& t, const std::string& reason) noexcept;
  void settle_claim(const turn& t, const turn_result& done, time_point sent, time_point received);
  void hold(claim c, time_point sent, time_point received);
  bool is_understood(run_list& one, const std::string& schedule) noexcept;
  void find_next(detail::run& r) const noexcept;
  int most_attempts(const detail::run& r) const noexcept;
  void give_back_unknown(const claim& c);
  void refuse(run_list& one, const char* why) noexcept;
  void leave_to_others(run_list& one, const std::string& schedule, const char* why) noexcept;
  void give_back(run_list& held, const char* why) noexcept;
  std::vector<ticket> own_tickets(const turn& told) const;

  // Failures
  void failed(const char* what, bool perhaps_done) noexcept;
  void back_off(duration rest) noexcept;

  dispatcher_parts d_;
  const dispatcher_options options_;
  const duration look_every_;
  const bool polls_;  // the session does not notify
  const bool watches_;
  backoff random_;
  unsettled unsettled_;
  time_point last_claim_ = time_point::min();
  time_point last_watch_ = time_point::min();
  int failures_in_a_row_ = 0;
  claim_size claim_size_;
  // The bytes of the payloads of all runs. Runs share it, as some are destroyed after this object.
  const std::shared_ptr<std::size_t> bytes_ = std::make_shared<std::size_t>(0);
  bool look_ = true;  // there may be tasks to claim
  bool last_claim_was_full_ = false;
  // The last claim that found tasks found none that was due already. What becomes due during a claim waits until its end,
  // so the next one asks for few: with PostgreSQL, a claim of 250 tasks takes 4 ms or more, and one of 50 less than 2 ms,
  // most of it for the commit.
  static constexpr std::size_t most_ahead = 50;
  bool claims_ahead_ = false;
  bool too_busy_ = false;  // claims were given back for lack of a thread: claims none until a thread is free
  std::vector<std::string> unreadable_;  // schedules that cannot be read here
  // The scheduler had no room for the timer of a claim. Until the next periodic check, tasks that others give back are no
  // reason to claim; otherwise two such dispatchers would wake each other endlessly.
  bool no_room_ = false;
  bool renew_ = false;
  bool watch_ = false;  // a run in progress may have been cancelled
  bool adopt_ = false;
  // After a crash, the database has forgotten that these runs had begun, and refuses to learn of it. Sorted.
  std::vector<ticket> refused_;
  bool backs_off_ = false;
  int locked_in_a_row_ = 0;  // turns that found locked rows; their requests for these must be repeated
  bool claims_ = true;
  bool closing_ = false;
  bool ending_ = false;  // stop() has nothing else to wait for
  bool last_fault_is_told_ = false;
};

}  // namespace rondo::durable::detail
