#include "durable/dispatcher/turns.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <rondo/errors.hpp>

#include "durable/schedule_access.hpp"

namespace rondo::durable::detail {

using namespace std::chrono_literals;

namespace {

constexpr duration shortest_backoff = 100ms, longest_backoff = 5s;
// The wait before locked rows are tried again. Another dispatcher's claim may have them for some milliseconds, and
// somebody's open transaction for any time.
constexpr duration shortest_locked = 2ms, longest_locked = 50ms;
// A run learns of its cancellation within a second.
constexpr duration longest_unwatched = 500ms;

bool has(const std::vector<ticket>& sorted, ticket t) { return std::ranges::binary_search(sorted, t); }

}  // namespace

turns::turns(const dispatcher_parts& parts, const dispatcher_options& options, bool watches,
             std::uint64_t seed)
    : d_(parts),
      options_(options),
      look_every_(look_every(options)),
      polls_(parts.database.look_every() != duration::max()),
      watches_(watches),
      random_(seed),
      next_claim_(options) {}

turns::step turns::next() {
  gather();
  if (phase_ == phase::ending) return step::last;
  if (backs_off_ || !is_turn_due()) return step::nothing;
  if (!take_turn())
    back_off(random_.at_least(failures_in_a_row_, shortest_backoff, longest_backoff));
  else if (locked_in_a_row_ != 0)
    back_off(
        random_.at_least(locked_in_a_row_, shortest_locked, std::min(longest_locked, options_.lease / 10)));
  return step::turn;
}

void turns::there_is_news() noexcept {
  watch_ = true;
  next_claim_.look_for_others();
}

// ---- Pending work

void turns::gather() {
  inbox::contents c = d_.arrivals.take();
  if (c.empty()) return;
  // If there is no alarm because the scheduler is stopped, any event is an occasion to try again.
  if (backs_off_ && ((c.signals & inbox::retry) != 0 || !d_.wheel.retries())) backs_off_ = false;
  d_.runs.ended(c.ended.size());
  add_ended(c.ended);
  if ((c.signals & inbox::look) != 0) next_claim_.begin_period();
  if ((c.signals & inbox::look) != 0 &&
      (!polls_ || (!backs_off_ && d_.database.changed()) ||
       saturating_difference(d_.clock.now(), last_claim_) >=
           look_every_ - std::min(look_every_, d_.database.look_every()) / 2)) {
    next_claim_.look();
    watch_ = true;
  }
  if ((c.signals & inbox::renew) != 0) {
    renew_ = renew_ || d_.runs.size() != 0;
    give_back_waiting();
  }
  if ((c.signals & inbox::closing) != 0) close();
  if ((c.signals & inbox::last) != 0) enter(phase::ending);
}

void turns::add_ended(run_list& ended) {
  for (detail::run& r : ended) {
    if (r.how == detail::run::outcome::failed) decide_retry(r);
    if (r.ends_point()) find_next(r);
  }
  unsettled_.ended.splice(unsettled_.ended.end(), ended);
}

/// When a failed run is tried again; never, if it was the last attempt.
void turns::decide_retry(detail::run& r) noexcept {
  if (r.what.attempt < most_attempts(r))
    r.retry_after = random_.full_jitter(r.what.attempt, options_.first_retry, options_.longest_retry);
}

/// As many due tasks begin with the next turn as the threads have room for.
void turns::begin_due() noexcept {
  const std::size_t room = d_.runs.room();
  const std::size_t there = unsettled_.beginning.size();
  run_list next = d_.held.take_due(room > there ? room - there : 0);
  for (auto r = next.begin(); r != next.end();) {
    const auto one = r++;
    if (!is_to_run(*one)) unsettled_.ended.splice(unsettled_.ended.end(), next, one);
  }
  unsettled_.beginning.splice(unsettled_.beginning.end(), next);
}

/// Applies what a repeated task does about points that went by. That concerns only the first attempt, at the time of
/// the point: others were asked for. Returns false if the task must wait for a later point.
bool turns::is_to_run(detail::run& r) noexcept {
  if (!r.repeats || r.what.attempt != 0 || r.what.due != *r.what.point) return true;
  // By the engine's clock, and not later than that.
  const wall_time now = r.what.due + std::max(saturating_difference(d_.clock.now(), r.due), duration::zero());
  const auto point = point_to_run(*r.repeats, r.missed, r.point(), now, options_.window);
  if (!point || point->at > now) {
    r.how = detail::run::outcome::passed_over;
    r.next = point;
    return false;
  }
  r.due += point->at - r.what.due;
  r.what.due = point->at;
  r.what.point = point->at;
  r.point_offset = point->offset;
  return true;
}

/// Gives back tasks that have waited so long for a thread that another dispatcher may have one sooner.
void turns::give_back_waiting() noexcept {
  begin_due();  // if their claim took long, all would be given back, for ever
  const time_point now = d_.clock.now();
  run_list begun = d_.runs.take_waiting(saturating_add(now, options_.lease / 3 * 2));
  for (detail::run& r : begun) r.how = detail::run::outcome::not_started;
  // Their leases would run out before the next of these signals.
  run_list held = d_.held.take_due_with_lease_before(saturating_add(now, options_.lease / 3));
  // As soon as a thread is free, this dispatcher may take back what no other has taken.
  if (!begun.empty() || !held.empty()) next_claim_.too_busy();
  unsettled_.ended.splice(unsettled_.ended.end(), begun);
  unsettled_.returned.splice(unsettled_.returned.end(), held);
}

void turns::close() noexcept {
  enter(phase::closing);
  run_list waiting = d_.runs.take_waiting();
  for (detail::run& r : waiting) r.how = detail::run::outcome::not_started;
  unsettled_.ended.splice(unsettled_.ended.end(), waiting);
  unsettled_.give_up_beginning();
  stop_claiming();
}

bool turns::is_turn_due() const {
  return !unsettled_.empty() || adopt_ || (renew_ && d_.runs.size() != 0) ||
         (watch_ && watches_ && d_.runs.size() != 0) || (d_.held.any_due() && d_.runs.room() != 0) ||
         claims_wanted() != 0;
}

next_claim::room turns::room() const {
  const auto rest = [](std::size_t most, std::size_t taken) { return taken < most ? most - taken : 0; };
  const std::size_t held = d_.held.size();
  const std::size_t taken = held + d_.runs.size() + unsettled_.beginning.size();
  return {rest(options_.max_held, taken), rest(options_.max_held_bytes, *bytes_), d_.runs.room() != 0,
          held == 0, unsettled_.beginning.empty()};
}

std::size_t turns::claims_wanted() const {
  return phase_ == phase::claiming ? next_claim_.wanted(room()) : 0;
}

// ---- One turn

bool turns::take_turn() {
  bool claims = false;
  try {
    const turn t = next_turn();
    claims = t.claim_up_to != 0;
    if (claims) next_claim_.begins();
    const time_point sent = d_.clock.now();
    turn_result done = d_.database.take(t);
    const time_point received = d_.clock.now();
    d_.counts.add(&dispatcher_statistics::turns);
    if (!t.adopt) failures_in_a_row_ = 0;  // an adopting turn does little, so other turns may still fail
    renew_ = false;
    const std::vector<ticket> own = t.adopt ? own_tickets(t) : std::vector<ticket>{};
    std::ranges::sort(done.locked);
    locked_in_a_row_ = done.locked.empty() ? 0 : locked_in_a_row_ + 1;
    settle_returned(done);
    if (!t.adopt) settle_ends(done);
    settle_begun(done, sent);
    if (t.adopt) refused_ = std::move(done.early);
    settle_expired(done);
    watch_ = false;
    if (!t.watched.empty()) last_watch_ = received;
    d_.runs.request_stop(done.cancelled);
    if (claims) settle_claim(t, done, sent, received);
    for (claim& c : done.claimed)
      if (!t.adopt)
        hold(std::move(c), sent, received);
      else if (!has(own, {c.what.id, c.what.fence}))
        give_back_unknown(c);
    adopt_ = false;
    return true;
  } catch (const store_error& e) {
    failed(e.what(), e.perhaps_done());
  } catch (const std::exception& e) {  // out of memory, before the turn or after it
    failed(e.what(), true);
  }
  if (claims) next_claim_.failed();
  return false;
}

turn turns::next_turn() {
  turn t;
  if (adopt_) begin_again(t);
  begin_due();
  unsettled_.put_rest_into(t);
  if (!adopt_) {
    unsettled_.put_ends_into(t);
    // The claim of this turn finds the tasks that it releases, also those that are to be tried again soon.
    if (unsettled_.release_before(options_.window)) next_claim_.look_for_others();
  }
  t.adopt = adopt_;
  if (const std::size_t wanted = adopt_ ? 0 : claims_wanted(); wanted != 0) {
    next_claim_.put_into(t, wanted, room().bytes);
    t.unreadable = unreadable_;
  }
  if (renew_) t.renewed = d_.runs.in_progress();
  // News may come late to a busy thread, which does not wait for them.
  if (watches_ && (watch_ || saturating_difference(d_.clock.now(), last_watch_) >= longest_unwatched))
    t.watched = d_.runs.tickets();
  // The wheel may have stood still, or somebody has set the engine's clock. A run may have ended since gather(): the next turn
  // reports that.
  if (t.claim_up_to != 0) t.kept = d_.runs.untold();
  return t;
}

/// A server that has crashed may have forgotten that runs had begun, and would then take their ends for those of other
/// dispatchers' runs. So this turn reports the beginnings again, and the next turn reports the ends. If the server
/// remembers a beginning, repeating it changes only the lease.
void turns::begin_again(turn& t) {
  d_.runs.put_beginnings_into(t);
  gather();  // the runs that ended just before
  for (const detail::run& r : unsettled_.ended)
    if (r.had_begun()) put_beginning(r, t);
}

void turns::settle_ends(turn_result& done) {
  std::ranges::sort(done.finished);
  std::ranges::sort(done.failed);
  std::ranges::sort(done.passed);
  std::ranges::sort(done.removed);
  for (auto r = unsettled_.ended.begin(); r != unsettled_.ended.end();) {
    const auto one = r++;
    if (has(done.locked, one->of())) continue;
    if (!settle_end(*one, done) && has(refused_, one->of())) {  // the task would wait for its lease
      unsettled_.returned.splice(unsettled_.returned.end(), unsettled_.ended, one);
      next_claim_.look();
    } else {
      unsettled_.ended.erase(one);
    }
  }
}

/// Returns whether the database has done what it was told of the run.
bool turns::settle_end(const detail::run& r, const turn_result& done) {
  using outcome = detail::run::outcome;
  if (r.how == outcome::not_started) {
    const bool is_refused = has(refused_, r.of());  // then it is handed back next
    if (phase_ >= phase::closing && !is_refused) d_.counts.add(&dispatcher_statistics::handed_back);
    return !is_refused;
  }
  const std::vector<ticket>& settled =
      r.ends_point() ? done.passed : (r.how == outcome::finished ? done.finished : done.failed);
  const bool is_known = has(settled, r.of());
  // If the database no longer knows the run, the turn whose answer was lost has ended it. (Of a death it knows more: it
  // keeps the task.)
  const bool may_be_done = r.perhaps_told && (r.ends_point() || r.how == outcome::finished || r.retry_after);
  count_end(r, is_known || may_be_done, has(done.removed, r.of()));
  return is_known;
}

void turns::count_end(const detail::run& r, bool is_settled, bool is_removed) {
  using outcome = detail::run::outcome;
  if (!r.had_begun() && !is_settled) return d_.counts.add(&dispatcher_statistics::withdrawn);
  if (r.how == outcome::passed_over) return;
  if (!is_settled) {
    d_.counts.add(&dispatcher_statistics::leases_lost);
    d_.errors.say([&] {
      return name_of(r.what) + ", attempt " + std::to_string(r.what.attempt) +
             ": its lease ran out during the run and another took it over, or somebody removed it, or the "
             "database went back to an earlier state";
    });
    return;
  }
  if (r.how == outcome::finished) return d_.counts.add(&dispatcher_statistics::completed);
  if (is_removed) return d_.counts.add(&dispatcher_statistics::withdrawn);
  if (r.how == outcome::snoozed) return d_.counts.add(&dispatcher_statistics::snoozed);
  if (r.retry_after) return d_.counts.add(&dispatcher_statistics::retried);
  d_.counts.add(&dispatcher_statistics::dead);
  d_.errors.say([&] {
    return name_of(r.what) + (r.next ? " goes on with its next point, after " : " is dead, after ") +
           std::to_string(r.what.attempt) + " attempts: " + r.reason;
  });
  tell_dead(r.what, r.reason);
}

void turns::settle_returned(const turn_result& done) noexcept {
  const auto settled =
      unsettled_.returned.remove_if([&](const detail::run& r) { return !has(done.locked, r.of()); });
  if (phase_ >= phase::closing) d_.counts.add(&dispatcher_statistics::handed_back, settled);
}

void turns::settle_begun(turn_result& done, time_point sent) {
  std::ranges::sort(done.begun);
  std::ranges::sort(done.early);
  for (auto r = unsettled_.beginning.begin(); r != unsettled_.beginning.end();) {
    if (has(done.begun, r->of())) {
      ++r->what.attempt;
      r->lease_until = saturating_add(sent, options_.lease);
      ++r;
      continue;
    }
    if (has(done.early, r->of())) {  // the next claim finds out anew how long it waits
      unsettled_.returned.splice(unsettled_.returned.end(), unsettled_.beginning, r++);
      next_claim_.look();
      continue;
    }
    if (has(done.locked, r->of())) {  // other due tasks come first
      run_list one;
      one.splice(one.end(), unsettled_.beginning, r++);
      d_.held.add_due(one);
      continue;
    }
    const bool is_lost = sent >= r->lease_until;
    d_.counts.add(is_lost ? &dispatcher_statistics::leases_lost : &dispatcher_statistics::withdrawn);
    if (is_lost)
      d_.errors.say([&] { return name_of(r->what) + " is not run: its lease ran out before its run began"; });
    // If the answer to an earlier beginning was lost, that may have been done, and the task cancelled since.
    if (r->perhaps_told)
      unsettled_.returned.splice(unsettled_.returned.end(), unsettled_.beginning, r++);
    else
      r = unsettled_.beginning.erase(r);
  }
  d_.runs.add(unsettled_.beginning);
}

void turns::settle_expired(const turn_result& done) {
  for (const task& t : done.expired) {
    d_.counts.add(&dispatcher_statistics::dead);
    d_.errors.say([&] {
      return name_of(t) + " is dead, after " + std::to_string(t.attempt) +
             " attempts: the lease of the last one ran out";
    });
    tell_dead(t, "lease ran out");
  }
}

void turns::tell_dead(const task& t, const std::string& reason) noexcept {
  if (!options_.on_dead) return;
  try {
    options_.on_dead(t, reason);
  } catch (const std::exception& e) {
    d_.errors.say([&] { return "on_dead threw for " + name_of(t) + ": " + e.what(); });
  } catch (...) {
    d_.errors.say([&] { return "on_dead threw for " + name_of(t); });
  }
}

void turns::settle_claim(const turn& t, const turn_result& done, time_point sent, time_point received) {
  last_claim_ = received;
  const duration took = saturating_difference(received, sent);
  if (next_claim_.succeeded(t, done, took)) return;
  d_.errors.say([&] {
    return "a claim of " + std::to_string(done.claimed.size()) + " tasks took " + std::to_string(took / 1ms) +
           " ms, more than a third of the lease: the next one asks for less";
  });
}

void turns::hold(claim c, time_point sent, time_point received) {
  // The engine's clock was read between `sent` and `received`.
  const time_point lease_until =
      saturating_add(saturating_add(sent, std::max(c.remaining, duration::zero())), options_.lease);
  run_list one;
  const std::size_t bytes = c.what.payload.size();
  one.push_back({std::move(c.what),
                 saturating_add(received, c.remaining),
                 lease_until,
                 c.max_attempts,
                 c.in_lane,
                 {},
                 c.missed,
                 c.point_offset,
                 held_bytes(bytes_, bytes)});
#ifdef __cpp_lib_jthread
  if (watches_) one.front().stop = std::stop_source();
#endif
  d_.counts.add(&dispatcher_statistics::claimed);
  if (phase_ != phase::claiming) return unsettled_.returned.splice(unsettled_.returned.end(), one);
  if (one.front().what.point && !is_understood(one, c.schedule)) return;
  if (c.remaining <= duration::zero()) return d_.held.add_due(one);
  const time_point due = one.front().due;
  const auto p = d_.held.add_waiting(one);
  try {
    d_.wheel.due_at(due, p);
  } catch (const stopped_error& e) {
    one = d_.held.take_back(p);
    if (d_.wheel.claims()) {
      give_back(one, e.what());
    } else {  // stop() has closed the wheel, and is about to say so
      enter(phase::closing);
      unsettled_.returned.splice(unsettled_.returned.end(), one);
    }
    stop_claiming();
  } catch (const std::exception& e) {  // the scheduler has too many timers, or is out of memory
    one = d_.held.take_back(p);
    refuse(one, e.what());
  }
}

/// Returns false if this repeated task has gone elsewhere: back, if its schedule cannot be read here, where the calendar
/// or a zone may be missing; or on to its next point, if the lease of its last attempt has run out.
bool turns::is_understood(run_list& one, const std::string& schedule) noexcept {
  detail::run& r = one.front();
  try {
    r.repeats = schedule_of(schedule);
  } catch (const std::bad_alloc& e) {
    refuse(one, e.what());
    return false;
  } catch (const std::exception& e) {
    leave_to_others(one, schedule, e.what());
    return false;
  }
  if (r.what.attempt < most_attempts(r)) return true;
  r.how = detail::run::outcome::expired;
  r.reason = "lease ran out";
  find_next(r);
  unsettled_.ended.splice(unsettled_.ended.end(), one);
  return false;
}

void turns::find_next(detail::run& r) const noexcept {
  if (r.repeats) r.next = next_point(*r.repeats, r.point());
}

int turns::most_attempts(const detail::run& r) const noexcept {
  return r.max_attempts != 0 ? r.max_attempts : options_.max_attempts;
}

/// The answer to this claim was lost. Or the task was held here, has been run and has ended, and the server has
/// forgotten that in a crash. So it must not run with the same fence; a new claim changes the fence.
void turns::give_back_unknown(const claim& c) {
  run_list one;
  one.push_back({c.what, time_point::max(), time_point::max()});
  unsettled_.returned.splice(unsettled_.returned.end(), one);
  next_claim_.look();
}

/// What cannot be held here is left to others. The next claim would find it again.
void turns::refuse(run_list& one, const char* why) noexcept {
  give_back(one, why);
  next_claim_.no_room();
}

/// Others may be able to read the schedule. The claims of this dispatcher leave such tasks out from now on, as they could
/// take the places of all other tasks.
void turns::leave_to_others(run_list& one, const std::string& schedule, const char* why) noexcept {
  try {
    if (std::ranges::find(unreadable_, schedule) == unreadable_.end()) unreadable_.push_back(schedule);
  } catch (const std::bad_alloc&) {
    return refuse(one, why);
  }
  give_back(one, why);
}

void turns::give_back(run_list& held, const char* why) noexcept {
  d_.errors.say([&] { return name_of(held.front().what) + " is given back: " + why; });
  unsettled_.returned.splice(unsettled_.returned.end(), held);
}

/// Tasks that wait on the wheel of a stopped scheduler would wait forever.
void turns::stop_claiming() noexcept {
  enter(phase::not_claiming);
  d_.wheel.stop_claiming();
  run_list held = d_.held.take_all();
  unsettled_.returned.splice(unsettled_.returned.end(), held);
}

/// Tickets that the turn has reported as begun are ours too: the database may have skipped one whose row was locked.
std::vector<ticket> turns::own_tickets(const turn& told) const {
  std::vector<ticket> own = d_.held.tickets();
  own.insert(own.end(), told.begun.begin(), told.begun.end());
  unsettled_.add_tickets_to(own);
  std::ranges::sort(own);
  return own;
}

// ---- Failures

void turns::failed(const char* what, bool perhaps_done) noexcept {
  d_.counts.add(&dispatcher_statistics::failures);
  if (phase_ != phase::ending || failures_in_a_row_ == 0)  // every 50 ms is too often
    d_.errors.say([&] { return std::string("the database failed and will be tried again: ") + what; });
  if (perhaps_done) unsettled_.answer_lost();
  // The session may have a new connection, and some time has passed.
  adopt_ = renew_ = true;
  ++failures_in_a_row_;
}

void turns::back_off(duration rest) noexcept {
  backs_off_ = true;
  try {
    d_.wheel.retry_turn_after(rest);
  } catch (const std::exception&) {  // gather() sees that there is no alarm. NOLINT(bugprone-empty-catch)
  }
}

// ---- The end

bool turns::tell() { return take_turn() && locked_in_a_row_ == 0; }

void turns::give_up() noexcept {
  if (all_is_told()) return;
  d_.errors.say([&] {
    const std::string which =
        unsettled_.empty()
            ? "the tasks claimed last may stay claimed until their leases run out"
            : std::to_string(unsettled_.size()) + " tasks stay claimed until their leases run out";
    return which + ": the database did not answer in time, or somebody's open transaction has them";
  });
}

}  // namespace rondo::durable::detail
