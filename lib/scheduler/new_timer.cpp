#include <rondo/detail/new_timer.hpp>

#include "scheduler/core.hpp"

namespace rondo::detail {
namespace {

constexpr const char* in_schedule = "a scheduling call";  // for checked builds

}  // namespace

new_timer::new_timer(const std::shared_ptr<core>& c)
    :
#if defined(RONDO_CHECKS)
      kept_(c),
#endif
      core_(*c) {
  if constexpr (checks) core_.begin_call();  // first, because the record counts as a timer
  try {
    record& r = core_.take_record();
    record_ = &r;
    work_ = &r.work;
  } catch (...) {
    if constexpr (checks) core_.end_call(in_schedule);
    throw;
  }
}

new_timer::new_timer(const std::shared_ptr<core>& c, task&& work)
    : new_timer((work ? void() : refuse_empty_task(), c)) {
  *work_ = std::move(work);
}

void new_timer::set(timer_options&& with) { record_at(record_).keep(std::move(with)); }

timer_id new_timer::schedule_after(duration delay) {
  const time_point now = core_.now();
  return made_known(core_.schedule(record_at(record_), deadline_after(now, delay), now));
}

timer_id new_timer::schedule_at(time_point due) {
  return made_known(core_.schedule(record_at(record_), due, core_.now()));
}

timer_id new_timer::schedule(const recurrence& when) {
  return made_known(core_.schedule(record_at(record_), when, core_.now()));
}

timer_id new_timer::made_known(timer_id id) noexcept {
  record_ = nullptr;
  if constexpr (checks) core_.end_call(in_schedule);
  return id;
}

void new_timer::discard() noexcept {
  core_.discard(record_at(record_));
  if constexpr (checks) core_.end_call(in_schedule);
}

}  // namespace rondo::detail
