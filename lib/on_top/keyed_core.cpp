#include <rondo/detail/keyed_core.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <rondo/errors.hpp>

#include "scheduler/core.hpp"

namespace rondo::detail {

class keyed_core::owner final : public timer_owner {
 public:
  owner(keyed_core& keys, std::shared_ptr<detail::core> c) noexcept : core(std::move(c)), keys_(keys) {}

  const std::shared_ptr<detail::core> core;  // whose scheduler may have been destroyed

 private:
  void leave(record& r, timer_id id) noexcept override { keys_.left(r.tag, id); }

  keyed_core& keys_;
};

struct keyed_core::awaited {
  timer_id current;
  std::uint32_t tag = 0;
  std::uint64_t replaced_until = 0;  // the replaced timers with lower numbers
};

constexpr const char* in_keyed_timers = "a call of keyed_timers";  // for checked builds

keyed_core::keyed_core(const scheduler& s) : owner_(std::make_unique<owner>(*this, core_access::of(s))) {}

keyed_core::~keyed_core() = default;

bool keyed_core::abandoned() const noexcept { return owner_->core->abandoned(); }

timer_id keyed_core::id_of(const keyed_entry& e) const noexcept {
  return e.generation == 0 ? timer_id{} : owner_->core->id_of(e.slot, e.generation);
}

/// Calls visit(id), without the mutex, for the last timer of each key that is there all the time.
template <class Visit>
void keyed_core::for_each_current(Visit&& visit) const {
  constexpr std::uint32_t at_a_time = 256;  // because other calls wait for the mutex
  std::unique_lock hold(mutex_);
  for (std::uint32_t tag = 1, end = end_of_tags(); tag < end; ++tag) {
    const timer_id id = id_of(entry(tag));
    if (id == timer_id{} && tag % at_a_time != 0) continue;
    hold.unlock();
    if (id != timer_id{}) visit(id);
    hold.lock();
  }
}

/// Calls visit(id), without the mutex, for the replaced timers with that tag, or with any tag, and with lower numbers. (In the
/// meantime, the key may have been forgotten and another key may have taken its place, but that key's timers get higher
/// numbers.)
template <class Visit>
void keyed_core::for_each_replaced(std::uint64_t until, std::uint32_t tag, Visit&& visit) const {
  for (std::uint64_t from = 0; from < until;) {
    timer_id id;
    {
      const std::lock_guard hold(mutex_);
      const auto next = std::find_if(replaced_.begin(), replaced_.end(), [&](const replaced_timer& t) {
        return t.number >= from && (tag == any_tag || t.tag == tag);
      });
      if (next == replaced_.end() || next->number >= until) return;
      id = next->id;
      from = next->number + 1;
    }
    visit(id);
  }
}

/// Cancels the last timer of each key, and asks all runs in progress to stop.
void keyed_core::cancel_all(std::uint64_t replaced_until) {
  core& c = *owner_->core;
  for_each_current([&](timer_id id) { c.cancel(id); });
  for_each_replaced(replaced_until, any_tag, [&](timer_id id) { c.interrupt(id); });
}

void keyed_core::clear() {
  core& c = *owner_->core;
  [[maybe_unused]] const checked_call checked{c, in_keyed_timers};
  if (abandoned()) return;
  std::uint64_t until = 0;
  {
    const std::lock_guard hold(mutex_);
    until = numbers_;
  }
  cancel_all(until);
}

void keyed_core::close() {
  core& c = *owner_->core;
  [[maybe_unused]] const checked_call checked{c, in_keyed_timers};
  if (abandoned()) return;
  std::uint64_t until = 0;
  {
    const std::lock_guard hold(mutex_);
    closed_ = true;
    until = numbers_;
  }
  cancel_all(until);  // before it waits for any of them, so that nothing starts in the meantime
  for_each_current([&](timer_id id) { c.cancel_and_wait(id); });
  for_each_replaced(until, any_tag, [&](timer_id id) { c.cancel_and_wait(id); });
}

bool keyed_core::has_timer(const keyed_entry& e) const { return owner_->core->pending(id_of(e)); }

std::optional<time_point> keyed_core::due(const keyed_entry& e) const { return owner_->core->due(id_of(e)); }

cancel_result keyed_core::cancel_and_wait(const void* key) {
  awaited tasks;
  const cancel_result result = cancel_key(key, tasks);
  if (tasks.current != timer_id{}) owner_->core->cancel_and_wait(tasks.current);
  // They were cancelled when they were replaced.
  for_each_replaced(tasks.replaced_until, tasks.tag, [&](timer_id id) { owner_->core->cancel_and_wait(id); });
  return result;
}

void keyed_core::note(awaited& tasks, const keyed_entry& e, std::uint32_t tag) const noexcept {
  if (owner_->core->inside_tagged(*owner_, tag)) return;
  tasks.current = id_of(e);
  tasks.tag = tag;
  if (e.replaced != 0) tasks.replaced_until = numbers_;
}

void keyed_core::remove(keyed_entry& e, timer_id id) noexcept {
  if (id_of(e) == id) {
    e.generation = 0;
    return;
  }
  --e.replaced;
  std::erase_if(replaced_, [&](const replaced_timer& t) { return t.id == id; });
}

keyed_call::keyed_call(keyed_core& keys) : keys_(keys), core_(*keys.owner_->core), now_(core_.now()) {
  if constexpr (checks) core_.begin_call();
}

task& keyed_call::take_record() {
  record_ = &core_.take_record(true);
  return record_->work;
}

keyed_call::~keyed_call() {
  core& c = core_;
  if (record_ != nullptr) c.discard(*record_, true);
  c.finish({ended_, wakes_});
  if (running_ != timer_id{}) c.interrupt(running_);
  if constexpr (checks) c.end_call(in_keyed_timers);
}

void keyed_call::set_options(timer_options&& with) { record_->keep(std::move(with)); }

void keyed_call::due(duration delay) noexcept { due_ = deadline_after(now_, delay); }

void keyed_call::due(const recurrence& when) { due_ = core_.make_periodic(*record_, when, now_); }

void keyed_call::set(keyed_entry& e, std::uint32_t tag, bool interrupts) {
  if (keys_.closed_) timer_group::refuse_closed();
  core::remainder rest;
  const timer_id old = keys_.id_of(e);
  if (old != timer_id{}) keys_.replaced_.reserve(keys_.replaced_.size() + 1);
  const timer_id id = core_.replace(old, *record_, due_, now_, *keys_.owner_, tag, rest);
  record_ = nullptr;
  wakes_ = rest.wakes;
  ended_ = rest.ended;
  if (old != timer_id{} && !rest.has_ended) {
    if (interrupts && !core_.inside(old)) running_ = old;
    keys_.replaced_.push_back({keys_.numbers_++, old, tag});
    ++e.replaced;
  }
  const timer_id_parts& parts = timer_id_access::parts(id);
  e.slot = parts.slot;
  e.generation = parts.generation;
}

bool keyed_call::reschedule(const keyed_entry& e) {
  core::remainder rest;
  const bool moved = core_.reschedule(keys_.id_of(e), due_, now_, rest);
  wakes_ = rest.wakes;
  return moved;
}

cancel_result keyed_call::cancel(keyed_entry& e) noexcept {
  core::remainder rest;
  const timer_id old = keys_.id_of(e);
  const cancel_result result = core_.cancel_for_owner(old, rest);
  ended_ = rest.ended;
  if (result == cancel_result::running) running_ = old;
  // No later call needs to find it through its key.
  if (rest.has_ended) e.generation = 0;
  return result == cancel_result::gone && e.replaced != 0 ? cancel_result::running : result;
}

}  // namespace rondo::detail
