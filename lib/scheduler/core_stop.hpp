// basic_core: the end of a scheduler.
#pragma once

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>

#include "scheduler/core.hpp"
#include "scheduler/core_finish.hpp"
#include "scheduler/core_schedule.hpp"

namespace rondo::detail {

template <class Sync>
std::optional<std::vector<unfired>> basic_core<Sync>::stop_by(time_point end) {
  const bool from_inside = stack_marker::inside(this);
  std::vector<unfired> list;
  if (abandoned()) return list;
  std::vector<candidate> found;
  if (!unfired_.claimed()) {
    const std::size_t expected = pending() + 64;  // 64 for what other threads may schedule in the meantime
    list.reserve(expected);
    found.reserve(3 * expected);  // each of the three searches may find the same timer
  }
  phase_.stop();
  next_due_moved_earlier();  // for the driver to notice
  const auto all_over = [this](time_point until) { return in_flight_.wait_for_others(0, until); };
  if (!from_inside && !wait_watched("stop()", end, all_over)) return std::nullopt;
  while (!unfired_.claim()) {
    if (from_inside || unfired_.settled()) return list;
    if (!unfired_.wait_while_claimed(end)) return std::nullopt;
  }
  std::vector<std::string> names;
  try {
    find_unfired(found);
    names = names_of(found);
    list.reserve(found.size());
  } catch (...) {  // no memory, because others scheduled more than expected
    unfired_.give_up();
    throw;
  }
  for (std::size_t i = 0; i != found.size(); ++i)
    hand_back(found[i], names.empty() ? std::string() : std::move(names[i]), list);
  unfired_.settle();
  return list;
}

/// One name for each candidate, copied before the first timer is handed back, so that a lack of memory loses none.
/// Empty if no timer has a name.
template <class Sync>
std::vector<std::string> basic_core<Sync>::names_of(const std::vector<candidate>& found) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i != found.size(); ++i) {
    record_type& r = *found[i].timer;
    if (r.plain.acquire()) continue;  // or the record serves another timer, and this candidate is not current
    const record_lock hold(r.mutex);
    if (!found[i].is_current() || r.name().empty()) continue;
    names.resize(found.size());
    names[i] = r.name();
  }
  return names;
}

/// Finds all timers that wait, in the order in which stop() hands them back. A timer may be found twice. Precondition:
/// stopped() or draining(). While draining, timers that are not periodic may be left out if they move in the meantime.
///
/// A pass and other calls may be in progress. By itself, a timer moves only from the retry list to the wheel or the
/// pass, and from the wheel to the pass; the searches are in that order. Any other move is made under the record's
/// lock, which the first search also takes, so the later searches find the timer where it is then. schedule() inserts
/// nothing any more.
template <class Sync>
void basic_core<Sync>::find_unfired(std::vector<candidate>& found) {
  pool_.for_each([&](record_type& r) { find_unqueued(r, found); });
  wheel_.for_each([&](node& n) {
    auto& r = static_cast<record_type&>(n);
    found.push_back({&r, r.arming.load(std::memory_order_relaxed), r.due, found_in::wheel, found.size()});
  });
  ready_.for_each_current([&](const ready_entry& entry, std::uint64_t late) {
    const bool is_late = late != 0;
    found.push_back({entry.timer, entry.arming, entry.tick, is_late ? found_in::late_in_pass : found_in::pass,
                     is_late ? late : found.size()});
  });
  std::sort(found.begin(), found.end(), [](const candidate& a, const candidate& b) {
    return std::tie(a.tick, a.where, a.order) < std::tie(b.tick, b.where, b.order);
  });
}

