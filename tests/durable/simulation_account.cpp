#include "durable/simulation_account.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "durable/dispatcher/begun_runs.hpp"
#include "durable/dispatcher/turns.hpp"
#include "durable/microseconds.hpp"
#include "durable/schedule_access.hpp"

namespace durable_test {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using detail::ticket;
using rondo::duration;
using rondo::time_point;

namespace {

bool has(const std::vector<ticket>& all, const ticket& of) { return std::ranges::find(all, of) != all.end(); }

/// "After the n-th failed attempt, a task waits for a random time between zero and first_retry * 2^(n-1), at most
/// longest_retry".
duration longest_retry(const rondo::durable::dispatcher_options& o, int attempt) {
  duration d = o.first_retry;
  for (int i = 1; i < attempt && d < o.longest_retry; ++i) d += d;
  return std::min(d, o.longest_retry);
}

bool is_readable(const std::string& schedule) {
  try {
    if (!schedule.empty()) static_cast<void>(detail::schedule_of(schedule));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// A task that is claimed again and again: so many claims, of which at least half are made with a periodic look.
constexpr int many_claims = 8;
duration least_for_many_claims(const rondo::durable::dispatcher_options& o) {
  return std::min<duration>(detail::turns::look_every(o), 10ms) * (many_claims / 2);
}

}  // namespace

void simulation_account::wrong(const ticket& of, const std::string& what) const {
  wrong(what + ": task " + std::to_string(of.id) + " fence " + std::to_string(of.fence));
}

// ---- The requests of a turn

void simulation_account::steps(bool is_stopping, duration longest_step) noexcept {
  steps_stopping_ = is_stopping;
  longest_step_ = longest_step;
  most_ended_ = std::max(most_ended_, ended_);
  ended_ = 0;
}

/// "As few runs as possible wait for a thread": one for each idle thread, and twice as many as ended during the last
/// transaction.
bool simulation_account::may_have_begun(std::size_t runs) noexcept {
  had_idle_threads_ = had_idle_threads_ && runs < options_.threads;
  const std::size_t most_ahead = 2 * std::max(most_ended_, ended_);
  return runs <= options_.threads + std::min(most_ahead, detail::begun_runs::most_ahead);
}

void simulation_account::sends(const turn& t, const state& now) {
  sent_ = own_.now();
  sends_stopping_ = now.is_stopping;
  if (!now.is_telling)
    if (const std::string what = backoff_.check(sent_, calm_since_, longest_step_); !what.empty())
      wrong(what);
  must_have_told_ = must_tell_ && !now.is_telling;
  for (const ticket& b : t.begun) {
    const auto c = claims_.find(b);
    if (c == claims_.end() || (c->second.was_given_back && !c->second.has_begun))
      wrong(b, "begins what it does not hold");
    else
      c->second.asked = std::min(c->second.asked, sent_);
  }
  for (const detail::failure& f : t.failed) check_retry(f);
  if (last_claim_was_slow_ && t.claim_up_to != 0 && !t.begun.empty())
    wrong("begins runs together with a claim, although its claims take long");
  if (lacks_thread(t) && t.claim_up_to != 0 && !now.has_room && !timers_are_limited_)
    wrong("claims though there is no thread, for lack of which it gives tasks back");
}

void simulation_account::check_retry(const detail::failure& f) const {
  const auto at = claims_.find(f.of);
  if (at == claims_.end()) return;
  const claimed& c = at->second;
  if (c.how == ending::snoozes && f.retry_after != std::max(c.snoozed_for, duration::zero()))
    wrong(f.of, "snoozes for another time than the handler");
  if (c.how != ending::fails || !f.retry_after) return;
  if (*f.retry_after < duration::zero() || *f.retry_after > longest_retry(options_, c.attempt))
    wrong(f.of, "retries after " + std::to_string(*f.retry_after / 1us) + " us");
}

/// Whether the turn is the first that gives back what has waited for a thread.
bool simulation_account::lacks_thread(const turn& t) {
  bool any = false;
  const auto give_back = [&](const ticket& of) {
    const auto at = claims_.find(of);
    if (at == claims_.end()) return;
    claimed& c = at->second;
    const bool has_waited = c.has_begun ? !c.how : c.asked == time_point::max() && c.due_here <= sent_;
    any = any || (!c.was_given_back && has_waited && c.is_readable);
    c.was_given_back = true;
  };
  for (const ticket& r : t.returned) give_back(r);
  for (const ticket& u : t.unstarted) give_back(u);
  if (any) again_.clear();
  return any;
}

// ---- The answers

void simulation_account::failed(const turn& t, bool perhaps_done) {
  sure(&rondo::durable::dispatcher_statistics::failures);
  backoff_.failed(own_.now());
  if (t.claim_up_to != 0) last_claim_was_slow_ = true;  // it may have been too large
  if (!perhaps_done) return;
  answer_was_lost_ = true;
  const auto doubt = [this](const ticket& of) {
    if (const auto at = claims_.find(of); at != claims_.end()) at->second.is_in_doubt = true;
  };
  for (const auto* list : {&t.finished, &t.unstarted, &t.returned})
    for (const ticket& of : *list) doubt(of);
  for (const ticket& of : t.begun)  // which repeats the beginnings of the runs in progress
    if (const auto at = claims_.find(of); at != claims_.end() && !at->second.has_begun) doubt(of);
  for (const detail::failure& f : t.failed) doubt(f.of);
  for (const detail::passage& p : t.passed) doubt(p.of);
}

void simulation_account::took(const turn& t, const turn_result& done) {
  if (must_have_told_ && must_tell_) wrong("does not report that the history has gone back");
  sure(&rondo::durable::dispatcher_statistics::turns);
  backoff_.succeeded(own_.now(), t.adopt, !done.locked.empty());
  // Then it may claim again at once.
  if (t.adopt || !done.early.empty() || done.may_have_more) again_.clear();
  settle_ends(t, done);
  settle_given_back(t, done);
  settle_beginnings(t, done);
  sure(dead, done.expired.size());
  if (!t.adopt) settle_claims(t, done);
}

void simulation_account::settle_ends(const turn& t, const turn_result& done) {
  for (const ticket& f : t.finished)
    if (!has(done.locked, f)) settle(f, has(done.finished, f), false, completed, false);
  for (const detail::failure& f : t.failed)
    if (!has(done.locked, f.of))
      settle(f.of, has(done.failed, f.of), has(done.removed, f.of),
             !f.counts ? snoozed : (f.retry_after ? retried : dead), false);
  for (const detail::passage& p : t.passed)
    if (!has(done.locked, p.of))
      settle(p.of, has(done.passed, p.of), has(done.removed, p.of), p.given_up ? dead : completed, true);
}

/// `by_kind`: what the end counts as if it is the end.
void simulation_account::settle(const ticket& of, bool is_settled, bool is_removed, count by_kind,
                                bool is_point) {
  const auto at = claims_.find(of);
  if (at == claims_.end()) return wrong(of, "reports an end twice, or that of no run");
  const claimed c = at->second;
  claims_.erase(at);
  if (is_removed && by_kind != completed) by_kind = withdrawn;
  if (!c.how) {                                        // it has not been run for its point
    const bool is_passed_over = by_kind == completed;  // which nobody counts
    if (is_settled || c.is_in_doubt) {
      if (!is_passed_over) sure(by_kind);
      return;
    }
    if (!answer_was_lost_) return sure(withdrawn);
    perhaps(withdrawn);
    if (!is_passed_over) perhaps(by_kind);
    return;
  }
  const bool is_known = by_kind == dead && !is_point;  // the database keeps the dead
  if (is_settled || (c.is_in_doubt && !is_known)) return sure(by_kind);
  if (!answer_was_lost_ || is_known) return sure(leases_lost);
  perhaps(by_kind);
  perhaps(leases_lost);
}

void simulation_account::settle_given_back(const turn& t, const turn_result& done) {
  const auto settle_one = [&](const ticket& of) {
    claims_.erase(of);
    if (steps_stopping_)
      sure(handed_back);
    else if (sends_stopping_)
      perhaps(handed_back);
  };
  for (const ticket& r : t.returned)
    if (!has(done.locked, r)) settle_one(r);
  for (const ticket& u : t.unstarted)
    if (!has(done.locked, u) && !has(t.returned, u)) settle_one(u);
}

void simulation_account::settle_beginnings(const turn& t, const turn_result& done) {
  for (const ticket& b : t.begun) {
    const auto at = claims_.find(b);
    if (at == claims_.end()) continue;
    if (at->second.has_begun) {
      if (!has(done.begun, b)) ledger_.does_not_repeat(owner_, b);
      continue;
    }
    claimed& c = at->second;
    if (has(done.begun, b)) {
      c.has_begun = true;
      ++c.attempt;
    } else if (has(done.early, b)) {
      if (clocks_.set() < c.sent && detail::microseconds_of(c.due) > clocks_.engine_microseconds())
        wrong(b, "begins a run too early");
    } else if (has(done.locked, b)) {
      if (!c.is_in_doubt) c.asked = time_point::max();
    } else {
      sure(sent_ >= c.lease_until ? leases_lost : withdrawn);
      if (!c.is_in_doubt) claims_.erase(at);
    }
  }
}

void simulation_account::settle_claims(const turn& t, const turn_result& done) {
  if (t.claim_up_to == 0) return;
  sure(&rondo::durable::dispatcher_statistics::claimed, done.claimed.size());
  last_claim_was_slow_ = !done.claimed.empty() && own_.now() - sent_ > options_.lease / 3;
  for (const detail::claim& d : done.claimed) {
    const ticket of{d.what.id, d.what.fence};
    const auto is_own_run = [&](const auto& each) {
      const auto& [other, c] = each;
      return ledger_.follows(of, other) && c.has_begun && !c.how && !c.was_given_back;
    };
    // (A task that has none of its attempts behind it has been revived, after its lease had run out.)
    if (d.what.attempt != 0 && !ledger_.forgot_since(started_) &&
        std::any_of(claims_.lower_bound({of.id, 0}), claims_.lower_bound(of), is_own_run))
      wrong(of, "takes its own run over");
    const time_point now = own_.now();
    claims_.insert_or_assign(of, claimed{sent_, now, d.what.due, now + d.remaining,
                                         sent_ + std::max(d.remaining, duration::zero()) + options_.lease,
                                         d.what.attempt, d.max_attempts, is_readable(d.schedule)});
    claims_again(of.id);
  }
}

/// What it can neither hold nor begin, it does not claim again at once, over and over.
void simulation_account::claims_again(std::int64_t id) {
  const time_point now = clocks_.now();
  const auto [at, is_new] = again_.try_emplace(id, again{0, now});
  again& a = at->second;
  if (now - a.since >= least_for_many_claims(options_)) a = {0, now};
  if (++a.times >= many_claims) wrong("claims task " + std::to_string(id) + " again and again");
}

// ---- The handler

void simulation_account::runs(const run& r) {
  ++called_;
  again_.erase(r.what.id);
  const auto at = claims_.find(r.of());
  if (at == claims_.end()) return wrong(r.of(), "runs what it does not hold");
  const claimed& c = at->second;
  is_lateness_known_ = is_lateness_known_ && clocks_.set() < c.sent && calm_since_ < c.sent;
  // The time until it was due was counted from the answer to the claim.
  const duration late = clocks_.now() - clocks_.when(detail::microseconds_of(r.what.due));
  most_late_ += std::max(late, duration::zero());
  least_late_ += std::max(late - (c.received - c.sent) - 1us, duration::zero());
}

time_point simulation_account::asked(const ticket& of) const {
  const auto at = claims_.find(of);
  return at != claims_.end() ? at->second.asked : time_point::max();
}

void simulation_account::does_not_run(const ticket& of) {
  ++ended_;
  sure(leases_lost);
  if (const auto at = claims_.find(of); at != claims_.end()) at->second.was_given_back = true;
}

void simulation_account::ends(const ticket& of, ending how, duration snoozed_for) {
  ++ended_;
  const auto at = claims_.find(of);
  if (at == claims_.end()) return wrong(of, "ends what it does not hold");
  at->second.how = how;
  at->second.snoozed_for = snoozed_for;
}

void simulation_account::reports(const std::string& line, bool is_telling) {
  if (is_telling && line.starts_with("the database failed") && ++last_faults_ > 1)
    wrong("reports each fault after its last run");
  if (line.find("another timeline") != line.npos && !std::exchange(must_tell_, false))
    wrong("reports twice that the history has gone back, or reports it though that has not happened");
}

// ---- The end

void simulation_account::check(const rondo::durable::dispatcher_statistics& s, bool all_is_told) const {
  using statistics = rondo::durable::dispatcher_statistics;
  constexpr std::pair<const char*, count> counts[] = {{"claimed", &statistics::claimed},
                                                      {"turns", &statistics::turns},
                                                      {"failures", &statistics::failures},
                                                      {"completed", completed},
                                                      {"retried", retried},
                                                      {"dead", dead},
                                                      {"snoozed", snoozed},
                                                      {"withdrawn", withdrawn},
                                                      {"lost leases", leases_lost},
                                                      {"handed back", handed_back}};
  for (const auto& [name, which] : counts)
    if (s.*which < least_.*which || s.*which > most_.*which)
      wrong("counts " + std::to_string(s.*which) + " as " + name + ", not " + std::to_string(least_.*which) +
            " to " + std::to_string(most_.*which));
  if (s.fired != called_ || s.lateness.count() != called_ || s.run_time.count() != called_)
    wrong("counts another number of runs than " + std::to_string(called_));
  if (s.run_time.sum() != run_time_) wrong("counts another time of runs");
  if (is_lateness_known_ && (s.lateness.sum() < least_late_ || s.lateness.sum() > most_late_))
    wrong("counts a lateness of " + std::to_string(s.lateness.sum() / 1us) + " us, not " +
          std::to_string(least_late_ / 1us) + " to " + std::to_string(most_late_ / 1us));
  if (all_is_told && !claims_.empty()) wrong(claims_.begin()->first, "has stopped without a word of a claim");
}

// How soon a dispatcher tries its database again.

namespace {

// A rest after the n-th failure in a row is a random time between the shortest and 2^n times that, at most the longest.
constexpr duration shortest = 100ms, longest = 5s;
// The shortest rest before locked rows are asked for again.
constexpr duration locked_rest = 2ms;
// Without an alarm, any event ends a rest: the next look. And a step may have to wait for those of others.
constexpr duration most_overdue = 500ms + 150ms;
// Ten rests of up to 5 s take less than this only once in more than 10^8 cases.
constexpr int several = 10;
constexpr duration least_for_several = 4s;

}  // namespace

void simulation_backoff::failed(time_point now) noexcept {
  ++in_a_row_;
  if (in_a_row_ == in_full) in_full_since_ = now;
  has_failed_ = true;
  some_are_locked_ = false;
  last_ = now;
}

void simulation_backoff::succeeded(time_point now, bool adopts, bool some_are_locked) noexcept {
  if (!adopts) in_a_row_ = 0;
  has_failed_ = false;
  some_are_locked_ = some_are_locked;
  last_ = now;
}

std::string simulation_backoff::check(time_point now, time_point calm_since, duration longest_step) const {
  const duration rest = now - last_;
  if (!alarm_may_lack_) {
    if (has_failed_ && rest < shortest) return "tries a database that failed again too soon";
    if (some_are_locked_ && rest < locked_rest) return "asks too soon for locked rows";
    if (has_failed_ && in_a_row_ == in_full + several && last_ - in_full_since_ < least_for_several)
      return "tries a database that goes on failing too often";
  }
  const duration most = std::min(longest, shortest * (1 << std::min(in_a_row_, in_full)));
  if (has_failed_ && now - std::max(last_, calm_since) > most + most_overdue + longest_step)
    return "does not try a database that failed again for too long";
  return "";
}

}  // namespace durable_test
