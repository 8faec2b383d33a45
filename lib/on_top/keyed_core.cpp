#include <rondo/detail/keyed_core.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "scheduler/core.hpp"

namespace rondo::detail {

class keyed_core::group final : public timer_group {
 public:
  group(keyed_core& owner, std::shared_ptr<detail::core> c) noexcept : core(std::move(c)), owner_(owner) {}

  const std::shared_ptr<detail::core> core;  // whose scheduler may have been destroyed

 private:
  std::shared_ptr<void> self() noexcept override { return owner_.shared_from_this(); }
  void left(void* tag, timer_id id) noexcept override { owner_.left(tag, id); }

  keyed_core& owner_;
};

/// If only the last timer is left, its id suffices. Only the group knows the earlier ones.
struct keyed_core::awaited {
  timer_id current;
  const void* tag = nullptr;
  std::optional<timer_group::cursor> replaced;
};

constexpr const char* in_keyed_timers = "a call of keyed_timers";  // for checked builds

keyed_core::keyed_core(const scheduler& s) : group_(std::make_unique<group>(*this, core_access::of(s))) {}

keyed_core::~keyed_core() = default;

void keyed_core::clear() {
  [[maybe_unused]] const checked_call checked{*group_->core, in_keyed_timers};
  group_->core->cancel_all(*group_);
}

void keyed_core::close() {
  [[maybe_unused]] const checked_call checked{*group_->core, in_keyed_timers};
  group_->core->close(*group_);
}

bool keyed_core::has_timer(const keyed_entry& e) const { return group_->core->pending(e.current); }

std::optional<time_point> keyed_core::due(const keyed_entry& e) const { return group_->core->due(e.current); }

cancel_result keyed_core::cancel_and_wait(const void* key) {
  awaited tasks;
  const cancel_result result = cancel_key(key, tasks);
  core& c = *group_->core;
  if (tasks.current != timer_id{}) c.cancel_and_wait(tasks.current);
  if (!tasks.replaced) return result;
  // All of them were cancelled or replaced before, so none is cancelled here.
  for (timer_id id = next(tasks); id != timer_id{}; id = next(tasks)) c.cancel_and_wait(id);
  return result;
}

void keyed_core::note(awaited& tasks, const keyed_entry& e, const void* tag) const noexcept {
  if (group_->core->abandoned() || group_->core->inside_tagged(*group_, tag)) return;
  tasks.current = e.current;
  tasks.tag = tag;
  if (e.replaced() != 0) tasks.replaced.emplace(*group_);
}

/// The id of the key's next replaced timer, or that of no timer. (In the meantime, the key may have been forgotten and
/// another key may have taken its place, but that key's timers joined the group later.)
timer_id keyed_core::next(awaited& tasks) const {
  constexpr int at_a_time = 256;  // because other calls wait for the mutex
  for (;;) {
    const std::lock_guard hold(mutex_);  // guards the tags
    for (int i = 0; i != at_a_time; ++i) {
      const auto id = group_->core->next_tagged(*tasks.replaced, tasks.tag);
      if (!id || *id != timer_id{}) return id.value_or(timer_id{});
    }
  }
}

keyed_call::keyed_call(keyed_core& keys) : group_(*keys.group_), now_(group_.core->now()) {
  if constexpr (checks) group_.core->begin_call();
}

task& keyed_call::take_record() {
  record_ = &group_.core->take_record(true);
  return record_->work;
}

keyed_call::~keyed_call() {
  core& c = *group_.core;
  if (record_ != nullptr) c.discard(*record_, true);
  c.finish(core::remainder{ended_, wakes_});
  if (running_ != timer_id{}) c.interrupt(running_);
  if constexpr (checks) c.end_call(in_keyed_timers);
}

void keyed_call::set_options(timer_options&& with) { record_->keep(std::move(with)); }

void keyed_call::due(duration delay) noexcept { due_ = deadline_after(now_, delay); }

void keyed_call::due(const recurrence& when) { due_ = group_.core->make_periodic(*record_, when, now_); }

void keyed_call::set(keyed_entry& e, void* tag, bool interrupts) {
  core::remainder rest;
  const timer_id old = e.current;
  const timer_id id = group_.core->schedule_member(*record_, due_, now_, group_, tag, old, rest);
  record_ = nullptr;
  wakes_ = rest.wakes;
  ended_ = rest.ended;
  if (interrupts && ended_ == nullptr && !group_.core->inside(old)) running_ = old;
  forget_ended(e, old);
  e.current = id;
  ++e.timers;
}

bool keyed_call::reschedule(const keyed_entry& e) {
  core::remainder rest;
  const bool moved = group_.core->reschedule(e.current, due_, now_, rest);
  wakes_ = rest.wakes;
  return moved;
}

cancel_result keyed_call::cancel(keyed_entry& e) noexcept {
  core::remainder rest;
  const timer_id old = e.current;
  const cancel_result result = group_.core->cancel(old, rest);
  ended_ = rest.ended;
  if (result == cancel_result::running) running_ = old;
  forget_ended(e, old);
  return result == cancel_result::gone && e.replaced() != 0 ? cancel_result::running : result;
}

/// If the old timer has just ended, with no task in progress, no later call needs to find it through its key. So it is
/// forgotten here, under the lock that is held anyway.
void keyed_call::forget_ended(keyed_entry& e, timer_id old) noexcept {
  if (ended_ == nullptr) return;
  ended_->member().tag = nullptr;
  e.remove(old);
}

}  // namespace rondo::detail
