#include <rondo/scheduler.hpp>

#include <stdexcept>
#include <string>

#include "scheduler/core.hpp"

namespace rondo {

scheduler::scheduler(std::shared_ptr<detail::core> core) noexcept : core_(std::move(core)) {}

scheduler::~scheduler() { core_->retire(); }

timer_id scheduler::schedule_after(duration delay, task work) {
  const time_point now = core_->now();
  return core_->schedule(saturating_add(now, delay), now, duration::zero(), std::move(work));
}

timer_id scheduler::schedule_at(time_point due, task work) {
  return core_->schedule(due, core_->now(), duration::zero(), std::move(work));
}

timer_id scheduler::schedule_every(duration period, task work) {
  if (period <= duration::zero())
    throw std::invalid_argument("rondo: the period must be positive, not " + std::to_string(period.count()) +
                                " ns");
  const time_point now = core_->now();
  return core_->schedule(saturating_add(now, period), now, period, std::move(work));
}

cancel_result scheduler::cancel(timer_id id) { return core_->cancel(id); }

cancel_result scheduler::cancel_and_wait(timer_id id) { return core_->cancel_and_wait(id); }

bool scheduler::reschedule_after(timer_id id, duration delay) {
  const time_point now = core_->now();
  return core_->reschedule(id, saturating_add(now, delay), now);
}

bool scheduler::reschedule_at(timer_id id, time_point due) {
  return core_->reschedule(id, due, core_->now());
}

bool scheduler::pending(timer_id id) const { return core_->pending(id); }

std::size_t scheduler::pending() const noexcept { return core_->pending(); }

std::optional<time_point> scheduler::next_due() const { return core_->next_due(); }

time_point scheduler::now() const noexcept { return core_->now(); }

std::vector<unfired> scheduler::stop() { return core_->stop(); }

statistics scheduler::stats() const { return core_->stats(); }

}  // namespace rondo
