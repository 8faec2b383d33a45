// The thread that has the database.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rondo/scheduler.hpp>

#include "durable/dispatcher/backoff.hpp"
#include "durable/dispatcher/counters.hpp"
#include "durable/dispatcher/error_reports.hpp"
#include "durable/dispatcher/handler_threads.hpp"
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
  handler_threads& threads;
  wheel_jobs& wheel;
  counters& counts;
  const error_reports& errors;
};

/// Takes what is in the inbox and makes one transaction of it, again and again; what arrives meanwhile is in the next. So
/// the busier the dispatcher, the more a transaction does.
///
/// A turn that fails is made again, with what has arrived since. Before that one reconciles us with the database: it says
/// which claims it knows of, is told again which runs have begun, and renews their leases, so that the claims of the next
/// one do not find them expired.
class database_thread {
 public:
  /// How often the database is looked at, whether or not it notifies.
  static duration look_every(const dispatcher_options& o) noexcept {
    return std::max<duration>(std::min(o.window, soon) / 2, std::chrono::milliseconds(1));
  }

  database_thread(const dispatcher_parts& parts, const dispatcher_options& options, std::uint64_t seed);

  /// Until inbox::last, and two seconds longer at most if the database does not answer then.
  void run() noexcept;

 private:
  // What is to be done
  void gather();
  void add_ended(run_list& ended);
  void give_back_waiting() noexcept;
  void close() noexcept;
  void stop_claiming() noexcept;
  bool is_turn_due() const;
  std::size_t free_places() const;
  std::size_t claims_wanted() const;

  // One turn
  bool take_turn();
  turn next_turn();
  void begin_again(turn& t);
  void settle_ends(turn_result& done);
  void settle_end(const detail::run& r, const turn_result& done);
  void settle_returned(const turn_result& done) noexcept;
  void settle_begun(turn_result& done, time_point sent);
  void settle_expired(const turn_result& done);
  void hold(const claim& c, time_point sent, time_point received);
  void give_back_unknown(const claim& c);
  void give_back(run_list& held, const char* why) noexcept;
  std::vector<ticket> own_tickets(const turn& told) const;

  // Failures
  void failed(const char* what, bool perhaps_done) noexcept;
  void back_off(duration rest) noexcept;
  void tell_the_last();

  dispatcher_parts d_;
  const dispatcher_options options_;
  const duration look_every_;
  const bool polls_;  // the session does not notify
  backoff random_;
  unsettled unsettled_;
  time_point last_claim_ = time_point::min(), last_renewal_ = time_point::min();
  int failures_in_a_row_ = 0;
  bool look_ = true;  // there may be something to be claimed
  bool last_claim_was_full_ = false;
  bool too_busy_ = false;  // claims went back as no thread took them: others first, until one is free
  // The scheduler took no timer for a claim: what others give back is no reason to look, or two such dispatchers would wake
  // each other without end. Until the next periodic look.
  bool no_room_ = false;
  bool renew_ = false;
  bool adopt_ = false;
  bool backs_off_ = false;
  bool some_are_locked_ = false;  // of the last turn's, which are to be told again
  bool claims_ = true;
  bool closing_ = false;
  bool last_ = false;
  bool last_fault_is_told_ = false;
};

}  // namespace rondo::durable::detail
