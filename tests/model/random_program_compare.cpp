// What is compared with the model, and what is traced.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "model/random_program.hpp"

namespace rondo::test {

namespace {

std::string due_of(std::optional<time_point> due) { return due ? text_of(*due) : "no moment"; }

}  // namespace

void random_program::fail(const std::string& what) {
  if (is_right()) wrong_ = what;
}

void random_program::expect(bool right, const char* what) {
  if (!right) fail(what);
}

/// Within 1/64, as histograms are only that precise.
void random_program::expect_close(const histogram& h, const extremes& e, const char* what) {
  expect_same(h.count(), e.count, what);
  if (e.count == 0) return;
  const auto close = [](duration found, ns exact) { return std::abs(found.count() - exact) <= exact / 64; };
  if (!close(h.min(), e.shortest) || !close(h.max(), e.longest))
    fail(std::string(what) + ": " + in_ns(h.min().count()) + " to " + in_ns(h.max().count()) +
         ", and the model: " + in_ns(e.shortest) + " to " + in_ns(e.longest));
}

/// Compares what is visible at any time.
void random_program::compare() {
  expect_same(time_.now(), clock_time(model_.now()), "now()");
  expect_same(time_.pending(), model_.pending(), "pending()");
  const time_point next_due = time_.next_due().value_or(time_point::max());
  if (model_.has_left())
    expect(next_due <= time_.now(), "next_due() is in the future, though something was left");
  else
    expect_same(next_due, clock_time(model_.next_due()), "next_due()");
  for (const run_in_progress& r : in_progress_)
    if (r.asked.stop_possible())
      expect_same(r.asked.stop_requested(), model_.asked(r.timer), "whether a run is asked to stop");
  if (ids_.empty()) return;
  const std::size_t next = looked_at_++ % ids_.size();
  expect_same(time_.pending(ids_[next]), model_.pending(next), "pending(id)");
  expect_same(due_of(time_.due(ids_[next])), due_of(clock_time(model_.due(next))), "due(id)");
  if (looked_at_ % 8 == 0) compare_list();
  if (is_.has_owners) compare_owners();
}

/// In turn, one key and one timer of the scope.
void random_program::compare_owners() {
  const std::size_t key = looked_at_ % keyed_model::keys;
  expect_same(keys_->contains(key), keyed_.contains(key), "contains(key)");
  expect_same(due_of(keys_->due(key)), due_of(clock_time(keyed_.due(key))), "due(key)");
  const std::size_t timer = looked_at_ % ids_.size();
  expect_same(scope_->pending(ids_[timer]), scoped_.pending(timer), "pending(id) of the scope");
  if (looked_at_ % 4 != 0) return;
  expect_same(keys_->size(), keyed_.size(), "size()");
  expect_same(scope_->pending(), scoped_.pending(), "pending() of the scope");
}

void random_program::compare_list() {
  const std::vector<timer_info> list = time_.list();
  const auto later = [](const timer_info& t) { return std::pair(!t.due, t.due); };
  expect(std::is_sorted(list.begin(), list.end(),
                        [&](const timer_info& a, const timer_info& b) { return later(a) < later(b); }),
         "list() is not in the order of due");
  std::map<timer_id, const timer_info*> found;
  for (const timer_info& t : list) found[t.id] = &t;
  const auto expected = model_.list();
  expect_same(list.size(), expected.size(), "the number of timers that list() has");
  expect_same(found.size(), expected.size(), "the number of different timers that list() has");
  for (const scheduler_model::listed& e : expected) {
    const auto at = found.find(ids_[e.timer]);
    if (at == found.end()) return fail("list() lacks t" + std::to_string(e.timer));
    const timer_info& t = *at->second;
    expect_same(t.name, name(e.timer), "timer_info::name");
    expect_same(due_of(t.due), due_of(clock_time(e.due)), "timer_info::due");
    expect_same(t.runs, e.runs, "timer_info::runs");
    expect_same(t.periodic, e.periodic, "timer_info::periodic");
    expect_same(t.running, static_cast<std::size_t>(e.running), "timer_info::running");
  }
}

/// To be called when no task runs.
void random_program::compare_stats() {
  const statistics s = time_.stats();
  const scheduler_model::counts& m = model_.stats();
  expect_same(s.pending, model_.pending(), "stats().pending");
  expect_same(s.scheduled, m.scheduled, "stats().scheduled");
  expect_same(s.fired, m.fired, "stats().fired");
  expect_same(s.completed, m.completed, "stats().completed");
  expect_same(s.cancelled, m.cancelled, "stats().cancelled");
  expect_same(s.returned, m.returned, "stats().returned");
  expect_same(s.failed, m.failed, "stats().failed");
  expect_same(s.missed, m.missed, "stats().missed");
  expect_same(s.overlapped, m.overlapped, "stats().overlapped");
  expect_same(s.rejected, m.rejected, "stats().rejected");
  expect_same(s.failed, reported_ + propagated_,
              "the calls of on_error and the exceptions that have left a pass");
  expect(!thrown_, "an exception of a task has not left the pass");
  expect_same(s.rejected, told_of_rejected_, "the calls of on_rejected");
  expect_same(s.scheduled, s.pending + s.completed + s.cancelled + s.returned, "the sum of stats()");
  expect_close(s.lateness, model_.lateness(), "stats().lateness");
  expect_close(s.run_time, run_time_, "stats().run_time");
  std::size_t owning = 0;
  for (std::size_t n = 0; n != ids_.size(); ++n)
    if (model_.pending(n) && owns_something(n)) ++owning;
  expect_same(static_cast<std::size_t>(callable_.use_count()) - 1, owning, "the number of live callables");
}

void random_program::note_setting() {
  note("manual_timer time({.tick = ", in_ns(is_.tick), ", .buckets = ", is_.buckets,
       is_.max_pending == unlimited ? "" : ", .max_pending = " + std::to_string(is_.max_pending),
       is_.hands_over == setting::handing::everything ? ", .run_on = executor" : "",
       is_.propagates ? ", .propagate_exceptions = true" : "", "}, time_point(", text_of(is_.start), "));");
  if (is_.has_owners) note("keyed_timers<std::size_t> keys(time); timer_scope scope(time);");
}

std::string random_program::result_of_scheduling(refusal expected) const {
  if (expected == refusal::stopped) return "stopped_error: ";
  if (expected == refusal::full) return "capacity_error: ";
  return "t" + std::to_string(ids_.size()) + " = ";
}

std::string random_program::describe(const scheduler_model::run& r) const {
  return "t" + std::to_string(r.timer) + " (due " + in_ns(r.due) + ", late " + in_ns(r.lateness) + ", run " +
         std::to_string(r.number) + ", missed " + std::to_string(r.missed) +
         (r.to_come ? ", left " + std::to_string(*r.to_come) : "") + ')';
}

std::string random_program::describe(std::size_t n, const firing& f) const {
  return describe({n, 0, (f.due - is_.start).count(), f.lateness.count(), f.run, f.missed, f.left});
}

}  // namespace rondo::test
