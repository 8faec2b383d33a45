#include "durable/simulation_ledger.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "durable/microseconds.hpp"
#include "durable/schedule_access.hpp"
#include "durable/simulation_text.hpp"

namespace durable_test {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using rondo::duration;
using rondo::time_point;
using rondo::durable::missed_points;
using rondo::durable::wall_time;

namespace {

std::size_t hash_of_declaration(const row& r) {
  return std::hash<std::string>{}(r.schedule + '\n' + r.declared_lane() + '\n' + r.payload) +
         static_cast<std::size_t>(r.missed);
}

}  // namespace

void simulation_ledger::wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

void simulation_ledger::wrong(const run& r, const std::string& what) {
  const row* const there = database_.find(r.what.id);
  wrong("task " + std::to_string(r.what.id) + " fence " + std::to_string(r.what.fence) + " attempt " +
        std::to_string(r.what.attempt) + ": " + what + " (now " +
        std::to_string(clocks_.engine_microseconds()) + ", " +
        (there != nullptr ? text_of(*there) : "no row") + ')');
}

// ---- Calls of a store

std::vector<simulation_ledger::brief> simulation_ledger::all_brief() const {
  std::vector<brief> all;
  database_.for_each_row([&](const row& r) {
    all.push_back({r.id, r.due, r.fence, point_of(r), r.state, hash_of_declaration(r)});
  });
  return all;
}

void simulation_ledger::before_call() { before_ = all_brief(); }

void simulation_ledger::after_call() {
  for (const brief& b : before_) compare(b, database_.find(b.id));
  const std::int64_t last = before_.empty() ? 0 : before_.back().id;
  database_.for_each_row([&](const row& r) {
    if (r.id > last) learn(r);
  });
}

void simulation_ledger::learn(const row& r) {
  known& t = tasks_[r.id] = {};
  t.queue = r.queue;
  t.schedule = r.schedule;
  t.max_attempts = r.max_attempts;
  t.changed_at = clocks_.now();
  points_.declared(r);
}

void simulation_ledger::compare(const brief& before, const row* after) {
  known& t = tasks_[before.id];
  const time_point now = clocks_.now();
  if (after == nullptr) {
    t.removed_at = taken_away_ = now;
    return;
  }
  if (after->state == row_state::cancelled && before.state != row_state::cancelled) {
    t.cancelled_at = taken_away_ = now;
    t.last_fence = after->fence;
  }
  if (before.state == row_state::dead && after->lives()) {
    t.is_done = false;
    t.changed_at = t.revived_at = now;
  }
  if (before.due != after->due || before.fence != after->fence || before.point != point_of(*after)) {
    t.changed_at = taken_away_ = now;
    t.snooze = {};
  }
  if (before.declared != hash_of_declaration(*after)) {
    t.changed_at = t.declared_at = taken_away_ = now;
    t.schedule = after->schedule;
    if (after->next_lane) leaving_.insert(after->id);
    points_.declared(*after);
  }
}

// ---- Runs

void simulation_ledger::begins(const runner& by, const run& r, time_point asked, time_point sent) {
  ++runs_;
  note(static_cast<std::uint64_t>(r.what.id));
  note(static_cast<std::uint64_t>(r.what.fence));
  note_beginning(by, r);
  if (begins_lost(by, r, sent)) return;
  known& t = tasks_[r.what.id];
  // (If the clock has been set forward since the run began in the database, or that has been forgotten, another may have
  // taken the task over.)
  if (r.what.fence == t.begun_fence ||
      (r.what.fence < t.begun_fence && clocks_.set_forward() < sent && forgot_ < sent))
    wrong(r, "its fence is not greater than that of a run before, " + std::to_string(t.begun_fence));
  t.begun_fence = std::max(t.begun_fence, r.what.fence);
  if (t.cancelled_at != never && r.what.fence > t.last_fence) wrong(r, "it runs again, though cancelled");
  if (r.what.attempt < 1 || r.what.attempt > most_attempts(by, t))
    wrong(r, "that is not one of its attempts");
  if (const auto paused = paused_at_.find(r.what.queue); paused != paused_at_.end() && paused->second < asked)
    wrong(r, "its queue is paused");
  check_time(by, r, asked, t);
  if (clocks_.set_forward() < sent && forgot_ < sent) check_claim(by, r, sent, t);
  const bool is_certain = clocks_.set_forward() < asked && forgot_ < asked;
  const row* const own = database_.find(r.what.id);
  const bool has_lane = own != nullptr && own->fence == r.what.fence && !own->lane.empty();
  t.begun_lane = has_lane ? own->lane : "";
  if (is_certain && has_lane) check_lane(r, *own, asked, t);
  t.snooze = {};
  t.begun_at = clocks_.now();
}

/// No fence is given to a task twice, in whatever history.
void simulation_ledger::note_beginning(const runner& by, const run& r) {
  const auto same = begun_.lower_bound({r.of(), ""});
  if (same != begun_.end() && same->first == r.of() &&
      (!database_.fences_repeat() || same->second == by.owner))
    wrong(r, "a run of " + same->second + " had the same fence");
  begun_.insert({r.of(), by.owner});
  endings_.erase({r.of(), by.owner});  // the fence of a claim that was forgotten
}

/// Nothing is known of the tasks of lost claims. But the database knows that it does not know them.
bool simulation_ledger::begins_lost(const runner& by, const run& r, time_point sent) {
  if (!is_lost(by.owner, r.of())) return false;
  if (went_back_ < sent) wrong(r, "it begins, although the claim of " + by.owner + " is lost");
  if (clocks_.set_back() < sent && detail::microseconds_of(r.what.due) > clocks_.engine_microseconds())
    wrong(r, "it is early");
  return true;
}

void simulation_ledger::check_time(const runner& by, const run& r, time_point asked, const known& t) {
  if (clocks_.set_back() < asked && detail::microseconds_of(r.what.due) > clocks_.engine_microseconds())
    wrong(r, "it is early");
  if (t.snooze.is_settled && clocks_.set_back() < t.snooze.at && t.changed_at <= t.snooze.at &&
      clocks_.engine_microseconds() < t.snooze.until)
    wrong(r, "it was snoozed until " + std::to_string(t.snooze.until));
  if (!r.what.point) return;
  if (const std::string found = points_.begins({by.options, by.calm_since, by.longest_step, asked}, r);
      !found.empty())
    wrong(r, found);
}

/// Precondition: the claim cannot have been lost.
void simulation_ledger::check_claim(const runner& by, const run& r, time_point sent, const known& t) {
  const row* const there = database_.find(r.what.id);
  if (there == nullptr || there->fence != r.what.fence || !there->runs() || there->owner != by.owner)
    return wrong(r, "it runs without a claim, as " + by.owner);
  if (*there->lease_until < clocks_.engine_microseconds()) wrong(r, "its lease has run out");
  if (t.changed_at >= sent || there->attempt == 0) return;  // it has been moved, or declared anew
  if (there->payload != r.what.payload) wrong(r, "it is another task");
  if (there->attempt != r.what.attempt) wrong(r, "the attempt is another one");
  if (detail::microseconds_of(r.what.due) != there->due) wrong(r, "the due time is another one");
  if ((r.what.point ? detail::microseconds_of(*r.what.point) : 0) != point_of(*there))
    wrong(r, "the point is another one");
}

void simulation_ledger::check_lane(const run& r, const row& own, time_point asked, const known& t) {
  database_.for_each_row([&](const row& other) {
    if (other.id == own.id || other.queue != own.queue || !other.lives()) return;
    const known& o = tasks_[other.id];
    // Whatever has been said of its lane since.
    if (own.runs() && other.runs() && other.fence == o.begun_fence && o.begun_lane == own.lane)
      wrong(r, "another task that began in its lane runs: " + text_of(other));
    if (t.changed_at >= asked || o.changed_at >= asked) return;  // perhaps one has entered the lane since
    if (other.lane != own.lane) return;
    if (other.runs()) wrong(r, "another task of its lane runs: " + text_of(other));
    if (std::tie(other.place, other.id) < std::tie(own.place, own.id))
      wrong(r, "another task of its lane comes before it: " + text_of(other));
  });
}

void simulation_ledger::ends(const std::string& owner, const run& r, ending how, duration snoozed_for) {
  note(static_cast<std::uint64_t>(how));
  endings_[{r.of(), owner}] = {how, r.reason};
  if (is_lost(owner, r.of())) return;
  known& t = tasks_[r.what.id];
  t.changed_at = clocks_.now();
  const std::int64_t point = r.what.point ? detail::microseconds_of(*r.what.point) : 0;
  if (how == ending::done) {
    t.is_done = true;
    points_.is_done(r.what.id, point);
  }
  t.snooze = {};
  const bool is_old = t.declared_at >= t.begun_at;  // then it is due at its new point
  if (how == ending::snoozes && !is_old)
    t.snooze = {
        .fence = r.what.fence,
        .at = clocks_.now(),
        .until =
            clocks_.engine_microseconds() +
            std::chrono::floor<std::chrono::microseconds>(std::max(snoozed_for, duration::zero())).count()};
}

// ---- What a dispatcher tells the database

std::optional<ending> simulation_ledger::ending_of(const std::string& owner, const ticket& of) const {
  const auto at = endings_.find({of, owner});
  return at != endings_.end() ? std::optional(at->second.how) : std::nullopt;
}

void simulation_ledger::commits(const runner& by, const detail::turn& what) {
  const auto is_its = [&](const row* r, const ticket& of) {
    return r != nullptr && r->fence == of.fence && r->owner == by.owner && r->state != row_state::waiting &&
           r->lives();
  };
  const auto is_not_repeated = [&](const row& r) {
    return not_repeated_.contains({{r.id, r.fence}, by.owner});
  };
  const auto check_death = [&](const row& r, std::optional<ending> how) {
    const known& t = tasks_[r.id];
    if (how != ending::gives_up && r.attempt != 0 && r.attempt < most_attempts(by, t))
      wrong("given up too early: " + text_of(r));
  };
  // A server that has crashed is told again of the beginning first. (It may refuse that: for a pause, for another task
  // of the lane, or because its clock has been set back. Then the run counts for nothing.)
  const auto check_begun = [&](const row& r, std::optional<ending> how) {
    if (how && r.state == row_state::held && !is_not_repeated(r))
      wrong("the beginning of a run that ends is not known: " + text_of(r));
  };
  for (const detail::ticket& f : what.finished) {
    const row* const r = database_.find(f.id);
    if (!is_its(r, f)) continue;
    const auto how = ending_of(by.owner, f);
    if (how != ending::done) wrong("finished without having run: " + text_of(*r));
    tasks_[f.id].is_done = true;
    check_begun(*r, how);
  }
  for (const detail::failure& f : what.failed) {
    const row* const r = database_.find(f.of.id);
    if (!is_its(r, f.of)) continue;
    const auto how = ending_of(by.owner, f.of);
    if (how != ending::fails && how != ending::snoozes && how != ending::gives_up)
      wrong("failed without having failed: " + text_of(*r));
    if (!f.retry_after && !is_not_repeated(*r)) check_death(*r, how);
    tasks_[r->id].snooze.is_told = tasks_[r->id].snooze.fence == r->fence;
    check_begun(*r, how);
  }
  for (const detail::passage& p : what.passed) {
    const row* const r = database_.find(p.of.id);
    if (!is_its(r, p.of)) continue;
    const auto how = ending_of(by.owner, p.of);
    check_begun(*r, how);
    if (p.given_up && !is_not_repeated(*r)) check_death(*r, how);
    if (p.given_up && r->runs() && how != ending::fails && how != ending::gives_up)
      wrong("given up without having run: " + text_of(*r));
    if (is_not_repeated(*r)) continue;  // its row may have an older point
    const std::string found = points_.passes(*by.options, *r, p, how == ending::done);
    if (!found.empty()) wrong(found + ": " + text_of(*r));
  }
}

void simulation_ledger::committed(const std::string& owner, const detail::turn& what) {
  if (what.claim_up_to != 0)
    database_.for_each_row([&](const row& r) {
      const claim c{{r.id, r.fence}, owner};
      if (r.state != row_state::held || r.owner != owner || !claimed_.insert(c).second) return;
      claims_.push_back(c);
      previous_[c.first] = std::exchange(last_claim_[r.id], r.fence);
    });
  for (const detail::failure& f : what.failed) {
    const auto t = tasks_.find(f.of.id);
    if (t == tasks_.end()) continue;
    snoozed& s = t->second.snooze;
    const row* const r = database_.find(f.of.id);
    if (s.is_told && s.fence == f.of.fence && r != nullptr && r->fence == f.of.fence &&
        r->state == row_state::waiting)
      s.is_settled = true;
  }
  std::erase_if(leaving_, [&](std::int64_t id) { return has_left_lane(id); });
}

/// Precondition: it had not before the transaction that has just been committed.
bool simulation_ledger::has_left_lane(std::int64_t id) {
  const row* const r = database_.find(id);
  if (r != nullptr && r->runs() && r->next_lane) return false;
  tasks_[id].changed_at = clocks_.now();  // it has entered another lane, perhaps before others that run
  if (r == nullptr) return true;
  if (r->next_lane) wrong("it does not run any more, and is still in its lane: " + text_of(*r));
  const bool has_place = r->lives() && !r->lane.empty();
  if (!r->runs() && r->place != (has_place ? std::optional(r->due) : std::nullopt))
    wrong("it has entered a lane at another place than that of its due time: " + text_of(*r));
  return true;
}

/// A run has not ended, or the declaration of another lane has not been made.
void simulation_ledger::find_leaving() {
  leaving_.clear();
  database_.for_each_row([&](const row& r) {
    if (r.runs() && r.next_lane) leaving_.insert(r.id);
  });
}

void simulation_ledger::told_dead(const rondo::durable::task& t, const std::string& reason) {
  note(static_cast<std::uint64_t>(t.id));
  if (reason.empty()) wrong("task " + std::to_string(t.id) + " is dead without a reason");
  const row* const r = database_.find(t.id);
  if (r != nullptr && !r->lives() && r->fence == t.fence && !told_dead_.insert({t.id, t.fence}).second)
    wrong("told twice that a task is dead: " + text_of(*r));
}

time_point simulation_ledger::cancelled_at(const std::string& owner, const ticket& of) const {
  if (const auto lost = lost_at_.find({of, owner}); lost != lost_at_.end()) return lost->second;
  const auto t = tasks_.find(of.id);
  const bool was_told = t != tasks_.end() && t->second.last_fence == of.fence;
  return was_told && database_.find(of.id) != nullptr ? t->second.cancelled_at : never;
}

void simulation_ledger::forgot(bool all) {
  forgot_ = clocks_.now();
  find_leaving();
  points_.forgot();
  for (auto& [id, t] : tasks_) t.snooze = {};
  if (!all) return;
  for (auto& [id, t] : tasks_) t.begun_fence = 0;
  told_dead_.clear();
  if (clocks_.set_back() == never) return;
  // A new claim may have the fence of one that is forgotten.
  begun_.clear();
  std::erase_if(endings_, [&](const auto& each) {
    const row* const r = database_.find(each.first.first.id);
    return r == nullptr || r->lives();
  });
}

void simulation_ledger::went_back(const memory& to) {
  forgot_ = went_back_ = taken_away_ = clocks_.now();
  find_leaving();
  tasks_ = to.tasks;
  points_.went_back(to.points);
  for (std::size_t i = to.claims; i != claims_.size(); ++i) {
    claimed_.erase(claims_[i]);
    lost_at_[claims_[i]] = clocks_.now();
  }
  claims_.resize(to.claims);
  last_claim_.clear();
  std::erase_if(told_dead_, [&](const ticket& of) {
    const row* const r = database_.find(of.id);
    return r == nullptr || r->lives() || r->fence != of.fence;
  });
  paused_at_.clear();
  for (const std::string& queue : database_.paused()) paused_at_[queue] = clocks_.now();
}

// ---- The end

bool simulation_ledger::all_is_done() const {
  bool done = true;
  database_.for_each_row([&](const row& r) {
    if (r.schedule.empty())
      done = done && !r.lives();
    else if (r.schedule != unreadable && r.due <= clocks_.engine_microseconds())
      done = false;
  });
  return done;
}

std::string simulation_ledger::what_is_left() const {
  std::string all = "now " + std::to_string(clocks_.engine_microseconds());
  database_.for_each_row([&](const row& r) {
    if (r.lives()) all += "\n  " + text_of(r);
  });
  return all;
}

void simulation_ledger::check_the_end() {
  for (const auto& [id, t] : tasks_) {
    const row* const r = database_.find(id);
    const bool is_cancelled = t.removed_at != never || t.cancelled_at != never;
    if (r == nullptr) {
      if (!is_cancelled && (!t.is_done || !t.schedule.empty()))
        wrong("task " + std::to_string(id) + " is lost");
      continue;
    }
    if (!t.schedule.empty() && r->lives()) {
      if (const std::string found = points_.check_all(*r); !found.empty()) wrong(found + ": " + text_of(*r));
      continue;
    }
    if (r->state == row_state::dead && !is_dead_for(*r)) wrong("dead for another reason: " + text_of(*r));
  }
}

/// Whether that was the reason.
bool simulation_ledger::is_dead_for(const row& r) const {
  if (r.reason == "lease ran out") return true;
  const ticket of{r.id, r.fence};
  for (auto e = endings_.lower_bound({of, ""}); e != endings_.end() && e->first.first == of; ++e)
    if (!r.reason.empty() && e->second.reason == r.reason) return true;
  return false;
}

// The points of repeated tasks.

namespace {

// A dispatcher counts from when it received a claim, which is later than the time that the engine named.
constexpr duration tolerance = 50ms;

}  // namespace

void simulation_points::declared(const row& r) {
  if (r.point) tasks_[r.id] = {.first = *r.point};
}

void simulation_points::forgot() {
  forgot_ = clocks_.now();
  for (auto& [id, t] : tasks_) t.begun.reset();
}

std::string simulation_points::begins(const runner& by, const detail::run& r) {
  const row* const there = database_.find(r.what.id);
  if (there == nullptr || there->attempt == 0) return {};  // declared anew
  known& t = tasks_[r.what.id];
  const std::int64_t point = detail::microseconds_of(*r.what.point);
  const auto before = std::exchange(t.begun, point);
  if (before && *before < point && !t.over.contains(*before))
    return "a run of its point " + std::to_string(*before) + " has begun, and none has ended";
  return check_missed(by, r);
}

/// At the first attempt, at the time of a point, the newer ones decide.
std::string simulation_points::check_missed(const runner& by, const detail::run& r) const {
  const duration longest_held = by.options->window + by.options->lease;
  if (r.what.attempt != 1 || r.what.due != *r.what.point || by.calm_since >= by.asked ||
      std::max(clocks_.set(), forgot_) >= by.asked - longest_held)
    return {};
  const wall_time then = clocks_.at(by.asked - tolerance - by.longest_step);
  if (r.missed == missed_points::run_once && detail::next_point(*r.repeats, r.point())->at < then)
    return "there is a newer point";
  if (r.missed == missed_points::skip &&
      is_too_old(detail::microseconds_of(*r.what.point), then, by.options->window))
    return "its point is too old";
  return {};
}

bool simulation_points::is_too_old(std::int64_t point, wall_time now, duration window) const {
  return detail::wall_time_of(point) < now - window;
}

std::string simulation_points::passes(const rondo::durable::dispatcher_options& by, const row& r,
                                      const detail::passage& p, bool done) {
  if (p.given_up) tasks_[r.id].over.insert(*r.point);
  if (r.runs() && r.attempt == 0) return {};  // declared anew: it goes on with its new point
  if (done) tasks_[r.id].over.insert(*r.point);
  if (!p.next || detail::microseconds_of(p.next->at) <= *r.point) return "it goes on with no later point";
  if (p.given_up || done) {
    const auto next = detail::next_point(detail::schedule_of(r.schedule), {detail::wall_time_of(*r.point)});
    return next == p.next ? "" : "it does not go on with its next point";
  }
  if (r.runs() || r.missed != missed_points::skip) return "its point is passed over";
  return clocks_.set_back() == simulated_clocks::never ? check_next(by, r, p) : "";
}

/// What is passed over is too old.
std::string simulation_points::check_next(const rondo::durable::dispatcher_options& by, const row& r,
                                          const detail::passage& p) const {
  const auto schedule = detail::schedule_of(r.schedule);
  for (auto at = detail::wall_time_of(*r.point); at < p.next->at; at = detail::next_point(schedule, {at})->at)
    if (!is_too_old(detail::microseconds_of(at), clocks_.engine(), by.window))
      return "its point " + std::to_string(detail::microseconds_of(at)) + " is not too old, but passed over";
  return {};
}

std::string simulation_points::check_all(const row& r) const {
  const known& t = tasks_.at(r.id);
  if (r.missed != missed_points::run_all || r.schedule == unreadable) return {};
  const auto schedule = detail::schedule_of(r.schedule);
  for (auto at = detail::wall_time_of(t.first); detail::microseconds_of(at) < *r.point;
       at = detail::next_point(schedule, {at})->at)
    if (!t.over.contains(detail::microseconds_of(at)))
      return "it was not run for its point " + std::to_string(detail::microseconds_of(at));
  return {};
}

}  // namespace durable_test
