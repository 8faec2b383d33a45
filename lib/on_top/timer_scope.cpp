#include <rondo/timer_scope.hpp>

#include <memory>
#include <utility>

#include "scheduler/core.hpp"

namespace rondo {

using detail::checked_call;
using detail::deadline_after;

namespace detail {

/// The group of a scope, which keeps the core of its scheduler.
class scope_group final : public timer_group, public std::enable_shared_from_this<scope_group> {
 public:
  explicit scope_group(std::shared_ptr<core> c) noexcept : core_(std::move(c)) {}

 private:
  std::shared_ptr<void> self() noexcept override { return shared_from_this(); }

  const std::shared_ptr<core> core_;
};

}  // namespace detail

// A task or its destructor may destroy the scope during a call, so a copy of group_ keeps the group, and with it the
// core, until the call is over.

timer_scope::timer_scope(scheduler& s)
    : scheduling_calls(detail::core_access::of(s),
                       std::make_shared<detail::scope_group>(detail::core_access::of(s))) {}

timer_scope::~timer_scope() { close(); }

cancel_result timer_scope::cancel(timer_id id) {
  const auto group = group_;
  [[maybe_unused]] const checked_call checked{*core_, "cancel()"};
  return core_->cancel_member(id, *group);
}

cancel_result timer_scope::cancel_and_wait(timer_id id) {
  const auto group = group_;
  [[maybe_unused]] const checked_call checked{*core_, "cancel_and_wait()"};
  return core_->belongs(id, *group) ? core_->cancel_and_wait(id) : cancel_result::gone;
}

bool timer_scope::reschedule_after(timer_id id, any_duration delay) {
  const auto group = group_;
  [[maybe_unused]] const checked_call checked{*core_, "reschedule_after()"};
  const time_point now = core_->now();
  return core_->belongs(id, *group) && core_->reschedule(id, deadline_after(now, delay), now);
}

bool timer_scope::reschedule_at(timer_id id, any_time_point due) {
  const auto group = group_;
  [[maybe_unused]] const checked_call checked{*core_, "reschedule_at()"};
  return core_->belongs(id, *group) && core_->reschedule(id, due, core_->now());
}

bool timer_scope::pending(timer_id id) const { return core_->belongs(id, *group_) && core_->pending(id); }

std::size_t timer_scope::pending() const { return core_->pending(*group_); }

void timer_scope::cancel_all() {
  const auto group = group_;
  [[maybe_unused]] const checked_call checked{*core_, "cancel_all()"};
  core_->cancel_all(*group);
}

void timer_scope::close() {
  const auto group = group_;
  [[maybe_unused]] const checked_call checked{*core_, "close()"};
  core_->close(*group);
}

}  // namespace rondo
