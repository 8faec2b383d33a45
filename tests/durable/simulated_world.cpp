#include "durable/simulated_world.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace durable_test {

using namespace std::chrono_literals;
using rondo::duration;
using rondo::time_point;
using rondo::durable::outcome;
using rondo::durable::store_error;
using rondo::durable::task;
namespace detail = rondo::durable::detail;

namespace {

// Somebody looks for what dead processes held.
constexpr duration longest_unreleased = 2s;
constexpr duration slow_step = 50ms;
constexpr duration between_looks = 10ms;  // for tasks that wait
constexpr duration longest_uninterrupted = 1s;
constexpr int deepest = 3;
// A process that is calm has reconciled itself with its database.
constexpr duration longest_unknown = 1s;
// A database is not replaced by another one faster than this.
constexpr duration shortest_return = 10ms;
constexpr std::size_t most_histories = 6;

}  // namespace

simulated_world::simulated_world(simulation_dice& dice, simulated_database::locking how,
                                 const simulation_faults& faults, const handler_habits& habits)
    : dice_(dice),
      faults_(faults),
      habits_(habits),
      database_([this] { return clocks_.engine(); }, how),
      ledger_(clocks_, database_),
      lateness_(clocks_, database_, ledger_,
                {.most_late = 150ms + 50 * faults.usual_stage,
                 .slow_claim = faults.slow_claim,
                 .locked = faults.nested + faults.stalls_inside != 0 && how == locking::rows}),
      longest_calm_step_(slow_step + 10 * faults.usual_stage + faults.slow_claim),
      engine_(database_.open()) {
  if (faults.fences_repeat) database_.let_fences_repeat();
  database_.observe([this](const std::string& who, stage at) { observe(who, at); });
}

void simulated_world::add_process(const rondo::durable::dispatcher_options& options,
                                  const rondo::options& of_timer) {
  process& p = processes_.emplace_back(options, of_timer);
  p.options.on_error = [this, &p](const std::string& line) {
    say([&] { return line; });
    if (p.dispatcher) p.account->reports(line, p.dispatcher->state().is_telling);
  };
  p.options.on_dead = [this, &p](const task& t, const std::string& reason) {
    ++p.told_dead;
    ledger_.told_dead(t, reason);
    if (dice_.in_1000(100)) throw std::runtime_error("on_dead");
  };
}

// ---- Time

void simulated_world::run_until(time_point until) {
  while (clocks_.now() < until && !is_wrong()) {
    if (!is_quiet_ && clocks_.now() >= next_event_) {
      next_event_ = clocks_.now() + dice_.evenly_up_to(2 * faults_.between_events);
      event();
      continue;
    }
    for (process& p : processes_) {
      if (!p.dispatcher && restarts_ && p.starts_at <= clocks_.now()) start(p);
      go_on(p);
    }
    if (clocks_.now() >= next_look_) check_lateness();
    if (step_any()) continue;
    const time_point next = std::min(until, next_event());
    pass_to(std::max(next, clocks_.now() + 1us));
  }
}

time_point simulated_world::next_event() const {
  time_point next = is_quiet_ ? time_point::max() : next_event_;
  for (const process& p : processes_) {
    if (!p.dispatcher) {
      if (restarts_) next = std::min(next, p.starts_at);
    } else if (is_stalled(p)) {
      next = std::min(next, p.stalled_until);
    } else {
      next = std::min({next, p.timer.next_due().value_or(time_point::max()), p.dispatcher->wakes_at()});
      for (const active_run& r : p.active) next = std::min(next, r.ends);
    }
  }
  return next;
}

/// The timers stop on the way wherever one of them is due.
void simulated_world::pass_to(time_point t) {
  while (clocks_.now() < t) {
    time_point next = t;
    for (const process& p : processes_)
      if (p.dispatcher && !is_stalled(p))
        if (const auto due = p.timer.next_due(); due && *due > clocks_.now()) next = std::min(next, *due);
    clocks_.pass_to(next);
    for (process& p : processes_)
      if (p.dispatcher && !is_stalled(p)) {
        go_on(p);
        p.timer.advance(clocks_.now() - p.timer.now());
      }
  }
}

