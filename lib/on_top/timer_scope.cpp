#include <rondo/timer_scope.hpp>

#include <memory>
#include <utility>

#include "scheduler/core.hpp"

namespace rondo {

using detail::checked_call;
using detail::deadline_after;

namespace detail {

/// The group of a scope, and the core of its scheduler, which may already be destroyed.
class scope_group final : public timer_group, public std::enable_shared_from_this<scope_group> {
 public:
  explicit scope_group(std::shared_ptr<detail::core> c) noexcept : core(std::move(c)) {}

  const std::shared_ptr<detail::core> core;

 private:
  std::shared_ptr<void> self() noexcept override { return shared_from_this(); }
};

namespace {

constexpr const char* in_scope = "a scheduling call";  // for checked builds

}  // namespace

scoped_timer::scoped_timer(std::shared_ptr<scope_group> group)
    : group_(std::move(group)), now_(group_->core->now()) {
  if constexpr (checks) group_->core->begin_call();
  try {
    record& r = group_->core->take_member_record();
    record_ = &r;
    work_ = &r.work;
  } catch (...) {
    if constexpr (checks) group_->core->end_call(in_scope);
    throw;
  }
}

scoped_timer::scoped_timer(const std::shared_ptr<scope_group>& group, task&& work)
    : scoped_timer((work ? void() : refuse_empty_task(), group)) {
  *work_ = std::move(work);
}

scoped_timer::~scoped_timer() {
  if (record_ != nullptr) group_->core->discard_member(record_at(record_));
  if constexpr (checks) group_->core->end_call(in_scope);
}

void scoped_timer::set(timer_options&& with) { record_at(record_).keep(std::move(with)); }

timer_id scoped_timer::schedule_after(duration delay) { return schedule_at(deadline_after(now_, delay)); }

timer_id scoped_timer::schedule(const recurrence& when) {
  return schedule_at(group_->core->make_periodic(record_at(record_), when, now_));
}

timer_id scoped_timer::schedule_at(time_point due) {
  core::remainder rest;
  const timer_id id =
      group_->core->schedule_member(record_at(record_), due, now_, *group_, nullptr, {}, rest);
  record_ = nullptr;
  group_->core->finish(rest);
  return id;
}

}  // namespace detail

using detail::scoped_timer;

// A task or its destructor may destroy the scope during a call, so a copy of group_ keeps the group until the call is
// over.

timer_scope::timer_scope(scheduler& s)
    : group_(std::make_shared<detail::scope_group>(detail::core_access::of(s))) {}

timer_scope::~timer_scope() { close(); }

timer_id timer_scope::schedule_after(any_duration delay, task work) {
  return scoped_timer(group_, std::move(work)).schedule_after(delay);
}

timer_id timer_scope::schedule_after(any_duration delay, task work, timer_options with) {
  scoped_timer t(group_, std::move(work));
  t.set(std::move(with));
  return t.schedule_after(delay);
}

timer_id timer_scope::schedule_at(any_time_point due, task work) {
  return scoped_timer(group_, std::move(work)).schedule_at(due);
}

timer_id timer_scope::schedule_at(any_time_point due, task work, timer_options with) {
  scoped_timer t(group_, std::move(work));
  t.set(std::move(with));
  return t.schedule_at(due);
}

timer_id timer_scope::schedule_every(any_duration period, task work) {
  return schedule(every(period), std::move(work));
}

timer_id timer_scope::schedule_every(any_duration period, task work, timer_options with) {
  return schedule(every(period), std::move(work), std::move(with));
}

timer_id timer_scope::schedule(const recurrence& when, task work) {
  return scoped_timer(group_, std::move(work)).schedule(when);
}

timer_id timer_scope::schedule(const recurrence& when, task work, timer_options with) {
  scoped_timer t(group_, std::move(work));
  t.set(std::move(with));
  return t.schedule(when);
}

cancel_result timer_scope::cancel(timer_id id) {
  const auto group = group_;
  const checked_call checked(group->core, "cancel()");
  return group->core->belongs(id, *group) ? group->core->cancel(id) : cancel_result::gone;
}

cancel_result timer_scope::cancel_and_wait(timer_id id) {
  const auto group = group_;
  const checked_call checked(group->core, "cancel_and_wait()");
  return group->core->belongs(id, *group) ? group->core->cancel_and_wait(id) : cancel_result::gone;
}

bool timer_scope::reschedule_after(timer_id id, any_duration delay) {
  const auto group = group_;
  const checked_call checked(group->core, "reschedule_after()");
  const time_point now = group->core->now();
  return group->core->belongs(id, *group) && group->core->reschedule(id, deadline_after(now, delay), now);
}

bool timer_scope::reschedule_at(timer_id id, any_time_point due) {
  const auto group = group_;
  const checked_call checked(group->core, "reschedule_at()");
  return group->core->belongs(id, *group) && group->core->reschedule(id, due, group->core->now());
}

bool timer_scope::pending(timer_id id) const {
  return group_->core->belongs(id, *group_) && group_->core->pending(id);
}

std::size_t timer_scope::pending() const { return group_->core->pending(*group_); }

void timer_scope::cancel_all() {
  const auto group = group_;
  const checked_call checked(group->core, "cancel_all()");
  group->core->cancel_all(*group);
}

void timer_scope::close() {
  const auto group = group_;
  const checked_call checked(group->core, "close()");
  group->core->close(*group);
}

}  // namespace rondo
