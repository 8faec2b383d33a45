#include "durable/simulated_engine.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>

#include "durable/microseconds.hpp"

namespace durable_test {

namespace detail = rondo::durable::detail;
using detail::ticket;

namespace {

using states = std::initializer_list<row_state>;
constexpr states begun{row_state::running, row_state::cancelled};

bool is_of(const row* r, const ticket& of, const std::string& owner, states in) {
  return r != nullptr && r->fence == of.fence && r->owner == owner &&
         std::ranges::find(in, r->state) != in.end();
}

/// The task of the owner's ticket, or null. If another transaction has changed it, the ticket is added to `locked`.
simulated_transaction::entry* find(simulated_transaction& t, const ticket& of, const std::string& owner,
                                   states in, std::vector<ticket>& locked) {
  simulated_transaction::entry* const e = t.find(of.id);
  if (e == nullptr || !is_of(t.look(*e), of, owner, in)) return nullptr;
  if (!t.is_locked(*e)) return e;
  locked.push_back(of);
  return nullptr;
}

/// The run of the task is over. Precondition: its new due time is known.
void leave_lane(row& r) {
  if (!r.next_lane) return;
  r.lane = *r.next_lane;
  r.next_lane.reset();
  r.place = r.lane.empty() ? std::nullopt : std::optional(r.due);
}

/// Whether that is done already.
bool is_dead(simulated_transaction& t, const detail::failure& f) {
  const simulated_transaction::entry* const e = t.find(f.of.id);
  const row* const r = e != nullptr ? t.look(*e) : nullptr;
  return !f.retry_after && r != nullptr && !r->lives() && r->fence == f.of.fence && r->reason == f.reason;
}

void make_wait(row& r) {
  r.state = row_state::waiting;
  leave_lane(r);
  r.owner.clear();
  r.lease_until.reset();
}

void make_dead(row& r, const std::string& reason) {
  make_wait(r);
  r.state = row_state::dead;
  r.place.reset();
  r.reason = reason;
}

}  // namespace

simulated_session::simulated_session(std::shared_ptr<simulated_data> data, std::string owner,
                                     detail::claim_rules rules)
    : data_(std::move(data)), rules_(std::move(rules)) {
  auto& queues = rules_.queues;  // a claim must check each only once
  std::ranges::sort(queues);
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  self_.owner = std::move(owner);
  self_.queues = queues;
  seen_changes_ = data_->changes;
  timeline_ = data_->timeline;
  connect();
  self_.news = perhaps_forgotten_ = false;
  data_->listeners.push_back(&self_);
}

simulated_session::~simulated_session() {
  std::erase(data_->listeners, &self_);
  data_->end_session(self_.owner);
}

/// PostgreSQL's owner enters with the connection, SQLite's with the first turn.
void simulated_session::connect() {
  if (self_.connected) return;
  self_.connected = self_.news = true;  // it may have missed some
  perhaps_forgotten_ = data_->how == locking::rows;
  went_back_ = went_back_ || timeline_ != data_->timeline;
  timeline_ = data_->timeline;
  if (data_->how == locking::rows) data_->owners[self_.owner] = true;
}

bool simulated_session::lives() const {
  const auto own = data_->owners.find(self_.owner);
  return own != data_->owners.end() && own->second;
}

std::int64_t simulated_session::lease_from(std::int64_t when) const {
  return when + detail::microseconds_of(rules_.lease);
}

detail::turn_result simulated_session::take(const turn& what) {
  connect();
  if (std::exchange(went_back_, false))
    throw rondo::durable::store_error("the simulated server has another timeline than before");
  if (what.adopt) perhaps_forgotten_ = false;
  if (what.concerns_runs() && std::exchange(perhaps_forgotten_, false))
    throw rondo::durable::store_error("the connection broke");
  turn_result done;
  simulated_transaction t(*data_, &self_, true);
  if (!lives()) t.set_owner(self_.owner, true);
  if (!what.finished.empty()) finish(t, what, done);
  if (!what.failed.empty()) fail(t, what, done);
  if (!what.passed.empty()) pass(t, what, done);
  if (!what.unstarted.empty()) take_back(t, what, done);
  if (!what.returned.empty()) give_back(t, what, done);
  if (!what.renewed.empty()) renew(t, what, done);
  if (!what.kept.empty()) keep(t, what);
  if (!what.begun.empty()) begin(t, what, done);
  if (!what.watched.empty()) watch(t, what, done);
  if (what.adopt) adopt(t, done);
  if (what.claim_up_to != 0) claim_tasks(t, what, done);
  t.commit(data_->how == locking::rows && (what.claim_up_to != 0 || what.tells_death()));
  return done;
}

void simulated_session::finish(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  for (const ticket& f : what.finished)
    if (entry* const e = find(t, f, self_.owner, begun, done.locked)) {
      t.remove(*e);
      done.finished.push_back(f);
    }
}

void simulated_session::fail(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  for (const detail::failure& f : what.failed) {
    entry* const e = find(t, f.of, self_.owner, begun, done.locked);
    if (e != nullptr || is_dead(t, f)) done.failed.push_back(f.of);
    if (e == nullptr) continue;
    if (t.look(*e)->state == row_state::cancelled) {
      done.removed.push_back(f.of);
      t.remove(*e);
      continue;
    }
    row& r = t.change(*e);
    if (!f.retry_after) {
      make_dead(r, f.reason);
      continue;
    }
    make_wait(r);
    if (r.attempt != 0)
      r.due = t.from_now(detail::microseconds_of(*f.retry_after));  // else it is declared anew
    if (!f.counts) r.attempt = std::max(r.attempt - 1, 0);
    if (*f.retry_after < detail::soon) t.tell(r.queue);
  }
}

void simulated_session::pass(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  for (const detail::passage& p : what.passed) {
    entry* const e =
        find(t, p.of, self_.owner, {row_state::held, row_state::running, row_state::cancelled}, done.locked);
    if (e == nullptr) continue;
    done.passed.push_back(p.of);
    const row& before = *t.look(*e);
    std::optional<std::int64_t> next, offset;
    if (p.next) {
      next = detail::microseconds_of(p.next->at);
      offset = detail::offset_of(*p.next);
    }
    if (before.state == row_state::running && before.attempt == 0) {  // declared anew
      next = before.point;
      offset = before.point_offset;
    }
    if (before.state == row_state::cancelled) done.removed.push_back(p.of);
    if (before.state == row_state::cancelled || (!next && !p.given_up)) {
      t.remove(*e);
    } else if (!next) {
      make_dead(t.change(*e), p.reason);
    } else {
      row& r = t.change(*e);
      make_wait(r);
      r.due = *next;
      r.point = *next;
      r.point_offset = offset;
      if (r.place) r.place = *next;
      r.attempt = 0;
      r.reason = p.given_up ? p.reason : "";
      t.tell_if_soon(r);
    }
  }
}

void simulated_session::take_back(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  for (const ticket& u : what.unstarted) {
    entry* const e = find(t, u, self_.owner, begun, done.locked);
    if (e == nullptr) continue;
    if (t.look(*e)->state == row_state::cancelled) {
      t.remove(*e);
      continue;
    }
    row& r = t.change(*e);
    make_wait(r);
    r.attempt = std::max(r.attempt - 1, 0);
    t.tell(r.queue);
  }
}

void simulated_session::give_back(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  for (const ticket& b : what.returned)
    if (entry* const e = find(t, b, self_.owner, {row_state::held}, done.locked)) {
      make_wait(t.change(*e));
      t.tell(t.look(*e)->queue);
    }
}

void simulated_session::renew(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  std::vector<ticket> not_told;
  for (const ticket& r : what.renewed)
    if (entry* const e = find(t, r, self_.owner, begun, not_told)) {
      t.change(*e).lease_until = lease_from(t.now());
      done.renewed.push_back(r);
    }
}

void simulated_session::keep(simulated_transaction& t, const turn& what) {
  t.statement();
  std::vector<ticket> not_told;
  for (const ticket& k : what.kept)
    if (entry* const e = find(t, k, self_.owner, begun, not_told);
        e != nullptr && *t.look(*e)->lease_until < t.now() + detail::microseconds_of(rules_.lease) / 2)
      t.change(*e).lease_until = lease_from(t.now());
}

void simulated_session::begin(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  for (const ticket& b : what.begun) {
    entry* const e = find(t, b, self_.owner, {row_state::held, row_state::running}, done.locked);
    if (e == nullptr) continue;
    const row& before = *t.look(*e);
    if (before.state == row_state::running) {  // a repetition, because the first answer was lost
      t.change(*e).lease_until = lease_from(t.now());
      done.begun.push_back(b);
      continue;
    }
    const auto p = std::ranges::find(what.points, b, &detail::pointed::of);
    std::int64_t due = before.due;
    if (before.point && p != what.points.end())
      if (const std::int64_t point = detail::microseconds_of(p->point.at); point != *before.point)
        due = point;
    if (!may_begin(t, before, due)) {
      done.early.push_back(b);
      continue;
    }
    if (!stop_rivals(t, before)) {
      done.locked.push_back(b);
      continue;
    }
    row& r = t.change(*e);
    if (r.due != due) r.point = r.due = due;
    if (p != what.points.end()) r.point_offset = detail::offset_of(p->point);
    r.state = row_state::running;
    ++r.attempt;
    r.lease_until = lease_from(t.now());
    done.begun.push_back(b);
  }
}

/// Of two tasks of a lane that are both held, only the first may begin.
bool simulated_session::may_begin(const simulated_transaction& t, const row& r, std::int64_t due) const {
  return due <= t.now() && !data_->paused.contains(r.queue) &&
         (r.lane.empty() || (!t.has_earlier(r) && !t.has_another_that_runs(r)));
}

/// Locks the other held tasks of the lane, so that they cannot begin at the same time. Returns false if another
/// transaction has one of them.
bool simulated_session::stop_rivals(simulated_transaction& t, const row& r) {
  if (r.lane.empty()) return true;
  for (auto& [id, e] : t.all()) {
    const row* const other = t.look(e);
    if (other == nullptr || other == &r || other->state != row_state::held || other->queue != r.queue ||
        other->lane != r.lane)
      continue;
    if (t.is_locked(e)) return false;
    t.lock(e);
  }
  return true;
}

void simulated_session::watch(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  for (const ticket& w : what.watched) {
    const entry* const e = t.find(w.id);
    if (e == nullptr || !is_of(t.look(*e), w, self_.owner, {row_state::held, row_state::running}))
      done.cancelled.push_back(w);
  }
}

detail::claim simulated_session::claim_of(const simulated_transaction& t, const row& r) const {
  return {task_of(r),
          detail::time_until(r.due, t.now()),
          r.max_attempts,
          !r.lane.empty(),
          r.schedule,
          r.missed,
          r.point_offset ? std::optional(std::chrono::seconds(*r.point_offset)) : std::nullopt};
}

/// The leases start again, so that a claim in the same turn does not find the tasks expired.
void simulated_session::adopt(simulated_transaction& t, turn_result& done) {
  t.statement();
  for (auto& [id, e] : t.all()) {
    const row* const own = t.look(e);
    if (own == nullptr || own->state != row_state::held || own->owner != self_.owner || t.is_locked(e) ||
        !std::ranges::binary_search(rules_.queues, own->queue))
      continue;
    row& r = t.change(e);
    r.lease_until = lease_from(std::max(r.due, t.now()));
    done.claimed.push_back(claim_of(t, r));
  }
}

void simulated_session::claim_tasks(simulated_transaction& t, const turn& what, turn_result& done) {
  t.statement();
  std::vector<entry*> found;
  for (const std::string& queue : rules_.queues) {
    if (data_->paused.contains(queue)) continue;
    find_claimable(t, queue, what, found);
    end_expired(t, queue, done);
  }
  std::ranges::sort(found, {}, [&](const entry* e) { return std::pair(t.look(*e)->due, t.look(*e)->id); });
  if (found.size() > what.claim_up_to) found.resize(what.claim_up_to);
  std::size_t bytes = 0;
  for (entry* const e : found) {
    if (bytes >= what.claim_bytes) break;
    row& r = t.change(*e);
    r.state = row_state::held;
    leave_lane(r);
    r.owner = self_.owner;
    r.lease_until = lease_from(std::max(r.due, t.now()));
    r.fence = data_->fence_after(r, t.now(), self_.owner);
    done.claimed.push_back(claim_of(t, r));
    bytes += r.payload.size();
  }
}

/// Locks what it finds, as PostgreSQL does: the first tasks of each queue, although not all of them may be claimed.
void simulated_session::find_claimable(simulated_transaction& t, const std::string& queue, const turn& what,
                                       std::vector<entry*>& found) {
  std::vector<entry*> here;
  for (auto& [id, e] : t.all())
    if (const row* const r = t.look(e);
        r != nullptr && r->queue == queue && !t.is_locked(e) && is_claimable(t, *r) &&
        std::ranges::find(what.unreadable, r->schedule) == what.unreadable.end())
      here.push_back(&e);
  std::ranges::sort(here, {}, [&](const entry* e) { return std::pair(t.look(*e)->due, t.look(*e)->id); });
  if (here.size() > what.claim_up_to) here.resize(what.claim_up_to);
  for (entry* const e : here) t.lock(*e);
  found.insert(found.end(), here.begin(), here.end());
}

bool simulated_session::is_claimable(const simulated_transaction& t, const row& r) const {
  if (r.state == row_state::waiting)
    return r.due < t.now() + detail::microseconds_of(rules_.window) &&
           (r.lane.empty() || (!t.has_earlier(r) && !t.has_another_that_runs(r)));
  if (r.state != row_state::held && r.state != row_state::running) return false;
  const int most = r.max_attempts != 0 ? r.max_attempts : rules_.max_attempts;
  return *r.lease_until < t.now() && (r.state == row_state::held || r.attempt < most || !r.schedule.empty());
}

/// What this lets go first in a lane is found by the next claim.
void simulated_session::end_expired(simulated_transaction& t, const std::string& queue, turn_result& done) {
  for (auto& [id, e] : t.all()) {
    const row* const r = t.look(e);
    if (r == nullptr || r->queue != queue || t.is_locked(e) || !r->runs() || *r->lease_until >= t.now() ||
        is_claimable(t, *r))
      continue;
    if (!r->lane.empty()) done.may_have_more = true;
    if (r->state == row_state::cancelled) {
      t.remove(e);
    } else {
      row& dead = t.change(e);
      make_dead(dead, "lease ran out");
      done.expired.push_back(task_of(dead));
      done.expired.back().payload.clear();
    }
  }
}

void simulated_session::free_held_by(simulated_transaction& t, const std::string& owner) {
  bool all = true;
  for (auto& [id, e] : t.all()) {
    const row* const held = t.look(e);
    if (held == nullptr || held->state != row_state::held || held->owner != owner) continue;
    if (t.is_locked(e)) {
      all = false;
      continue;
    }
    row& r = t.change(e);
    make_wait(r);
    ++r.fence;
    t.tell(r.queue);
  }
  if (all) t.set_owner(owner, false);
}

bool simulated_session::changed() {
  connect();
  bool any_died = false;
  try {
    std::vector<std::string> dead;
    for (const auto& [owner, lives] : data_->owners)
      if (!lives && owner != self_.owner) dead.push_back(owner);
    any_died = !dead.empty();
    if (any_died) {
      simulated_transaction t(*data_, &self_, true);
      t.statement();
      for (const std::string& owner : dead) free_held_by(t, owner);
      t.commit(data_->how == locking::rows);
    }
  } catch (const std::exception&) {
    return true;
  }
  if (data_->how == locking::rows) return any_died;
  const std::int64_t by_others = data_->changes - self_.own_changes;
  return std::exchange(seen_changes_, by_others) != by_others || any_died;
}

rondo::duration simulated_session::look_every() const {
  return data_->how == locking::rows ? std::chrono::milliseconds(500) : std::chrono::milliseconds(50);
}

bool simulated_session::wait() {
  if (std::exchange(interrupted_, false) || data_->how == locking::database) return false;
  return std::exchange(self_.news, false);
}

}  // namespace durable_test