/// If the process was stalled until now, its timer has stood still.
void simulated_world::go_on(process& p) {
  if (p.stalled_until == simulated_clocks::never || is_stalled(p) || !p.dispatcher) return;
  p.stalled_until = simulated_clocks::never;
  p.timer.elapse(clocks_.now() - p.timer.now());
  p.timer.advance(0ms);
  trouble(p);
}

// ---- Steps

bool simulated_world::step_any() {
  const std::size_t n = processes_.size(), first = dice_.below(n);
  for (std::size_t i = 0; i != n; ++i) {
    process& p = processes_[(first + i) % n];
    if (!p.dispatcher || p.is_doomed || is_stalled(p)) continue;
    // A handler does not wait for a slow transaction.
    const bool handlers_first =
        habits_.restless || faults_.slow_claim != duration::zero() || dice_.below(2) != 0;
    if (handlers_first ? step_handlers(p) || step_database(p) : step_database(p) || step_handlers(p))
      return true;
  }
  return false;
}

bool simulated_world::step_database(process& p) {
  if (p.in_step || !p.dispatcher->is_awake(clocks_.now())) return false;
  const bool was_failing = p.is_failing;
  p.step_began = clocks_.now();
  p.in_step = true;
  p.account->steps(p.dispatcher->is_stopping(), p.longest_step);
  try {
    p.dispatcher->step(clocks_.now());
  } catch (const process_died&) {
    p.is_doomed = true;
  }
  p.in_step = false;
  ++counts_.turns;
  if (p.is_doomed) kill(p);
  if (!p.dispatcher) return true;
  const duration took = clocks_.now() - p.step_began;  // others may have been inside
  p.longest_step = std::max(p.longest_step, took);
  p.is_failing = p.dispatcher->has_failed();
  if (was_failing || took >= longest_calm_step_ || p.is_failing) trouble(p);
  check(p);
  if (p.dispatcher->has_stopped()) account_for(p, true);
  return true;
}

bool simulated_world::step_handlers(process& p) {
  const auto over =
      std::ranges::find_if(p.active, [&](const active_run& r) { return r.ends <= clocks_.now(); });
  if (over != p.active.end()) {
    const active_run r = *over;
    if (!is_able(p)) p.unable_at = clocks_.now();
    p.active.erase(over);
    check_interruption(p, r);
    ledger_.wrong(lateness_.ends(server_of(p), *r.at));
    ledger_.ends(p.owner, *r.at, r.how, r.snoozed_for);
    p.account->ends(r.at->of(), r.how, r.snoozed_for);
    say([&] {
      return p.owner + " ends " + std::to_string(r.at->what.id) + ' ' +
             std::to_string(static_cast<int>(r.how));
    });
    p.dispatcher->end(r.at);
    return true;
  }
  if (p.active.size() >= p.options.threads) return false;
  const auto next = p.dispatcher->begin_next();
  if (next) begin_run(p, *next);
  return next.has_value();
}

/// The handler is called at the beginning of the run, which goes on until its time is over.
void simulated_world::begin_run(process& p, simulated_dispatcher::place at) {
  const std::uint64_t called = p.account->called();
  p.executed = &*at;
  p.dispatcher->execute(at);
  if (p.account->called() == called) {
    p.account->does_not_run(at->of());
    return p.dispatcher->end(at);
  }
  p.plan.at = at;
  p.active.push_back(p.plan);
}

duration simulated_world::run_time() {
  if (is_quiet_) return 0ms;
  if (habits_.long_runs == 0) return dice_.up_to(habits_.longest);
  return dice_.in_1000(habits_.long_runs) ? habits_.longest : 0ms;
}

