#include "durable/simulation_lateness.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "durable/dispatcher/turns.hpp"
#include "durable/microseconds.hpp"
#include "durable/simulation_text.hpp"

namespace durable_test {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using rondo::duration;
using rondo::time_point;

namespace {

// A process counts from when it received a claim, and begins a task after the tick.
constexpr duration order_tolerance = 55ms;
// A session without a connection takes notice by its next look for what the dead held.
constexpr duration longest_unconnected = 600ms;

const server* find(const std::vector<server>& all, const std::string& owner) {
  const auto at = std::ranges::find(all, owner, &server::owner);
  return at != all.end() ? &*at : nullptr;
}

/// A look soon after a claim for another reason is left out.
duration longest_unlooked(const rondo::durable::dispatcher_options& o) {
  const duration every = detail::turns::look_every(o);
  return every + std::min<duration>(every, 500ms) / 2;
}

std::string milliseconds(duration d) { return std::to_string(d / 1ms) + " ms"; }

}  // namespace

std::string simulation_lateness::check(const std::vector<server>& all) {
  if (paused_ != database_.paused()) {
    paused_ = database_.paused();
    pauses_changed_at_ = clocks_.now();
  }
  look_at_lanes();
  std::string wrong;
  auto before = all_.begin();
  next_.clear();
  database_.for_each_row([&](const row& r) {
    if (!r.lives()) return;
    before = std::find_if(before, all_.end(), [&](const seen& s) { return s.id >= r.id; });
    seen& s = next_.emplace_back(before != all_.end() && before->id == r.id ? std::move(*before)
                                                                            : seen{.id = r.id});
    std::string found = look_at(r, s, all);
    if (wrong.empty()) wrong = std::move(found);
  });
  all_.swap(next_);
  most_rows_ = std::max(most_rows_, all_.size());
  last_look_ = clocks_.now();
  return wrong;
}

void simulation_lateness::look_at_lanes() {
  lanes_.clear();
  database_.for_each_row([&](const row& r) {
    if (r.lane.empty() || !r.lives()) return;
    lane& l = lanes_[{r.queue, r.lane}];
    l.first = std::min(l.first, {r.place.value_or(0), r.id});
    l.runs = l.runs || r.runs();
  });
}

/// When all sessions have had a connection again since the server crashed; or `never`.
time_point simulation_lateness::connected() const {
  const time_point forgot = ledger_.forgot_at();
  return forgot == simulated_clocks::never ? forgot : forgot + longest_unconnected;
}

/// Before that, nobody knew what was due.
time_point simulation_lateness::disturbed() const {
  return std::max({clocks_.set(), pauses_changed_at_, connected()});
}

bool simulation_lateness::is_due(const row& r) const {
  return r.due <= clocks_.engine_microseconds() && !paused_.contains(r.queue);
}

bool simulation_lateness::is_first(const row& r) const {
  if (r.lane.empty()) return true;
  const lane& l = lanes_.at({r.queue, r.lane});
  return !l.runs && l.first == std::pair(r.place.value_or(0), r.id);
}

/// Who has something to do about the task.
simulation_lateness::duty simulation_lateness::duty_of(const row& r, const server* holder) const {
  if (r.runs() && holder != nullptr)
    return ledger_.has_begun(r.owner, {r.id, r.fence}) ? duty::nobodys : duty::holders;
  if (holder != nullptr) return is_due(r) && is_first(r) ? duty::holders : duty::nobodys;
  if (r.state == row_state::waiting) return is_due(r) && is_first(r) ? duty::everybodys : duty::nobodys;
  return *r.lease_until < clocks_.engine_microseconds() && !paused_.contains(r.queue) ? duty::everybodys
                                                                                      : duty::nobodys;
}

std::string simulation_lateness::look_at(const row& r, seen& s, const std::vector<server>& all) const {
  const server* const holder = r.state == row_state::waiting ? nullptr : find(all, r.owner);
  if (s.owner != r.owner && !s.owner.empty())
    s.waits = time_point::max();  // others had to find that by a look
  if (s.fence != r.fence || s.owner != r.owner) {
    s.fence = r.fence;
    s.owner = r.owner;
    s.before_claim = last_look_;
    s.claimed = clocks_.now();
    s.kept = time_point::max();
  }
  if (std::exchange(s.runs, r.runs()) != r.runs()) s.kept = time_point::max();
  const duty whose = duty_of(r, holder);
  if (whose != duty::holders) s.kept = time_point::max();
  if (whose == duty::nobodys || database_.is_locked(r.id)) {
    s.waits = time_point::max();
    return {};
  }
  const std::int64_t ready = holder != nullptr || r.state == row_state::waiting ? r.due : *r.lease_until;
  s.waits = std::max({std::min(s.waits, clocks_.now()), ledger_.touched_at(r.id), clocks_.when(ready)});
  return whose == duty::holders ? check_holder(r, s, *holder) : check_everybody(r, s, all);
}

std::string simulation_lateness::check_holder(const row& r, seen& s, const server& holder) const {
  if (s.before_claim <= connected()) return {};  // the end of the run may have been forgotten
  // What it holds waits for the time that the clock showed before.
  if (!r.runs() && s.before_claim <= clocks_.set_forward()) return {};
  s.kept = std::min(s.kept, clocks_.now());
  s.waits = std::max(s.waits, holder.able_since);
  if (const duration late = clocks_.now() - std::max(s.waits, disturbed()); late > most_late(holder))
    return holder.owner + " has an idle thread, but has not begun for " + milliseconds(late) + ": " +
           text_of(r);
  const duration kept = clocks_.now() - std::max({s.kept, holder.calm_since, disturbed()});
  if (kept > holder.options->lease + most_late(holder))
    return holder.owner + " has no thread, but has kept for " + milliseconds(kept) + ": " + text_of(r);
  return {};
}

std::string simulation_lateness::check_everybody(const row& r, const seen& s,
                                                 const std::vector<server>& all) const {
  for (const server& each : all) {
    const duration late = clocks_.now() - std::max({s.waits, each.able_since, disturbed()});
    // A lease that runs out tells nobody, nor does a clock that is set forward.
    const bool by_look = habits_.locked || r.state != row_state::waiting ||
                         clocks_.set_forward() >= std::max(s.waits, each.able_since);
    if (late > most_late(each) + (by_look ? longest_unlooked(*each.options) : duration::zero()))
      return each.owner + " has an idle thread and room, but has not claimed for " + milliseconds(late) +
             ": " + text_of(r);
  }
  return {};
}

/// Of what a process held before the task became due, what became due earlier has begun.
std::string simulation_lateness::begins(const server& by, const detail::run& r) const {
  const time_point sent = r.lease_until - by.options->lease;  // in the transaction in which the run began
  // (A newer point takes the place of an older one. If the first answer was lost, the run has begun earlier.)
  if (r.what.point || habits_.locked || r.perhaps_told || disturbed() >= sent) return {};
  // What was claimed before the clock was set back has not waited until the clock shows its due time again.
  const auto own = std::ranges::find(all_, r.what.id, &seen::id);
  if (own != all_.end() && own->fence == r.what.fence && own->before_claim < clocks_.set_back()) return {};
  const std::int64_t due = detail::microseconds_of(r.what.due);
  const duration tolerance = order_tolerance + by.longest_step;
  const time_point latest = std::min(sent, clocks_.when(due));
  for (const seen& s : all_) {
    if (s.owner != by.owner || s.id == r.what.id || s.claimed + by.longest_step >= latest ||
        s.before_claim <= std::max(by.calm_since, disturbed()))
      continue;
    const row* const other = database_.find(s.id);
    if (other != nullptr && other->state == row_state::held && other->fence == s.fence &&
        other->lane.empty() && !paused_.contains(other->queue) && other->due + tolerance / 1us < due)
      return "task " + std::to_string(r.what.id) + " begins on " + by.owner +
             " before what became due before: " + text_of(*other);
  }
  return {};
}

std::string simulation_lateness::ends(const server& by, const detail::run& r) const {
  const duration lease = by.options->lease;
  const time_point began = r.lease_until - lease;  // when its transaction was sent
  if (std::max(by.calm_since, disturbed()) >= began || lease <= 10 * by.longest_step) return {};
  const row* const there = database_.find(r.what.id);
  if (there != nullptr && there->fence == r.what.fence && there->runs() &&
      *there->lease_until >= clocks_.engine_microseconds())
    return {};
  return "the run of task " + std::to_string(r.what.id) + " on " + by.owner +
         " has lost its lease, though nothing has happened: " +
         (there != nullptr ? text_of(*there) : "there is no row");
}

}  // namespace durable_test
