// What a dispatcher does with its database.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

#include "durable/dispatcher/backoff.hpp"
#include "durable/dispatcher/begun_runs.hpp"
#include "durable/dispatcher/reports.hpp"
#include "durable/dispatcher/held_tasks.hpp"
#include "durable/dispatcher/inbox.hpp"
#include "durable/dispatcher/run.hpp"
#include "durable/dispatcher/wheel_jobs.hpp"
#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// What the next turn reports. It stays here until a turn succeeds. Only the database thread uses it.
class unsettled {
 public:
  /// Runs that are over, or must not be executed after all.
  run_list ended;
  /// Claimed tasks whose run has not begun, to be given back.
  run_list returned;
  /// Claimed tasks whose run should begin.
  run_list beginning;

  bool empty() const noexcept { return ended.empty() && returned.empty() && beginning.empty(); }
  std::size_t size() const noexcept { return ended.size() + returned.size() + beginning.size(); }

  /// No run may begin from now on.
  void give_up_beginning() noexcept { returned.splice(returned.end(), beginning); }

  /// The answer was lost, so anything in the turn may have been done.
  void answer_lost() noexcept {
    for (run_list* list : {&ended, &returned, &beginning})
      for (run& r : *list) r.perhaps_told = true;
  }

  /// Adds everything except the ends to a turn. Throws std::bad_alloc.
  void put_rest_into(turn& t) const {
    for (const run& r : returned) {
      t.returned.push_back(r.of());
      if (r.perhaps_told) t.unstarted.push_back(r.of());  // its run may have begun in the database
    }
    for (const run& r : beginning) put_beginning(r, t);
  }

  /// Adds the ends to a turn. Throws std::bad_alloc.
  void put_ends_into(turn& t) const {
    for (const run& r : ended) {
      if (r.ends_point()) {
        t.passed.push_back(passage_of(r));
        continue;
      }
      if (r.how == run::outcome::finished) t.finished.push_back(r.of());
      if (r.how == run::outcome::failed || r.how == run::outcome::dead)
        t.failed.push_back({r.of(), r.retry_after, r.retry_after ? "" : r.reason});
      if (r.how == run::outcome::snoozed) t.failed.push_back({r.of(), r.retry_after, "", false});
      if (r.how == run::outcome::not_started) t.unstarted.push_back(r.of());
    }
  }

  /// Whether a task of these ends, or the next one of its lane, can run within this time. (The next point of a repeated
  /// task may not be so soon.)
  bool release_before(duration window) const noexcept {
    return std::ranges::any_of(ended, [&](const run& r) {
      return r.in_lane || r.what.point || r.how == run::outcome::not_started ||
             (r.retry_after && *r.retry_after < window);
    });
  }

  /// Adds the tickets of all tasks that the database may still have as claims of this session. Throws std::bad_alloc.
  void add_tickets_to(std::vector<ticket>& all) const {
    for (const run_list* list : {&ended, &returned, &beginning})
      for (const run& r : *list) all.push_back(r.of());
  }

 private:
  static passage passage_of(const run& r) {
    const bool given_up = r.how != run::outcome::finished && r.how != run::outcome::passed_over;
    return {r.of(), r.next, given_up, given_up ? r.reason : ""};
  }
};

/// Whether the next turn claims tasks, and how many.
class next_claim {
 public:
  /// What a dispatcher has room for now.
  struct room {
    std::size_t places;  // for tasks
    std::size_t bytes;   // for their payloads
    bool for_runs;       // a thread is free, or will be soon
    bool is_idle;        // it holds no task
    bool begins_none;    // no run is about to begin
  };

  explicit next_claim(const dispatcher_options& o) noexcept
      : most_places_(o.max_held), most_bytes_(o.max_held_bytes), long_(o.lease / 3) {}

  /// There may be tasks to claim.
  void look() noexcept { look_ = true; }
  /// Others may have given tasks back, or there are new ones.
  void look_for_others() noexcept { look_ = look_ || !no_room_; }
  /// It is time for the periodic check.
  void begin_period() noexcept { no_room_ = false; }
  /// Claims were given back for lack of a thread.
  void too_busy() noexcept { too_busy_ = look_ = true; }
  /// The scheduler had no room for the timer of a claim. Until the next periodic check, tasks that others give back are no
  /// reason to claim; otherwise two such dispatchers would wake each other endlessly.
  void no_room() noexcept {
    was_full_ = false;
    no_room_ = true;
  }