outcome simulated_world::handle(process& p, const task& t) {
  const detail::run& r = *p.executed;
  p.account->runs(r);
  say([&] {
    return p.owner + " runs " + std::to_string(t.id) + " fence " + std::to_string(t.fence) + " attempt " +
           std::to_string(t.attempt);
  });
  ledger_.begins(runner_of(p), r, p.account->asked(r.of()), r.lease_until - p.options.lease);
  check_overlap(p, r);
  ledger_.wrong(lateness_.begins(server_of(p), r));
  const duration worked = dice_.evenly_up_to(2us);
  p.account->worked_for(worked);
  pass_to(clocks_.now() + worked);
  const time_point now = clocks_.now();
  p.plan.began = now;
  p.plan.is_lost = ledger_.forgot_since(r.lease_until - p.options.lease) || !has_claim(p, r);
  p.plan.ends = now + run_time();
  p.plan.snoozed_for = dice_.up_to(habits_.longest_snooze) - habits_.snoozes_back;
  if (habits_.restless && !is_quiet_ && t.id % 8 == 3) {
    p.plan.ends = now;
    p.plan.how = ending::snoozes;
    p.plan.snoozed_for = 0ms;
    return outcome::snooze(0ms);
  }
  const auto choice = is_quiet_ ? 1000 : dice_.below(1000);
  p.plan.how = ending::fails;
  if (choice < habits_.fails) throw std::runtime_error("attempt " + std::to_string(t.attempt) + " failed");
  p.plan.how = ending::snoozes;
  if (choice < habits_.fails + habits_.snoozes) return outcome::snooze(p.plan.snoozed_for);
  p.plan.how = ending::gives_up;
  if (choice < habits_.fails + habits_.snoozes + habits_.gives_up)
    return outcome::dead("fence " + std::to_string(t.fence) + " gave up");
  p.plan.how = ending::done;
  return outcome::done();
}

void simulated_world::start(process& p) {
  if (p.timer.now() < clocks_.now()) p.timer.advance(clocks_.now() - p.timer.now());
  p.owner = "process " + std::to_string(++started_);
  p.told_dead = 0;
  p.is_doomed = p.is_failing = false;
  p.started = clocks_.now();
  p.longest_step = {};
  p.account = std::make_unique<simulation_account>(ledger_, clocks_, p.timer, p.owner, p.options,
                                                   p.timers_are_limited);
  trouble(p);
  const auto call = [this, &p](const task& t) { return handle(p, t); };
  const auto watch = [this, &p](const task& t, const std::stop_token&) { return handle(p, t); };
  const auto handler =
      habits_.watches ? rondo::durable::task_handler(watch) : rondo::durable::task_handler(call);
  say([&] { return p.owner + " starts"; });
  p.dispatcher = std::make_unique<simulated_dispatcher>(p.timer, *engine_, p.owner, p.options, handler,
                                                        dice_(), *p.account);
}

void simulated_world::kill(process& p) {
  if (p.in_step) {
    p.is_doomed = true;
    return;
  }
  say([&] { return p.owner + " dies"; });
  ++counts_.deaths;
  account_for(p, false);
}

/// The process has come to its end.
void simulated_world::account_for(process& p, bool in_order) {
  const auto s = p.dispatcher->stats();
  if (s.dead != p.told_dead) ledger_.wrong(p.owner + " told of another number of dead tasks");
  p.account->check(s, in_order && p.dispatcher->all_is_told());
  if (in_order) {
    ++counts_.stops;
    say([&] { return p.owner + " has stopped"; });
    if (p.dispatcher->all_is_told())
      database_.for_each_row([&](const row& r) {
        if (r.owner == p.owner && r.state != row_state::waiting &&
            !database_.is_locked(r.id) &&  // or is claimed
            !ledger_.forgot_since(p.started))
          ledger_.wrong(p.owner + " has stopped and still has " + text_of(r));
      });
    if (s.failures == 0 && p.calm_since == p.started && 10 * p.longest_step < p.options.lease &&
        !ledger_.taken_away_since(p.started) && clocks_.set() < p.started &&
        !ledger_.forgot_since(p.started) && p.account->had_idle_threads() && s.leases_lost + s.withdrawn != 0)
      ledger_.wrong(p.owner + " lost runs though nothing happened");
  }
  ledger_.note(s.completed);
  ledger_.note(s.turns);
  p.active.clear();
  p.dispatcher.reset();
  p.stalled_until = simulated_clocks::never;
  dead_.push_back({p.owner, clocks_.now()});
  p.starts_at = clocks_.now() + (is_quiet_ ? 0ms : dice_.up_to(faults_.longest_rest));
}

