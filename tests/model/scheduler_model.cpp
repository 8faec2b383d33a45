#include "model/scheduler_model.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rondo::test {

template <class Qualifies>
std::optional<std::size_t> scheduler_model::earliest(Qualifies&& qualifies) const {
  looks_ += perhaps_live_.size();
  std::optional<std::size_t> first;
  for (const std::size_t i : perhaps_live_) {
    const timer& t = all_[i];
    if (!t.waits || (first && t.tick > all_[*first].tick) || !qualifies(t)) continue;
    if (!first || std::tie(t.tick, t.armed) < std::tie(all_[*first].tick, all_[*first].armed)) first = i;
  }
  return first;
}

std::size_t scheduler_model::pending() const {
  looks_ += perhaps_live_.size();
  std::size_t count = 0;
  for (const std::size_t i : perhaps_live_) count += all_[i].live;
  return count;
}

std::optional<ns> scheduler_model::due(std::size_t which) const {
  const timer& t = all_[which];
  return t.live && t.waits ? std::optional(t.due) : std::nullopt;
}

std::vector<scheduler_model::listed> scheduler_model::list() const {
  looks_ += all_.size();
  std::vector<listed> found;
  for (std::size_t i = 0; i != all_.size(); ++i) {
    const timer& t = all_[i];
    if (!t.live && t.running == 0) continue;
    const auto begun = t.periodic() ? t.runs - t.submitted.size() : static_cast<std::uint64_t>(t.running);
    found.push_back({i, due(i), begun, t.periodic(), t.running});
  }
  return found;
}

ns scheduler_model::next_due() const {
  const auto first = earliest([](const timer& t) { return t.due != never; });
  return first && !stopped_ ? all_[*first].tick * tick_ : never;
}

bool scheduler_model::walks_too_far(ns to) const {
  constexpr ns most = 10'000'000;
  return std::any_of(all_.begin(), all_.end(), [to](const timer& t) {
    if (!t.live || !t.periodic() || t.how.from_end() || t.upcoming.due >= to) return false;
    return (to - t.upcoming.due) / *std::min_element(t.how.gaps.begin(), t.how.gaps.end()) > most;
  });
}

std::size_t scheduler_model::schedule(plan p, runs_on where, ns due, ns slack) {
  all_.push_back({});
  timer& t = all_.back();
  t.live = true;
  t.where = where;
  t.slack = slack;
  t.how = std::move(p);
  if (t.periodic()) t.upcoming = t.how.first(now_);
  arm(t, t.periodic() ? t.upcoming.due : due);
  ++counts_.scheduled;
  perhaps_live_.push_back(all_.size() - 1);
  return all_.size() - 1;
}

cancel_result scheduler_model::cancel(std::size_t which, bool asks) {
  timer& t = all_[which];
  t.asked |= asks && t.running != 0;
  if (!t.live) return t.running != 0 ? cancel_result::running : cancel_result::gone;
  end_now(t);
  ++counts_.cancelled;
  return t.running != 0 ? cancel_result::running : cancel_result::cancelled;
}

bool scheduler_model::reschedule(std::size_t which, ns due) {
  timer& t = all_[which];
  if (!t.live || stopped_) return false;
  arm(t, due);
  // The next run is the oldest one that has not started; later ones are taken back as well.
  if (!t.submitted.empty())
    t.upcoming = t.submitted.front().point;
  else if (t.kept)
    t.upcoming = *t.kept;
  t.runs -= t.submitted.size();
  t.submitted.clear();
  t.kept.reset();
  t.kept_is_due = t.held_back = t.catching_up = t.no_more_points = false;
  t.upcoming = {due, due, t.upcoming.gaps};
  return true;
}

void scheduler_model::begin_advance(ns end) {
  end_ = end;
  pass_end_ = 0;
  std::erase_if(perhaps_live_, [this](std::size_t i) { return !all_[i].live; });
}

