#include <rondo/detail/keyed_core.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "on_top/scope_core.hpp"

namespace rondo::detail {

/// A task that a key was set to, and its timer. Guarded by the core's mutex, under which no callable is moved,
/// called or destroyed: only pointers to callables are.
struct keyed_value {
  keyed_entry* entry;
  std::unique_ptr<task> work;
  std::optional<time_point> due;  // none: recurring
  bool only_if_none = false;

  timer_id id;                           // set once, when `known` is
  timer_id before;                       // the timer it replaced, which the setting call cancels
  bool known = false;                    // it has become current, or was refused
  bool refused = false;                  // the key had a timer, and only_if_none
  bool dropped = false;                  // replaced or refused: it must not start
  bool counted = false;                  // in keyed_entry::replaced
  bool begun = false;                    // a run has
  bool over = false;                     // the scheduler has destroyed its carrier
  unsigned moving = 0;                   // calls that are rescheduling it
  std::shared_ptr<keyed_value> offered;  // the new value of a take_over() in progress
};

/// The task that the scheduler gets: runs the user's task, and reports the end of the timer.
class keyed_core::carrier {
 public:
  carrier(std::shared_ptr<keyed_core> core, std::shared_ptr<keyed_value> value)
      : core_(std::move(core)), value_(std::move(value)) {
    const std::lock_guard hold(core_->mutex_);
    value_->over = false;
    ++value_->entry->users;
  }
  carrier(carrier&&) noexcept = default;
  carrier& operator=(carrier&&) = delete;
  ~carrier() {
    if (core_ != nullptr) core_->end(*value_);
  }
  void operator()(const firing& f) { core_->run(value_, f); }