void simulated_world::trouble(process& p) {
  p.calm_since = clocks_.now();
  look_at_claims(p);
  if (p.account) p.account->trouble();
}

bool simulated_world::has_claim(const process& p, const detail::run& r) const {
  const row* const there = database_.find(r.what.id);
  return there != nullptr && there->fence == r.what.fence && there->owner == p.owner && there->runs();
}

/// A run that has lost its claim may go on for long.
void simulated_world::look_at_claims(process& p) {
  for (active_run& a : p.active) a.is_lost = a.is_lost || !has_claim(p, *a.at);
}

/// Somebody has claimed tasks. That may be what runs elsewhere, if its lease has run out: shortly after the clock was set
/// forward, or after trouble. Those runs, too, may go on for long, and others follow.
void simulated_world::look_at_expired() {
  for (process& p : processes_) {
    const time_point since = std::max(p.calm_since, clocks_.set_forward());
    if (clocks_.now() > since + 2 * p.options.lease) continue;
    for (active_run& a : p.active)
      if (a.at->lease_until - p.options.lease <= since) a.is_lost = a.is_lost || !has_claim(p, *a.at);
  }
}

void simulated_world::check(process& p) {
  if (p.dispatcher->held() > p.options.max_held) ledger_.wrong(p.owner + " holds too many tasks");
  if (!p.account->may_have_begun(p.dispatcher->running()))
    ledger_.wrong(p.owner + " has begun too many tasks");
  if (!is_able(p)) p.unable_at = clocks_.now();
}

/// It is stalled, or has been and does not know yet, or somebody has stalled inside its transaction.
bool simulated_world::is_halted(const process& p) const {
  return p.is_doomed || p.stalled_until != simulated_clocks::never ||
         (p.in_step && clocks_.now() - p.step_began >= longest_calm_step_);
}

/// Whether it could run another task.
bool simulated_world::is_able(const process& p) const {
  return !is_halted(p) && !p.is_failing && !p.dispatcher->is_stopping() &&
         2 * p.dispatcher->held() < p.options.max_held && p.dispatcher->running() < p.options.threads;
}

server simulated_world::server_of(const process& p) const {
  const time_point calm = is_halted(p) ? clocks_.now() : p.calm_since;
  const time_point able = is_able(p) ? std::max(calm, p.unable_at) : clocks_.now();
  return {p.owner, &p.options, calm, able, p.longest_step};
}

void simulated_world::check_lateness() {
  next_look_ = clocks_.now() + between_looks;
  std::vector<server> all;
  for (const process& p : processes_)
    if (p.dispatcher) all.push_back(server_of(p));
  ledger_.wrong(lateness_.check(all));
}

/// Whether a cancelled run has learned of that.
void simulated_world::check_interruption(const process& p, const active_run& r) {
  if (!habits_.watches || r.at->stop.stop_requested()) return;
  const time_point cancelled = ledger_.cancelled_at(p.owner, r.at->of());
  const time_point since = std::max({cancelled, r.began, p.calm_since});
  if (cancelled != simulated_clocks::never && clocks_.now() - since > longest_uninterrupted)
    ledger_.wrong("the run of task " + std::to_string(r.at->what.id) + " on " + p.owner +
                  " was cancelled or lost long ago, and not interrupted");
}

/// Whether another run of the task is in progress, whose process should have kept its lease.
void simulated_world::check_overlap(const process& by, const detail::run& r) {
  for (const process& other : processes_)
    for (const active_run& a : other.active) {
      // (The transaction in which all this happens may go on for long.)
      const bool is_same = a.at->what.id == r.what.id && a.at->what.fence < r.what.fence;
      const auto calm = std::max({other.calm_since, clocks_.set_forward(), a.began});
      if (is_same && !other.in_step && !is_stalled(other) && calm + 2 * other.options.lease < clocks_.now() &&
          !a.is_lost && !ledger_.revived_since(r.what.id, a.began))
        ledger_.wrong("task " + std::to_string(r.what.id) + " runs on " + by.owner + " while " + other.owner +
                      " runs it and has kept its lease");
    }
}

