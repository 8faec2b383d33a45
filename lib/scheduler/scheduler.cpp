#include <rondo/scheduler.hpp>

#include "scheduler/core.hpp"

namespace rondo {

using detail::checked_call;
using detail::deadline_after;

scheduler::scheduler(std::shared_ptr<detail::core> core) noexcept
    : scheduling_calls(std::move(core), nullptr) {}

scheduler::~scheduler() {
  [[maybe_unused]] const checked_call checked{*core_, "the destructor"};
  core_->retire();
}

cancel_result scheduler::cancel(timer_id id) {
  [[maybe_unused]] const checked_call checked{*core_, "cancel()"};
  return core_->cancel(id);
}

// What these calls run or destroy may destroy the scheduler, so they keep the core until they are over.

cancel_result scheduler::cancel_and_wait(timer_id id) {
  [[maybe_unused]] const checked_call checked{*core_, "cancel_and_wait()"};
  const auto core = core_;
  return core->cancel_and_wait(id);
}

std::vector<unfired> scheduler::stop() {
  [[maybe_unused]] const checked_call checked{*core_, "stop()"};
  const auto core = core_;
  return core->stop();
}

std::optional<std::vector<unfired>> scheduler::stop(any_duration limit) {
  [[maybe_unused]] const checked_call checked{*core_, "stop()"};
  const auto core = core_;
  return core->stop_by(detail::real_time_after(limit));
}

bool scheduler::drain(any_duration limit) {
  [[maybe_unused]] const checked_call checked{*core_, "drain()"};
  const auto core = core_;
  return core->drain(limit);
}

bool scheduler::reschedule_after(timer_id id, any_duration delay) {
  [[maybe_unused]] const checked_call checked{*core_, "reschedule_after()"};
  const time_point now = core_->now();
  return core_->reschedule(id, deadline_after(now, delay), now);
}

bool scheduler::reschedule_at(timer_id id, any_time_point due) {
  [[maybe_unused]] const checked_call checked{*core_, "reschedule_at()"};
  return core_->reschedule(id, due, core_->now());
}

bool scheduler::pending(timer_id id) const { return core_->pending(id); }

std::size_t scheduler::pending() const noexcept { return core_->pending(); }

std::optional<time_point> scheduler::due(timer_id id) const { return core_->due(id); }

std::vector<timer_info> scheduler::list() const { return core_->list(); }

bool scheduler::stopping() const noexcept { return core_->stopping(); }

std::optional<time_point> scheduler::next_due() const {
  [[maybe_unused]] const checked_call checked{*core_, "next_due()"};
  return core_->next_due();
}

time_point scheduler::now() const noexcept { return core_->now(); }

statistics scheduler::stats() const { return core_->stats(); }

void scheduler::dump(std::ostream& out) const { core_->dump(out); }

void scheduler::shrink_to_fit() {
  [[maybe_unused]] const checked_call checked{*core_, "shrink_to_fit()"};
  core_->shrink_to_fit();
}

}  // namespace rondo