 private:
  std::shared_ptr<keyed_core> core_;
  std::shared_ptr<keyed_value> value_;
};

namespace {

std::shared_ptr<keyed_value> make_value(keyed_entry& e, task&& work, std::optional<time_point> due) {
  if (!work) throw std::invalid_argument("rondo: the task is empty");
  auto value = std::make_shared<keyed_value>();
  value->entry = &e;
  value->work = std::make_unique<task>(std::move(work));
  value->due = due;
  return value;
}

}  // namespace

keyed_core::keyed_core(scheduler& s) : scheduler_(s), scope_(std::make_shared<scope_core>(s)) {}

keyed_core::~keyed_core() = default;

void keyed_core::clear() { scope_->cancel_all(); }

void keyed_core::close() { scope_->close(); }

time_point keyed_core::after(duration delay) const noexcept {
  return delay == duration::max() ? time_point::max() : saturating_add(scheduler_.now(), delay);
}

bool keyed_core::has_timer(const keyed_entry& e) const {
  return e.current != nullptr && scheduler_.pending(e.current->id);
}

void keyed_core::set_at(keyed_entry& e, time_point due, task&& work) {
  set_new(make_value(e, std::move(work), due),
          [&](task t) { return scheduler_.schedule_at(due, std::move(t)); });
}

void keyed_core::set(keyed_entry& e, const recurrence& when, task&& work) {
  set_new(make_value(e, std::move(work), std::nullopt),
          [&](task t) { return scheduler_.schedule(when, std::move(t)); });
}

bool keyed_core::try_set_at(keyed_entry& e, time_point due, task&& work) {
  const auto value = make_value(e, std::move(work), due);
  value->only_if_none = true;
  {
    const std::lock_guard hold(mutex_);
    if (has_timer(e)) return false;
  }
  return set_new(value, [&](task t) { return scheduler_.schedule_at(due, std::move(t)); });
}

/// Schedules the value's timer. False if it was refused. `schedule` calls the scheduler with a task; at the limit of
/// pending timers the key's old timer must make way first.
template <class Schedule>
bool keyed_core::set_new(const std::shared_ptr<keyed_value>& value, Schedule&& schedule) {
  constexpr int patience = 140;  // attempts with growing sleeps between them: 0.1 s in all
  const auto made_at = value->work->made_at();
  const auto attempt = [&] {
    return scope_->schedule({carrier(shared_from_this(), value), made_at}, schedule);
  };
  bool place_is_made = false;
  for (int refusals = 1;; ++refusals) {
    try {
      return establish(value, attempt());
    } catch (const capacity_error&) {
      if (refusals > patience) throw;
    }
    switch (make_way(value)) {
      case way::taken:
        return true;
      case way::refused:
        return false;
      case way::made:
        place_is_made = true;
        continue;  // at once, before another thread takes the place
      case way::none:
        if (!place_is_made) refusals = patience;  // the next refusal is final
        break;
      case way::coming:
        break;
    }
    // The timers that took the place may end soon, or belong to other calls for this key, and can then be replaced.
    if (refusals != patience) std::this_thread::sleep_for(refusals * std::chrono::microseconds(10));
  }
}

/// Makes a place for the value's timer. Precondition: the scheduler has max_pending timers.
keyed_core::way keyed_core::make_way(const std::shared_ptr<keyed_value>& value) {
  std::unique_lock hold(mutex_);
  const std::shared_ptr<keyed_value> old = value->entry->current;
  if (old == nullptr)
    return value->entry->users > 1 ? way::coming : way::none;  // another call for this key may have one
  if (!has_timer(*value->entry)) {
    // It is no longer pending, but its place becomes free only shortly before its task starts.
    return old->begun && old->due ? way::none : way::coming;
  }
  if (value->only_if_none) return way::refused;
  if (old->due && value->due && old->moving == 0) return take_over(*old, value, hold);
  hold.unlock();
  scheduler_.cancel(old->id);
  return way::made;
}

/// Gives the old one-shot's timer to the new one. The scheduler decides, by moving the timer; if it fires
/// meanwhile, its due tells for which of the two. `moving` keeps other calls from moving it, which would make that
/// ambiguous.
keyed_core::way keyed_core::take_over(keyed_value& old, const std::shared_ptr<keyed_value>& value,
                                      std::unique_lock<std::mutex>& hold) {
  ++old.moving;
  old.offered = value;
  hold.unlock();
  const auto settle = [&](bool moved) {
    hold.lock();
    --old.moving;
    old.offered.reset();  // destroys nothing: the caller owns it too
    if (moved && !old.begun && !old.over) std::swap(old.work, value->work);
    const bool taken = moved || value->begun;
    hold.unlock();
    return taken;
  };
  bool moved = false;
  try {
    moved = scheduler_.reschedule_at(old.id, *value->due);
  } catch (...) {
    if (!settle(false)) throw;
    return way::taken;
  }
  return settle(moved) ? way::taken : way::coming;  // if not taken, the old one has started or ended
}

/// Called when the value has a timer. Cancels the one it replaces. False if the value was refused.
bool keyed_core::establish(const std::shared_ptr<keyed_value>& value, timer_id id) {
  timer_id not_wanted;
  bool refused = false;
  {
    const std::lock_guard hold(mutex_);
    if (!value->known) make_current(value, id);
    refused = value->refused;
    not_wanted = refused ? id : value->before;
  }
  scheduler_.cancel(not_wanted);
  return !refused;
}

/// Precondition: the mutex is locked.
void keyed_core::make_current(const std::shared_ptr<keyed_value>& value, timer_id id) {
  keyed_entry& e = *value->entry;
  value->known = true;
  value->id = id;
  if (value->only_if_none && has_timer(e)) {
    value->refused = value->dropped = true;
    return;
  }
  if (e.current != nullptr) {
    value->before = e.current->id;
    e.current->dropped = !value->only_if_none;
    e.current->counted = true;
    ++e.replaced;
  }
  e.current = value->over ? nullptr : value;
}

bool keyed_core::reschedule_at(keyed_entry& e, time_point due) {
  for (;;) {
    std::shared_ptr<keyed_value> current;
    {
      const std::lock_guard hold(mutex_);
      current = e.current;
      if (current == nullptr) return false;
      if (current->offered != nullptr) return true;  // it is being replaced, which takes effect after this
      ++current->moving;
    }
    const auto settle = [&] {
      const std::lock_guard hold(mutex_);
      --current->moving;
      return e.current == current;
    };
    bool moved = false;
    try {
      moved = scheduler_.reschedule_at(current->id, due);
    } catch (...) {
      settle();
      throw;
    }
    if (settle() || moved) return moved;
  }
}

cancel_result keyed_core::cancel(keyed_entry& e) {
  for (std::shared_ptr<keyed_value> tried;;) {
    timer_id id;
    {
      const std::lock_guard hold(mutex_);
      // A task that stop() handed back stays current until its owner destroys it.
      if (e.current == nullptr || e.current == tried)
        return e.replaced != 0 ? cancel_result::running : cancel_result::gone;
      tried = e.current;
      id = tried->id;
    }
    const cancel_result result = scheduler_.cancel(id);
    if (result != cancel_result::gone) return result;
  }
}

void keyed_core::run(const std::shared_ptr<keyed_value>& value, const firing& f) {
  task* work = nullptr;
  {
    const std::lock_guard hold(mutex_);
    if (!value->known) make_current(value, f.id);
    if (value->dropped) return;
    value->begun = true;
    if (value->offered != nullptr && *value->offered->due == f.due) {
      std::swap(value->work, value->offered->work);
      value->offered->begun = true;
    }
    work = value->work.get();
  }
  (*work)(f);
}

/// The scheduler has destroyed the carrier: the timer has ended.
void keyed_core::end(keyed_value& value) noexcept {
  std::unique_ptr<task> work;
  keyed_entry& e = *value.entry;
  {
    const std::lock_guard hold(mutex_);
    value.over = true;
    if (value.known) work = std::move(value.work);  // else the setting call may need it for another attempt
  }
  work.reset();
  std::unique_lock hold(mutex_);
  if (e.current.get() == &value) e.current.reset();  // destroys nothing: the carrier owns it too
  if (value.counted) --e.replaced;
  leave(e, hold);
}

}  // namespace rondo::detail