/// What a process that lives has in the database and does not know, it gives back.
void simulated_world::check_known() {
  for (const process& p : processes_) {
    if (!p.dispatcher || p.dispatcher->is_stopping() || is_halted(p) || p.in_step || p.is_failing ||
        clocks_.now() - std::max(p.calm_since, ledger_.forgot_at()) < longest_unknown)
      continue;
    database_.for_each_row([&](const row& r) {
      if (r.state == row_state::held && r.owner == p.owner && !database_.is_locked(r.id) &&
          !p.account->knows({r.id, r.fence}))
        ledger_.wrong(p.owner + " does not know that it has " + text_of(r));
    });
  }
}

void simulated_world::check_released() {
  time_point calm = time_point::max();
  for (const process& p : processes_)
    if (p.dispatcher && !p.dispatcher->is_stopping() && !is_stalled(p) && !p.in_step)
      calm = std::min(calm, p.calm_since);
  std::erase_if(dead_, [&](const death& d) {
    const time_point since = std::max({d.at, calm, clocks_.set()});
    if (calm == time_point::max() || clocks_.now() - since < longest_unreleased) return false;
    database_.for_each_row([&](const row& r) {
      if (r.state == row_state::held && r.owner == d.owner)
        ledger_.wrong("task " + std::to_string(r.id) + " is still held by " + d.owner + ", which has died");
    });
    return true;
  });
}

// ---- Faults

void simulated_world::event() {
  check_released();
  check_known();
  process& p = processes_[dice_.below(processes_.size())];
  auto choice = static_cast<unsigned>(dice_.below(1000));
  const auto is = [&](unsigned n) { return choice < n ? true : (choice -= n, false); };
  if (is(faults_.deaths)) {
    if (p.dispatcher) kill(p);
  } else if (is(faults_.stalls)) {
    // (One that is in a transaction stalls in maybe_fail(), as it must not go on before the stall is over.)
    if (!p.dispatcher || is_stalled(p) || p.in_step) return;
    ++counts_.stalls;
    p.stalled_until = clocks_.now() + dice_.up_to(faults_.longest_stall);
    say([&] { return p.owner + " stalls"; });
  } else if (is(faults_.clock_steps)) {
    ++counts_.clock_steps;
    const duration by = dice_.up_to(faults_.longest_step);
    clocks_.set_engine(dice_.below(2) == 0 ? by : -by);
    say([&] { return "the clock is set by " + std::to_string(by.count()); });
  } else if (is(faults_.server_crashes)) {
    crash_server();
  } else if (is(faults_.returns)) {
    go_back();
  } else if (is(faults_.stops)) {
    if (p.dispatcher && !p.dispatcher->is_stopping() && !is_stalled(p)) {
      say([&] { return p.owner + " is stopped"; });
      p.dispatcher->stop();
    }
  } else if (on_event_) {
    on_event_();
    if (dice_.in_1000(200)) copy_history();
  }
}

void simulated_world::crash_server() {
  ++counts_.server_crashes;
  const std::size_t forget = dice_.below(4);
  say([&] { return "the server crashes and forgets " + std::to_string(forget); });
  const bool of_host = database_.how() == simulated_database::locking::database;
  if (of_host) pass_to(clocks_.now() + shortest_return);
  dead_.clear();  // PostgreSQL forgets whose death nobody has seen
  database_.crash(forget);
  ledger_.forgot(of_host);
  for (process& p : processes_) {
    if (!p.dispatcher) continue;
    if (of_host)
      kill(p);
    else
      trouble(p);
  }
}

/// Only while no call of a store is in progress, of which the ledger does not know yet.
void simulated_world::copy_history() {
  if (faults_.returns == 0) return;
  histories_.push_back({database_.copy(), ledger_.known_now()});
  if (histories_.size() > most_histories) histories_.pop_front();
}

void simulated_world::go_back() {
  if (histories_.empty()) return;
  ++counts_.returns;
  pass_to(clocks_.now() + shortest_return);
  histories_.resize(1 + dice_.below(histories_.size()));
  say([&] { return std::string("the history goes back to") + text_of_rows(histories_.back().rows); });
  dead_.clear();
  database_.go_back(histories_.back().rows);
  ledger_.went_back(histories_.back().known);
  for (process& p : processes_) {
    if (!p.dispatcher) continue;
    p.account->went_back();
    trouble(p);
  }
}