  std::size_t wanted(const room& r) const noexcept {
    if ((too_busy_ && !r.for_runs) || r.bytes == 0) return 0;
    // Claims have taken long, which would delay what begins in the same turn.
    if (divisor_ != 1 && !r.begins_none) return 0;
    if (look_) return r.places;
    // The database has more tasks, but a claim for each single place that becomes free would be too costly.
    const bool is_worth_it = r.places >= (most_places_ + 3) / 4 && r.bytes >= most_bytes_ / 4;
    return was_full_ && (is_worth_it || r.is_idle) ? r.places : 0;
  }

  /// Precondition: `wanted` is not zero.
  void put_into(turn& t, std::size_t wanted, std::size_t bytes) const noexcept {
    t.claim_up_to = part_of(is_ahead_ ? std::min(wanted, most_ahead) : wanted);
    t.claim_bytes = part_of(bytes);
  }

  /// The turn with the claim is about to be taken. What is asked from now on, perhaps because of the turn's own answer, is not
  /// answered by this claim.
  void begins() noexcept { look_ = false; }

  /// The claim of the turn has succeeded. Returns false if it took so long that the next one asks for less.
  bool succeeded(const turn& t, const turn_result& done, duration took) noexcept {
    std::size_t bytes = 0;
    for (const claim& c : done.claimed) bytes += c.what.payload.size();
    was_full_ = done.claimed.size() >= t.claim_up_to || bytes >= t.claim_bytes;
    if (!done.claimed.empty())
      is_ahead_ =
          std::ranges::none_of(done.claimed, [](const claim& c) { return c.remaining <= duration::zero(); });
    too_busy_ = false;
    look_ = look_ || done.may_have_more;
    const bool is_in_time = done.claimed.empty() || took <= long_;
    if (is_in_time)
      divisor_ = std::max<std::size_t>(divisor_ / 2, 1);
    else
      shrink();
    return is_in_time;
  }

  /// It is to be repeated, and may have been too large.
  void failed() noexcept {
    look_ = true;
    shrink();
  }

 private:
  // What becomes due during a claim waits until its end. So if nothing was due already, the next one asks for few: with
  // PostgreSQL, a claim of 250 tasks takes 4 ms or more, and one of 50 less than 2 ms, most of it for the commit.
  static constexpr std::size_t most_ahead = 50;
  // The default limits then become one task and a kilobyte.
  static constexpr std::size_t largest_divisor = 1U << 16U;

  void shrink() noexcept { divisor_ = std::min(divisor_ * 2, largest_divisor); }
  std::size_t part_of(std::size_t all) const noexcept { return std::max<std::size_t>(all / divisor_, 1); }

  const std::size_t most_places_, most_bytes_;
  const duration long_;
  std::size_t divisor_ = 1;  // of the size
  bool look_ = true;
  bool was_full_ = false;  // the last one found all that it asked for
  bool is_ahead_ = false;  // the last one that found tasks found none that was due already
  bool too_busy_ = false;
  bool no_room_ = false;
};

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
  /// None follows an earlier one.
  enum class phase {
    claiming,
    not_claiming,  ///< the scheduler has been stopped
    closing,       ///< stop() has been called
    ending,        ///< stop() has nothing else to wait for
  };

  void enter(phase p) noexcept { phase_ = std::max(phase_, p); }

  // Pending work
  void gather();
  void add_ended(run_list& ended);
  void decide_retry(detail::run& r) noexcept;
  void begin_due() noexcept;
  bool is_to_run(detail::run& r) noexcept;
  void give_back_waiting() noexcept;
  void close() noexcept;
  void stop_claiming() noexcept;
  bool is_turn_due() const;
  next_claim::room room() const;
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
  next_claim next_claim_;
  // The bytes of the payloads of all runs. Runs share it, as some are destroyed after this object.
  const std::shared_ptr<std::size_t> bytes_ = std::make_shared<std::size_t>(0);
  std::vector<std::string> unreadable_;  // schedules that cannot be read here
  bool renew_ = false;                   // the leases of the runs in progress
  bool watch_ = false;                   // a run in progress may have been cancelled
  bool adopt_ = false;                   // the last turn has failed
  // After a crash, the database has forgotten that these runs had begun, and refuses to learn of it. Sorted.
  std::vector<ticket> refused_;
  bool backs_off_ = false;
  int locked_in_a_row_ = 0;  // turns that found locked rows; their requests for these must be repeated
  phase phase_ = phase::claiming;
};

}  // namespace rondo::durable::detail
