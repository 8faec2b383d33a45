// Keyed timers and a scope.
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "model/random_program.hpp"

namespace rondo::test {

void random_program::operate_owners() {
  switch (const auto what = owners_act(choices_.weighted(likely_owners_acts_)); what) {
    case owners_act::sleep:
      return sleep();
    case owners_act::request_stop:
      return request_stop();
    case owners_act::abandon_sleep:
      return abandon_sleep();
    case owners_act::schedule_in_scope:
    case owners_act::cancel_in_scope:
    case owners_act::reschedule_in_scope:
    case owners_act::schedule_recurrence_in_scope:
    case owners_act::cancel_scope:
    case owners_act::close_scope:
    case owners_act::renew_scope:
      return operate_scope(what);
    default:
      return operate_keys(what);
  }
}

void random_program::operate_keys(owners_act what) {
  switch (what) {
    case owners_act::cancel_key:
      return cancel_key();
    case owners_act::try_set:
      return set({}, false);
    case owners_act::reschedule_key:
      return reschedule_key();
    case owners_act::set_recurrence:
      return set(plans_.make(model_.now()));
    case owners_act::clear_keys:
      note("keys.clear()");
      keyed_.clear();
      return keys_->clear();
    case owners_act::renew_keys:
      return renew_keys();
    default:
      return set({});
  }
}

void random_program::operate_scope(owners_act what) {
  switch (what) {
    case owners_act::cancel_in_scope:
      return cancel_in_scope();
    case owners_act::reschedule_in_scope:
      return reschedule_in_scope();
    case owners_act::schedule_recurrence_in_scope:
      return schedule_recurrence(plans_.make(model_.now()), &*scope_);
    case owners_act::cancel_scope:
      note("scope.cancel_all()");
      scoped_.cancel_all();
      return scope_->cancel_all();
    case owners_act::close_scope:
      if (waits_for_itself(scoped_.running())) return;
      note("scope.close()");
      scoped_.close();
      return scope_->close();
    case owners_act::renew_scope:
      return renew_scope();
    default:
      return schedule_once(&*scope_);
  }
}

/// Sets a key's timer: once, unless `p` is a recurrence. At the limit, it may take the place of the one before.
void random_program::set(plan p, bool replaces) {
  const std::size_t key = choices_.below(keyed_model::keys);
  const bool once = p.what == plan::kind::once;
  wish w = once ? some_wish() : wish{};
  if (!replaces) w.relative = true;  // there is no try_set_at()
  const runs_on where = some_place();
  const bool known = keyed_.contains(key);
  const bool stays = known && !replaces;
  const refusal r = refused() == refusal::full && known ? refusal::none : refused();
  note(stays ? "false: " : result_of_scheduling(r), set_timer(key, p, w, replaces),
       text_of_options(ids_.size(), where, slack_of(ids_.size())), ")");
  if (stays) {
    expect(!call_set(key, p, w, false, [] {}, {}), "try_set_after() has set a timer for a key that has one");
    return;
  }
  if (r == refusal::none) keyed_.set(key, ids_.size(), inside_);
  schedule(p, w.due, where, r, [&](task work) {
    expect(call_set(key, p, w, replaces, std::move(work), some_options(where)), "try_set_after() said false");
    return new_id();
  });
}

/// The beginning of the call, for the trace.
std::string random_program::set_timer(std::size_t key, const plan& p, const wish& w, bool replaces) const {
  std::ostringstream text;
  const bool once = p.what == plan::kind::once;
  text << "keys."
       << (!once        ? "set("
           : !replaces  ? "try_set_after("
           : w.relative ? "set_after("
                        : "set_at(")
       << key << ", ";
  if (once)
    text << when(w.relative, w.delay);
  else
    text << made_from(p, is_.start);
  text << ", work";
  return text.str();
}

bool random_program::call_set(std::size_t key, const plan& p, const wish& w, bool replaces, task work,
                              timer_options with) {
  const bool plain = !with.run_on && with.name.empty() && with.slack == duration::zero();
  const duration delay(w.delay);
  if (!replaces && plain) return keys_->try_set_after(key, delay, std::move(work));
  if (!replaces) return keys_->try_set_after(key, delay, std::move(work), std::move(with));
  if (p.what != plan::kind::once) {
    const recurrence r = made_from(p, is_.start);
    plain ? keys_->set(key, r, std::move(work)) : keys_->set(key, r, std::move(work), std::move(with));
  } else if (w.relative) {
    plain ? keys_->set_after(key, delay, std::move(work))
          : keys_->set_after(key, delay, std::move(work), std::move(with));
  } else {
    const time_point due = clock_time(w.due);
    plain ? keys_->set_at(key, due, std::move(work))
          : keys_->set_at(key, due, std::move(work), std::move(with));
  }
  return true;
}

void random_program::cancel_key() {
  const std::size_t key = choices_.below(keyed_model::keys);
  const bool waits = choices_.one_in(3) && !waits_for_itself(keyed_.running(key));
  const cancel_result expected = waits ? keyed_.cancel_and_wait(key, inside_) : keyed_.cancel(key);
  note(waits ? "keys.cancel_and_wait(" : "keys.cancel(", key, ") -> ", text_of(expected));
  expect_same(waits ? keys_->cancel_and_wait(key) : keys_->cancel(key), expected, "what cancel(key) says");
}

void random_program::reschedule_key() {
  const std::size_t key = choices_.below(keyed_model::keys);
  const ns d = delay();
  const bool expected = keyed_.reschedule(key, model_.now() + d);
  note("keys.reschedule_after(", key, ", ", in_ns(d), ") -> ", text_of(expected));
  expect_same(keys_->reschedule_after(key, duration(d)), expected, "what reschedule_after(key) says");
}

/// Any timer: one of the scope's or not.
void random_program::cancel_in_scope() {
  if (ids_.empty()) return;
  const std::size_t n = pick();
  const bool waits = choices_.one_in(3) && !waits_for_itself(model_.running(n));
  const cancel_result expected = scoped_.cancel(n);
  note(waits ? "scope.cancel_and_wait(t" : "scope.cancel(t", n, ") -> ", text_of(expected));
  expect_same(waits ? scope_->cancel_and_wait(ids_[n]) : scope_->cancel(ids_[n]), expected,
              "what cancel() of the scope says");
}

void random_program::reschedule_in_scope() {
  if (ids_.empty()) return;
  const std::size_t n = pick();
  const wish w = some_wish();
  const bool expected = scoped_.reschedule(n, w.due);
  note(w.relative ? "scope.reschedule_after(t" : "scope.reschedule_at(t", n, ", ", when(w.relative, w.delay),
       ") -> ", text_of(expected));
  const bool moved = w.relative ? scope_->reschedule_after(ids_[n], duration(w.delay))
                                : scope_->reschedule_at(ids_[n], clock_time(w.due));
  expect_same(moved, expected, "what reschedule of the scope says");
}

void random_program::renew_keys() {
  if (waits_for_itself(keyed_.running())) return;
  note("keys = keyed_timers<std::size_t>(time)");
  keyed_.clear();
  keyed_ = keyed_model(model_);
  keys_.emplace(time_);
}

void random_program::renew_scope() {
  if (waits_for_itself(scoped_.running())) return;
  note("scope = timer_scope(time)");
  scoped_.close();
  scoped_ = scope_model(model_);
  scope_.emplace(time_);
}

/// The id of the timer that was scheduled last, by a call that does not return it.
timer_id random_program::new_id() {
  const std::set<timer_id> known(ids_.begin(), ids_.end());
  for (const timer_info& t : time_.list())
    if (!known.contains(t.id)) return t.id;
  fail("list() lacks the timer that was just set");
  return {};
}

}  // namespace rondo::test
