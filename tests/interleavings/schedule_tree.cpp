#include "interleavings/schedule_tree.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace rondo::test {
namespace {

std::size_t first_of(thread_set set) noexcept { return static_cast<std::size_t>(std::countr_zero(set)); }

}  // namespace

bool schedule_tree::advance() {
  if (std::exchange(started_, true)) {
    for (; !path_.empty(); path_.pop_back()) {
      step& last = path_.back();
      if (has_another_result(last)) break;
      last.explored |= only(last.thread);
      const thread_set rest = last.to_explore & ~last.explored & ~last.asleep;
      if (rest == 0) continue;
      last.thread = first_of(rest);
      break;
    }
    if (path_.empty()) return false;
  }
  depth_ = 0;
  picks_ = 0;
  new_from_ = path_.empty() ? 0 : path_.size() - 1;
  running_ = nobody;
  preemptions_ = 0;
  seen_ = false;
  asleep_ = 0;
  clocks_ = {};
  histories_.clear();
  return true;
}

std::size_t schedule_tree::choose(const next_steps& next, thread_set enabled) {
  if (!seen_ && depth_ == path_.size() && (enabled & ~asleep_) == 0) {
    seen_ = true;
    find_races_of_blocked(next, enabled);
  }
  if (seen_ || astray_) return running_ = fall_back(enabled);
  if (depth_ == path_.size()) push(enabled);
  step& s = path_[depth_];
  astray_ = s.enabled != enabled;
  if (astray_) return running_ = fall_back(enabled);
  s.taken = *next[s.thread];
  if (running_ != nobody && s.thread != running_ && has(enabled, running_)) ++preemptions_;
  if (!bound_) {
    put_to_sleep(s, next);
    take(s);
  }
  ++depth_;
  picks_ = 0;
  return running_ = s.thread;
}

std::size_t schedule_tree::pick(std::size_t count) {
  if (seen_ || astray_ || depth_ == 0) return 0;
  auto& made = path_[depth_ - 1].picks;
  if (picks_ == made.size()) made.push_back({0, count});
  const pick_made& here = made[picks_++];
  astray_ = here.count != count;
  return astray_ ? 0 : here.result;
}

/// Goes to the next results of a step, if there are others.
bool schedule_tree::has_another_result(step& s) noexcept {
  for (; !s.picks.empty(); s.picks.pop_back())
    if (++s.picks.back().result != s.picks.back().count) return true;
  return false;
}

/// The running thread continues if it can.
std::size_t schedule_tree::fall_back(thread_set enabled) const noexcept {
  return running_ != nobody && has(enabled, running_) ? running_ : first_of(enabled);
}

void schedule_tree::push(thread_set enabled) {
  const std::size_t favourite = fall_back(enabled & ~asleep_);
  path_.push_back({enabled, asleep_, to_try_first(enabled, favourite), 0, favourite, {}, {}});
}

/// With a bound, returns all threads that may be tried. Otherwise only one: races will show which others must be tried.
thread_set schedule_tree::to_try_first(thread_set enabled, std::size_t favourite) const noexcept {
  if (!bound_) return only(favourite);
  const bool would_preempt = running_ != nobody && has(enabled, running_);
  return would_preempt && preemptions_ == *bound_ ? only(running_) : enabled;
}

/// Arranges that the last step, at `depth_`, is tried before each step that it depends on and that its thread did not
/// know of (`before`), together with the steps that this requires.
void schedule_tree::find_races(const step& last, const clock& before) {
  for (std::size_t i = 0; i != depth_; ++i) {
    step& s = path_[i];
    if (s.thread == last.thread || before[s.thread] > i || !dependent(s.taken, last.taken)) continue;
    const thread_set ways = first_steps(i) & s.enabled;  // empty if the step was not possible before
    if (ways != 0 && (ways & (s.to_explore | s.asleep)) == 0) s.to_explore |= only(first_of(ways));
  }
}

/// As find_races(), but for steps that are not possible here, perhaps because of a step that they might precede. This
/// schedule may never reach them, because it is cut off, or may reach them in another way.
void schedule_tree::find_races_of_blocked(const next_steps& next, thread_set enabled) {
  for (std::size_t thread = 0; thread != most_threads; ++thread) {
    if (next[thread] == nullptr || has(enabled, thread)) continue;
    const clock& before = clocks_[thread];
    path_.push_back({0, 0, 0, 0, thread, *next[thread], known_with(before, *next[thread])});
    find_races(path_.back(), before);
    path_.pop_back();
  }
}

/// Returns the threads one of which must take the first step if the steps from `index` to `depth_` that need not come
/// after the step at `index` are taken without it.
thread_set schedule_tree::first_steps(std::size_t index) const {
  thread_set first = 0;
  clock begun{};  // where each thread's steps begin, plus 1; 0 if nowhere
  for (std::size_t j = index + 1; j <= depth_; ++j) {
    const step& s = path_[j];
    if (j != depth_ && s.known[path_[index].thread] > index) continue;
    if (begun[s.thread] != 0) continue;
    begun[s.thread] = j + 1;
    bool needs_others = false;
    for (std::size_t other = 0; other != most_threads; ++other)
      if (other != s.thread && begun[other] != 0 && s.known[other] >= begun[other]) needs_others = true;
    if (!needs_others) first |= only(s.thread);
  }
  return first;
}

void schedule_tree::put_to_sleep(const step& now, const next_steps& next) {
  asleep_ = (now.asleep | now.explored) & ~only(now.thread);
  for (std::size_t other = 0; other != most_threads; ++other)
    if (has(asleep_, other) && dependent(now.taken, *next[other])) asleep_ &= ~only(other);
}

void schedule_tree::take(step& now) {
  clock& known = clocks_[now.thread];
  const clock before = known;
  known = known_with(before, now.taken);
  known[now.thread] = depth_ + 1;
  for (const access& a : now.taken.accesses) {
    if (a.object == nullptr) continue;
    history& h = histories_[a.object];
    join(a.writes ? h.writes : h.reads, known);
  }
  now.known = known;
  if (depth_ >= new_from_) find_races(now, before);
}

/// The steps that a thread knows of after a step, without that step.
schedule_tree::clock schedule_tree::known_with(clock before, const operation& next) {
  for (const access& a : next.accesses) {
    if (a.object == nullptr) continue;
    const history& h = histories_[a.object];
    join(before, h.writes);
    if (a.writes) join(before, h.reads);
  }
  return before;
}

void schedule_tree::released(std::size_t thread, const void* lock) {
  join(histories_[lock].writes, clocks_[thread]);
}

void schedule_tree::all_have_met(const next_steps& next) {
  if (!bound_ && depth_ == path_.size()) find_races_of_blocked(next, 0);
  clock all{};
  for (const clock& c : clocks_) join(all, c);
  clocks_.fill(all);
}

void schedule_tree::join(clock& to, const clock& from) noexcept {
  for (std::size_t i = 0; i != most_threads; ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace rondo::test