std::optional<scheduler_model::run> scheduler_model::next_run() {
  for (;;) {
    if (const auto i = pass_end_ == 0 ? std::nullopt : first_in_pass()) {
      if (const auto r = come_to(*i)) return r;
      continue;
    }
    const ns due = next_due();
    if (due == never || due > end_) break;
    now_ = std::max(now_, due);
    pass_end_ = armings_;  // timers that are armed from now on belong to the next pass
    pass_tick_ = floor_tick(std::min(now_, end_));
  }
  pass_end_ = 0;
  if (!stop_when_drained_ || !drained()) now_ = std::max(now_, end_);
  return std::nullopt;
}

/// What earlier passes have left comes first. A late run precedes the first timer with a later tick.
std::optional<std::size_t> scheduler_model::first_in_pass() const {
  if (!has_left()) return earliest([this](const timer& t) { return in_pass(t); });
  std::optional<std::size_t> first;
  const auto place = [](const timer& t) { return std::tuple(t.left == 0, t.left, t.tick, t.armed); };
  for (const std::size_t i : perhaps_live_)
    if (in_pass(all_[i]) && !all_[i].in_turn && (!first || place(all_[i]) < place(all_[*first]))) first = i;
  const auto late = earliest([this](const timer& t) { return in_pass(t) && t.in_turn; });
  return late && (!first || all_[*late].tick < all_[*first].tick) ? late : first;
}

void scheduler_model::leave() {
  ++leaves_;
  for (const std::size_t i : perhaps_live_)
    if (in_pass(all_[i]) && all_[i].left == 0) all_[i].left = leaves_;
  pass_end_ = 0;
  stop_when_drained_ = false;
}

bool scheduler_model::has_left() const {
  return leaves_ != 0 && std::any_of(perhaps_live_.begin(), perhaps_live_.end(),
                                     [this](std::size_t i) { return all_[i].waits && all_[i].left != 0; });
}

std::optional<scheduler_model::run> scheduler_model::start(const run& job) {
  timer& t = all_[job.timer];
  if (stopped_ || !spend(t, job.ticket)) return std::nullopt;
  run r = job;
  r.lateness = now_ - r.due;
  r.to_come = to_come(t);
  begin(t, r);
  return r;
}

void scheduler_model::end(std::size_t which, bool threw) {
  timer& t = all_[which];
  counts_.failed += threw;
  --t.running;
  if (t.live) rearm(t);
  complete_if_over(t);
}

bool scheduler_model::drop(run& job) {
  if (stopped_ || !spend(all_[job.timer], job.ticket)) return false;
  job.to_come = to_come(all_[job.timer]);
  ++counts_.rejected;
  give_up(all_[job.timer]);
  return true;
}

void scheduler_model::refuse(const run& job) {
  ++counts_.failed;
  if (!stopped_ && spend(all_[job.timer], job.ticket)) give_up(all_[job.timer]);
}

std::vector<scheduler_model::unfired> scheduler_model::stop() {
  struct entry {
    ns tick;
    int where;  // timers that the current pass would run come first, in the order of their runs
    std::uint64_t order;
    unfired what;
  };
  std::vector<entry> found;
  for (timer& t : all_) t.asked |= t.running != 0;
  for (std::size_t i = 0; i != all_.size() && !stopped_listed_; ++i) {
    timer& t = all_[i];
    if (!t.live) continue;
    if (t.running != 0)
      ++counts_.completed;
    else if (!t.submitted.empty())
      found.push_back({t.submitted[0].tick, 0, t.submitted[0].order, {i, t.submitted[0].point.due}});
    else
      found.push_back({t.tick,
                       t.due == never ? 0
                       : !in_pass(t)  ? 3
                       : t.in_turn    ? 2
                                      : 1,
                       t.armed,
                       {i, t.due}});
    counts_.returned += t.running == 0;
    end_now(t);
  }
  stopped_ = stopped_listed_ = true;
  std::sort(found.begin(), found.end(), [](const entry& a, const entry& b) {
    return std::tie(a.tick, a.where, a.order) < std::tie(b.tick, b.where, b.order);
  });
  std::vector<unfired> list;
  for (const entry& e : found) list.push_back(e.what);
  return list;
}

