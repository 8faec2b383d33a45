// One run of the handler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include <rondo/durable.hpp>
#include <rondo/scheduler.hpp>

#include "durable/dispatcher/reports.hpp"
#include "durable/dispatcher/run.hpp"
#include "durable/text.hpp"

namespace rondo::durable::detail {

struct outcome_access {
  static bool is_snoozed(const outcome& o) noexcept { return o.kind_ == outcome::kind::snoozed; }
  static bool is_dead(const outcome& o) noexcept { return o.kind_ == outcome::kind::dead; }
  static duration delay(const outcome& o) noexcept { return o.delay_; }
  static const std::string& reason(const outcome& o) noexcept { return o.reason_; }
};

/// Calls the handler, measures the call, and notes in the run how it ended. May be called from several threads at a
/// time.
class attempt {
 public:
  /// `clock`, `counts` and `errors` outlive this object and its copies.
  attempt(const scheduler& clock, counters& counts, const error_reports& errors, task_handler handler)
      : clock_(&clock), counters_(&counts), errors_(&errors), handler_(std::move(handler)) {}

  void operator()(run& r) const noexcept {
    const time_point begin = clock_->now();
    // The process stood still, or the transaction took too long. Another dispatcher may already run the task.
    if (begin >= r.lease_until) {
      r.how = run::outcome::not_started;
      counters_->add(&dispatcher_statistics::leases_lost);
      errors_->say([&] { return name_of(r.what) + " is not run: its lease ran out before its run began"; });
      return;
    }
    counters_->began(saturating_difference(begin, r.due));
    r.how = run::outcome::finished;
    try {
      note(r, call(r));
    } catch (const std::exception& e) {
      fail(r, e.what());
    } catch (...) {
      fail(r, "the handler threw something other than a std::exception");
    }
    counters_->ended(saturating_difference(clock_->now(), begin));
  }

 private:
  outcome call(const run& r) const {
#ifdef __cpp_lib_jthread
    return handler_(r.what, r.stop.get_token());
#else
    return handler_(r.what);
#endif
  }

  static void note(run& r, const outcome& how) {
    if (outcome_access::is_snoozed(how)) {
      r.how = run::outcome::snoozed;
      r.retry_after = std::max(outcome_access::delay(how), duration::zero());
    }
    if (outcome_access::is_dead(how)) {
      r.reason = as_utf8(outcome_access::reason(how), longest_reason);
      r.how = run::outcome::dead;
    }
  }

  void fail(run& r, const char* reason) const noexcept {
    r.how = run::outcome::failed;
    errors_->say(
        [&] { return name_of(r.what) + ", attempt " + std::to_string(r.what.attempt) + ": " + reason; });
    try {
      r.reason = as_utf8(reason, longest_reason);
    } catch (const std::exception&) {  // no memory for the reason: the failure is still reported
      r.reason.clear();
    }
  }

  static constexpr std::size_t longest_reason = 1000;  // bytes; operators read it

  const scheduler* clock_;
  counters* counters_;
  const error_reports* errors_;
  task_handler handler_;
};

}  // namespace rondo::durable::detail