/// What happens during a transaction.
void simulated_world::observe(const std::string& who, stage at) {
  const auto found = std::ranges::find(processes_, who, &process::owner);
  process* const p = found != processes_.end() && found->dispatcher ? &*found : nullptr;
  if (p != nullptr && at == stage::commits && p->dispatcher->current_turn() != nullptr) {
    say([&] { return who + " commits" + text_of(*p->dispatcher->current_turn()); });
    ledger_.commits(runner_of(*p), *p->dispatcher->current_turn());
  }
  if (p != nullptr && at == stage::committed) {
    const detail::turn* const t = p->dispatcher->current_turn();
    if (t != nullptr) ledger_.committed(who, *t);
    if (t != nullptr && t->claim_up_to != 0) look_at_expired();
    if (dice_.in_1000(100)) copy_history();
    say([&] { return who + " has" + text_of_claims(database_, who); });
  }
  if (p != nullptr && p->is_doomed) throw process_died();
  // Even there time passes: a process may repeat something without an end while another one is stalled.
  if (depth_ >= deepest) return pass_to(clocks_.now() + dice_.up_to(faults_.usual_stage));
  ++depth_;
  struct leaving {
    int& depth;
    ~leaving() { --depth; }
  } const leave{depth_};
  const bool is_slow = !is_quiet_ && dice_.in_1000(faults_.slow_stages);
  pass_to(clocks_.now() + dice_.up_to(is_slow ? faults_.longest_stage : faults_.usual_stage));
  if (p != nullptr && at == stage::commits && p->dispatcher->current_turn() != nullptr &&
      p->dispatcher->current_turn()->claim_up_to != 0)
    pass_to(clocks_.now() + faults_.slow_claim);
  if (is_slow)
    for (process& each : processes_) trouble(each);
  if (is_quiet_) return;
  if (p == nullptr) return maybe_break(at);
  if (dice_.in_1000(faults_.nested)) run_for(dice_.up_to(5ms));
  maybe_fail(*p, at);
}

void simulated_world::maybe_fail(process& p, stage at) {
  if (dice_.in_1000(faults_.stalls_inside)) {
    p.stalled_until = clocks_.now() + dice_.up_to(faults_.longest_stall);
    say([&] { return p.owner + " stalls inside a transaction"; });
    ++counts_.stalls;
    run_until(p.stalled_until);
    go_on(p);
  }
  if (p.is_doomed || dice_.in_1000(faults_.deaths_inside)) throw process_died();
  try {
    const detail::turn* const t = p.dispatcher->current_turn();
    if (faults_.adopts_only && at == stage::commits && t != nullptr && !t->adopt)
      throw store_error("the database is full");
    maybe_break(at);
  } catch (const store_error&) {
    trouble(p);
    say([&] { return "that was of " + p.owner; });
    if (dice_.below(2) == 0) database_.end_session(p.owner);
    throw;
  }
}

void simulated_world::maybe_break(stage at) {
  if (!dice_.in_1000(faults_.breaks)) return;
  ++counts_.breaks;
  say([&] { return "a connection breaks at stage " + std::to_string(static_cast<int>(at)); });
  throw store_error("the connection broke", at == stage::commits || at == stage::committed);
}

void simulated_world::become_quiet() {
  is_quiet_ = true;
  for (process& p : processes_)
    if (!p.dispatcher) p.starts_at = clocks_.now();
}

void simulated_world::stop_all() {
  restarts_ = false;
  for (process& p : processes_)
    if (p.dispatcher && !p.dispatcher->is_stopping()) p.dispatcher->stop();
  const auto any = [&] {
    return std::ranges::any_of(processes_, [](const process& p) { return p.dispatcher != nullptr; });
  };
  for (int i = 0; i != 1000 && any() && !is_wrong(); ++i) run_for(10ms);
  if (any() && !is_wrong()) ledger_.wrong("stop() does not end");
}

}  // namespace durable_test