void scheduler_model::begin_drain(ns limit) {
  draining_ = true;
  for (timer& t : all_) {
    if (!t.live || !t.periodic()) continue;
    end_now(t);
    ++counts_.completed;
  }
  begin_advance(now_ + limit);
  stop_when_drained_ = true;
}

bool scheduler_model::end_drain() {
  stop_when_drained_ = false;
  if (drained()) stopped_ = true;
  return stopped_;
}

bool scheduler_model::in_pass(const timer& t) const {
  if (!t.waits || t.due == never) return false;
  return t.left != 0 || (t.tick <= pass_tick_ && (t.armed < pass_end_ || t.in_turn));
}

bool scheduler_model::drained() const {
  return std::none_of(all_.begin(), all_.end(), [](const timer& t) {
    return t.running != 0 || (t.live && !(t.waits && t.due == never));
  });
}

ns scheduler_model::tick_at_or_after(ns t) const {
  if (t == never) return never;
  return floor_tick(t) + (t % tick_ == 0 ? 0 : 1);
}

ns scheduler_model::tick_of(ns due) const {
  const ns tick = tick_at_or_after(due);
  return due <= now_ ? std::min(tick, floor_tick(now_)) : tick;
}

/// The tick that `t` takes for a deadline with the tick `own`: tries one power of two after another.
ns scheduler_model::tick_taken(const timer& t, ns due, ns own) const {
  if (t.slack == 0 || due == never) return own;
  const ns first = tick_at_or_after(due);
  const ns last = floor_tick(due + t.slack);
  for (ns power = ns{1} << 62; power != 0 && first <= last; power /= 2) {
    const ns before = first % power;
    const ns multiple = before > 0 ? first - before + power : first - before;
    if (multiple <= last) return multiple;
  }
  return own;
}

void scheduler_model::arm(timer& t, ns due) {
  t.due = due;
  t.tick = tick_taken(t, due, tick_of(due));
  t.waits = true;
  t.in_turn = false;
  t.left = 0;
  t.armed = armings_++;
}

void scheduler_model::end_now(timer& t) {
  t.live = t.waits = false;
  t.submitted.clear();
}

/// Timer `i` has reached the moment that it waited for. Returns the run that begins, if any.
std::optional<scheduler_model::run> scheduler_model::come_to(std::size_t i) {
  timer& t = all_[i];
  t.waits = false;
  if (!t.periodic()) return hand(i, {t.due, t.due, 0}, t.tick, 1, 0);
  const ns due = t.due, tick = t.tick;
  if (t.kept_is_due) {
    t.upcoming = t.how.from_end() ? *t.kept : t.upcoming;
    const grid_point p = *std::exchange(t.kept, std::nullopt);
    t.kept_is_due = t.catching_up = false;
    ++t.runs;
    t.no_more_points = t.no_more_points || t.runs == t.how.times;
    if (!t.no_more_points) wait_for_next(t);
    return hand(i, p, tick, t.runs, 0);
  }
  const plan::look look = t.how.look_at(t.upcoming, now_, floor_tick(now_) * tick_);
  if (t.in_progress() && t.how.overlap != overlapping_runs::allow) {
    overlap(t, look);
    return std::nullopt;
  }
  t.catching_up = t.how.bursts() && (look.points > 1 || t.held_back);
  t.held_back = false;
  t.no_more_points = ++t.runs == t.how.times || (!t.how.from_end() && !look.next);
  if (look.next) t.upcoming = *look.next;
  if (!t.no_more_points) wait_for_next(t);
  const bool is_later = look.run.due != due;
  const ns own = tick_of(look.run.due);
  return hand(i, look.run, is_later ? tick_taken(t, look.run.due, own) : tick, t.runs, look.missed);
}