/// Finds `r` if it is neither in the wheel nor in the pass, but with the executor, never due, or waiting for memory. If
/// it is running, that run is its last.
template <class Sync>
void basic_core<Sync>::find_unqueued(record_type& r, std::vector<candidate>& found) {
  record_lock hold(r.mutex);
  const waits_in where = r.state.where();
  const bool is_unqueued = where == waits_in::never_due || where == waits_in::retry_list;
  if ((!r.state.in_progress() && !is_unqueued) || !r.state.live()) return;
  if (r.state.running() != 0) return finish(hold, r, ending::over);
  const auto next = r.first_run();
  found.push_back({&r, r.arming.load(std::memory_order_relaxed), next.tick, found_in::no_queue, next.order});
}

template <class Sync>
void basic_core<Sync>::hand_back(const candidate& c, std::string&& name, std::vector<unfired>& list) {
  record_type& r = *c.timer;
  record_lock hold(r.mutex);
  if (!c.is_current() || !stop_waiting(r, [&] { return c.is_current(); })) return;
  const timer_id id = id_of(r);
  const time_point due = r.first_run().due;
  end(r, ending::returned);
  hold.unlock();
  list.push_back({id, due, std::move(r.work), std::move(name)});  // moving a callable is user code
  hold.lock();
  finish(hold, r, ending::returned);  // destroys its executor, which may stop or destroy the scheduler
}

template <class Sync>
void basic_core<Sync>::refuse_inside(const char* call) const {
  if (stack_marker::inside(this))
    throw std::logic_error(std::string("rondo: ") + call + "() was called from inside a task");
}

template <class Sync>
bool basic_core<Sync>::drain(duration limit) {
  refuse_inside("drain");
  if (abandoned()) return true;
  std::vector<candidate> found;
  found.reserve(3 * (pending() + 64));  // as in stop()
  phase_.drain();
  end_periodic_timers(found);
  if (!pass_time_until_drained(limit)) return false;
  phase_.stop();
  next_due_moved_earlier();  // for the driver to notice
  return true;
}

/// Ends the periodic timers that it finds; a run in progress is their last. The others end by themselves: the flag is
/// up, so a periodic timer that the driver dispatches later, or whose run ends later, waits for no further run, and
/// none can be moved.
template <class Sync>
void basic_core<Sync>::end_periodic_timers(std::vector<candidate>& found) {
  find_unfired(found);
  for (const candidate& c : found) {
    if (c.timer->plain.acquire()) continue;  // or the record serves another timer, and `c` is not current
    record_lock hold(c.timer->mutex);
    if (c.is_current() && c.timer->periodic()) finish(hold, *c.timer, ending::over);
  }
}

/// (pending() is never too low here, because no timer is scheduled any more.)
template <class Sync>
bool basic_core<Sync>::drained() const noexcept {
  return pending() <= never_due_.load(std::memory_order_seq_cst) && in_flight_.none();
}

template <class Sync>
bool basic_core<Sync>::pass_time_until_drained(duration limit) {
  return endings_.wait_until(saturating_add(now(), limit), [this] { return drained(); });
}

/// Stops when there is no memory for a list: destroys what was not fired.
template <class Sync>
void basic_core<Sync>::stop_one_by_one() noexcept {
  phase_.stop();
  next_due_moved_earlier();  // for the driver to notice
  in_flight_.wait_for_others(marker::in_flight(this));
  pool_.for_each([this](record_type& r) {
    record_lock hold(r.mutex);
    const std::uint64_t generation = r.generation.peek();
    const auto is_live = [&] { return r.has_generation(generation) && r.state.live(); };
    if (is_live() && stop_waiting(r, is_live)) finish(hold, r, ending::over);
  });
}

template <class Sync>
void basic_core<Sync>::abandon() noexcept {
  number_ = next_scheduler_number();  // so that no id names any of its timers
  phase_.abandon();
}

template <class Sync>
void basic_core<Sync>::retire() noexcept {
  if (abandoned()) return end_driver();
  marker::keep(this, this->shared_from_this());
  try {
    const std::vector<unfired> destroyed_here = stop();
  } catch (const std::bad_alloc&) {
    stop_one_by_one();
  }
  in_flight_.wait_for_others(marker::in_flight(this));
  end_driver();
  handlers_.release();
}

}  // namespace rondo::detail
