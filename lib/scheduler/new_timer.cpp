#include <rondo/detail/new_timer.hpp>

#include "scheduler/core.hpp"

namespace rondo::detail {
namespace {

constexpr const char* in_schedule = "a scheduling call";  // for checked builds

}  // namespace

new_timer::new_timer(const std::shared_ptr<core>& c, timer_group* group)
    :
#if defined(RONDO_CHECKS)
      kept_(c),
#endif
      core_(*c),
      group_(group) {
  if constexpr (checks) core_.begin_call();  // first, because the record counts as a timer
  try {
    record_ = group_ == nullptr ? &core_.take_record() : &core_.take_member_record();
    work_ = &record_->work;
  } catch (...) {
    if constexpr (checks) core_.end_call(in_schedule);
    throw;
  }
}

void new_timer::set(timer_options&& with) { record_->keep(std::move(with)); }

timer_id new_timer::schedule_after(duration delay) {
  const time_point now = core_.now();
  return schedule(deadline_after(now, delay), now);
}

timer_id new_timer::schedule_at(time_point due) { return schedule(due, core_.now()); }

timer_id new_timer::schedule(const recurrence& when) {
  const time_point now = core_.now();
  return schedule(core_.make_periodic(*record_, when, now), now);
}

timer_id new_timer::schedule(time_point due, time_point now) {
  if (group_ != nullptr) return schedule_member(due, now);
  const timer_id id = core_.schedule(*record_, due, now);
  record_ = nullptr;
  if constexpr (checks) core_.end_call(in_schedule);
  return id;
}

timer_id new_timer::schedule_member(time_point due, time_point now) {
  core::remainder rest;
  const timer_id id = core_.schedule_member(*record_, due, now, *group_, nullptr, {}, rest);
  record_ = nullptr;
  core_.finish(rest);
  if constexpr (checks) core_.end_call(in_schedule);
  return id;
}

void new_timer::discard() noexcept {
  if (group_ == nullptr)
    core_.discard(*record_);
  else
    core_.discard_member(*record_);
  if constexpr (checks) core_.end_call(in_schedule);
}

}  // namespace rondo::detail