/// One or more points have come while the run before is in progress.
void scheduler_model::overlap(timer& t, const plan::look& look) {
  if (t.how.bursts() && (t.catching_up || look.points > 1)) {
    t.held_back = true;
    return;
  }
  counts_.overlapped += look.points;
  if (t.how.overlap == overlapping_runs::queue_one && !t.kept) {
    t.kept = t.upcoming;
    --counts_.overlapped;
    if (t.how.times != 0 && t.runs + 1 >= t.how.times) {  // the points after its last run are not its own
      counts_.overlapped -= look.points - 1;
      t.no_more_points = true;
      return;
    }
  }
  if (look.next) t.upcoming = *look.next;
  t.no_more_points = !look.next && !t.how.from_end();
  if (!t.no_more_points) wait_for_next(t);
  end_if_over(t);
}

void scheduler_model::wait_for_next(timer& t) {
  if (t.how.from_end()) return;  // waits for the run to end
  const bool is_late = t.how.bursts() && tick_at_or_after(t.upcoming.due) <= floor_tick(now_);
  if (is_late && t.where != runs_on::driver && t.how.overlap != overlapping_runs::allow) {
    t.held_back = true;  // they run one after another, as each ends
    return;
  }
  arm(t, t.upcoming.due);
  // Even if the point has already passed.
  t.tick = tick_taken(t, t.upcoming.due, tick_at_or_after(t.upcoming.due));
  t.in_turn = is_late && t.tick <= pass_tick_;
}

/// A run of `t`, which is live, has ended.
void scheduler_model::rearm(timer& t) {
  if (t.in_progress()) return;
  if (t.kept) {
    t.kept_is_due = true;
    arm(t, t.kept->due);
  } else if (t.how.from_end()) {
    if (t.waits) return;  // it was moved in the meantime
    t.upcoming = *t.how.following(t.upcoming, now_);
    arm(t, t.upcoming.due);
  } else if (t.held_back) {
    arm(t, t.upcoming.due);
  }
}

/// As far as the plan limits them.
std::optional<std::uint64_t> scheduler_model::to_come(const timer& t) const {
  if (!t.periodic()) return 0;
  const std::uint64_t waiting = t.submitted.size() + (t.kept ? 1 : 0);
  if (t.no_more_points) return waiting;
  std::optional<std::uint64_t> most;
  if (t.how.what == plan::kind::intervals) most = waiting + t.how.gaps.size() - (t.upcoming.gaps - 1);
  if (t.how.times != 0) {
    const std::uint64_t runs = t.how.times - t.runs + t.submitted.size();
    most = std::min(runs, most.value_or(runs));
  }
  return most;
}

scheduler_model::run scheduler_model::hand(std::size_t i, const grid_point& p, ns tick, std::uint64_t number,
                                           std::uint64_t missed) {
  timer& t = all_[i];
  const run r{i, ++tickets_, p.due, now_ - p.due, number, missed, to_come(t)};
  if (t.where != runs_on::driver)
    t.submitted.push_back({r.ticket, armings_++, tick, p});
  else
    begin(t, r);
  return r;
}

void scheduler_model::begin(timer& t, const run& r) {
  ++t.running;
  ++counts_.fired;
  counts_.missed += r.missed;
  lateness_.add(r.lateness);
  end_if_over(t);
}

bool scheduler_model::spend(timer& t, std::uint64_t ticket) {
  const auto found =
      std::find_if(t.submitted.begin(), t.submitted.end(), [&](auto& h) { return h.ticket == ticket; });
  if (found == t.submitted.end()) return false;
  t.submitted.erase(found);
  return true;
}

void scheduler_model::give_up(timer& t) {
  end_if_over(t);
  if (t.live) rearm(t);
  complete_if_over(t);
}

/// A timer ceases to be pending when its last run has started.
void scheduler_model::end_if_over(timer& t) {
  const bool over = !t.periodic() || (t.no_more_points && !t.kept);
  if (!t.live || !t.submitted.empty() || !over) return;
  t.live = false;
  t.completes = true;
}

void scheduler_model::complete_if_over(timer& t) {
  if (!t.live && t.running == 0) counts_.completed += std::exchange(t.completes, false);
}

}  // namespace rondo::test
