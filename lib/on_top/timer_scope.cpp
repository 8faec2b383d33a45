#include <rondo/timer_scope.hpp>

#include "on_top/scope_core.hpp"

namespace rondo {

// A task, or its destructor, may destroy the scope during a call: `core` keeps the core until the call is over.

timer_scope::timer_scope(scheduler& s) : core_(std::make_shared<detail::scope_core>(s)) {}

timer_scope::~timer_scope() { close(); }

timer_id timer_scope::schedule_after(any_duration delay, task work) {
  const auto core = core_;
  return core->schedule(std::move(work),
                        [&](task t) { return core->target().schedule_after(delay, std::move(t)); });
}

timer_id timer_scope::schedule_after(any_duration delay, task work, const on& where) {
  const auto core = core_;
  return core->schedule(std::move(work),
                        [&](task t) { return core->target().schedule_after(delay, std::move(t), where); });
}

timer_id timer_scope::schedule_at(any_time_point due, task work) {
  const auto core = core_;
  return core->schedule(std::move(work),
                        [&](task t) { return core->target().schedule_at(due, std::move(t)); });
}

timer_id timer_scope::schedule_at(any_time_point due, task work, const on& where) {
  const auto core = core_;
  return core->schedule(std::move(work),
                        [&](task t) { return core->target().schedule_at(due, std::move(t), where); });
}

timer_id timer_scope::schedule_every(any_duration period, task work) {
  const auto core = core_;
  return core->schedule(std::move(work),
                        [&](task t) { return core->target().schedule_every(period, std::move(t)); });
}

timer_id timer_scope::schedule_every(any_duration period, task work, const on& where) {
  const auto core = core_;
  return core->schedule(std::move(work),
                        [&](task t) { return core->target().schedule_every(period, std::move(t), where); });
}

timer_id timer_scope::schedule(const recurrence& when, task work) {
  const auto core = core_;
  return core->schedule(std::move(work), [&](task t) { return core->target().schedule(when, std::move(t)); });
}

timer_id timer_scope::schedule(const recurrence& when, task work, const on& where) {
  const auto core = core_;
  return core->schedule(std::move(work),
                        [&](task t) { return core->target().schedule(when, std::move(t), where); });
}

cancel_result timer_scope::cancel(timer_id id) {
  const auto core = core_;
  return core->knows(id) ? core->target().cancel(id) : cancel_result::gone;
}

cancel_result timer_scope::cancel_and_wait(timer_id id) {
  const auto core = core_;
  return core->knows(id) ? core->target().cancel_and_wait(id) : cancel_result::gone;
}

bool timer_scope::reschedule_after(timer_id id, any_duration delay) {
  const auto core = core_;
  return core->knows(id) && core->target().reschedule_after(id, delay);
}

bool timer_scope::reschedule_at(timer_id id, any_time_point due) {
  const auto core = core_;
  return core->knows(id) && core->target().reschedule_at(id, due);
}

bool timer_scope::pending(timer_id id) const { return core_->knows(id) && core_->target().pending(id); }

std::size_t timer_scope::pending() const { return core_->pending(); }

void timer_scope::cancel_all() {
  const auto core = core_;
  core->cancel_all();
}

void timer_scope::close() {
  const auto core = core_;
  core->close();
}

}  // namespace rondo
