#include <utility>

#include <rondo/calendar.hpp>

#include "calendar/core.hpp"

namespace rondo {

// A task, or its destructor, may destroy the object during a call. A copy of core_ keeps the core until the call ends.

calendar_timers::calendar_timers(scheduler& s) : calendar_timers(s, system_wall_clock()) {}

calendar_timers::calendar_timers(scheduler& s, wall_clock& clock)
    : core_(std::make_shared<detail::calendar_core>(s, clock)) {
  core_->follow_clock();
}

calendar_timers::~calendar_timers() {
  const auto core = core_;
  core->close();
}

timer_id calendar_timers::schedule_at(any_wall_time due, wall_task work) {
  const auto core = core_;
  return core->schedule(std::nullopt, due, std::move(work).take(), nullptr);
}

timer_id calendar_timers::schedule_at(any_wall_time due, wall_task work, timer_options with) {
  const auto core = core_;
  return core->schedule(std::nullopt, due, std::move(work).take(), &with);
}

timer_id calendar_timers::schedule(const calendar& when, wall_task work) {
  const auto core = core_;
  return core->schedule(when, {}, std::move(work).take(), nullptr);
}

timer_id calendar_timers::schedule(const calendar& when, wall_task work, timer_options with) {
  const auto core = core_;
  return core->schedule(when, {}, std::move(work).take(), &with);
}

cancel_result calendar_timers::cancel(timer_id id) {
  const auto core = core_;
  return core->cancel(id);
}

cancel_result calendar_timers::cancel_and_wait(timer_id id) {
  const auto core = core_;
  const cancel_result result = core->cancel(id);
  core->timers().cancel_and_wait(id);
  return result;
}

bool calendar_timers::pending(timer_id id) const { return core_->timers().pending(id); }

std::size_t calendar_timers::pending() const { return core_->timers().pending(); }

std::optional<wall_time> calendar_timers::due(timer_id id) const { return core_->due(id); }

std::optional<wall_time> calendar_timers::next_due() const { return core_->next_due(); }

}  // namespace rondo
