// basic_core: the end.
#pragma once

#include <algorithm>
#include <tuple>

#include "scheduler/core.hpp"

namespace rondo::detail {

template <class Sync>
std::vector<unfired> basic_core<Sync>::stop() {
  const bool from_inside = frame::inside(this);
  std::vector<unfired> list;
  if (abandoned()) return list;
  std::vector<candidate> found;
  if (!unfired_claimed_.load(std::memory_order_seq_cst)) {
    const std::size_t expected = pending() + 64;  // 64: what other threads may schedule meanwhile
    list.reserve(expected);
    found.reserve(3 * expected);  // each of its looks may find the same timer
  }
  stopped_.store(true, std::memory_order_seq_cst);
  const bool first = !unfired_claimed_.exchange(true, std::memory_order_seq_cst);
  next_due_moved_earlier();  // for the driver to notice
  if (!from_inside) activities_.wait_for_others(0);
  if (first) {
    try {
      find_unfired(found);
      list.reserve(found.size());
    } catch (...) {  // no memory, as others scheduled more than was foreseen: the next call gets them
      unfired_claimed_.store(false, std::memory_order_seq_cst);
      tell_unfired_taken();
      throw;
    }
    for (const candidate& c : found) hand_back(c, list);
    tell_unfired_taken();
  } else if (!from_inside) {
    endings_.wait_until([this] { return unfired_taken_.load(std::memory_order_seq_cst); });
  }
  return list;
}

template <class Sync>
void basic_core<Sync>::tell_unfired_taken() noexcept {
  unfired_taken_.store(true, std::memory_order_seq_cst);
  endings_.wake();
}

/// All timers that wait, in the order in which stop() hands them back; one may be found twice. Precondition:
/// stopped(), or draining(): then those that are not periodic may be left out, if they move meanwhile.
///
/// A pass may be in progress, and calls that began before. The three looks are in the order in which a timer
/// can move on once its scheduler is stopped: what waits for memory may go into the wheel or the pass, what
/// is in the wheel into the pass. Whoever moves one otherwise holds its record's lock and has not seen the
/// flag: the look through the records waits for him, and the wheel is closed to those who come later.
template <class Sync>
void basic_core<Sync>::find_unfired(std::vector<candidate>& found) {
  pool_.for_each([&](record_type& r) { find_apart(r, found); });
  wheel_.for_each([&](node& n) {
    auto& r = static_cast<record_type&>(n);
    found.push_back({&r, r.arming.load(std::memory_order_relaxed), r.due, found_in::wheel, found.size()});
  });
  ready_.for_each_good([&](const auto& entry, std::uint64_t late) {
    const bool is_late = late != 0;
    found.push_back({entry.timer, entry.arming, entry.tick, is_late ? found_in::late_in_pass : found_in::pass,
                     is_late ? late : found.size()});
  });
  std::sort(found.begin(), found.end(), [](const candidate& a, const candidate& b) {
    return std::tie(a.tick, a.where, a.order) < std::tie(b.tick, b.where, b.order);
  });
}

/// Those that are neither in the wheel nor in the pass: with the executor, never due, or running.
template <class Sync>
void basic_core<Sync>::find_apart(record_type& r, std::vector<candidate>& found) {
  {
    const record_lock hold(r.mutex);
    const bool is_apart = r.place == waiting::apart || r.place == waiting::unplaced;
    if ((!r.in_progress() && !is_apart) || !r.live) return;
    if (r.running == 0) {
      const tick_number tick = r.handed != 0 ? r.handed_tick() : r.due;
      const std::uint64_t order = r.handed != 0 ? r.handed_order() : r.order;
      found.push_back({&r, r.arming.load(std::memory_order_relaxed), tick, found_in::apart, order});
      return;
    }
    // A periodic one: the run in progress is its last.
    end_now(r);
  }
  count_completed();
}

/// Whether a timer that find_unfired() has found, locked, still is what it was.
template <class Sync>
bool basic_core<Sync>::good(const candidate& c) noexcept {
  const record_type& r = *c.timer;
  // (Whether it is live is to be asked last: if the record serves another timer by now, others write that.)
  return r.arming.load(std::memory_order_relaxed) == c.arming && r.live;
}

template <class Sync>
void basic_core<Sync>::hand_back(const candidate& c, std::vector<unfired>& list) {
  record_type& r = *c.timer;
  timer_id id;
  time_point due;
  {
    const record_lock hold(r.mutex);
    if (!good(c)) return;
    id = id_of(r);
    due = r.handed != 0 ? r.handed_due() : r.deadline;
    end_now(r);
  }
  list.push_back({id, due, std::move(r.work)});
  limit_.free_place();
  finish(r, [](tally& t) {  // which destroys its executor: that may stop or destroy the scheduler
    ++t.returned;
    ++t.left;
  });
}

template <class Sync>
void basic_core<Sync>::refuse_inside(const char* call) const {
  if (frame::inside(this))
    throw std::logic_error(std::string("rondo: ") + call + "() was called from inside a task");
}

template <class Sync>
bool basic_core<Sync>::drain(duration limit) {
  refuse_inside("drain");
  if (abandoned()) return true;
  std::vector<candidate> found;
  found.reserve(3 * (pending() + 64));  // as in stop()
  draining_.store(true, std::memory_order_seq_cst);
  end_periodic_timers(found);
  if (!pass_time_until_drained(limit)) return false;
  stopped_.store(true, std::memory_order_seq_cst);
  next_due_moved_earlier();  // for the driver to notice
  return true;
}

/// Ends those that it finds. The others end themselves: the flag is up, so a periodic timer that the driver takes up
/// later, or whose run ends later, waits for no further run, and none can be moved any more.
template <class Sync>
void basic_core<Sync>::end_periodic_timers(std::vector<candidate>& found) {
  find_unfired(found);
  for (const candidate& c : found) complete_if(*c.timer, [&] { return good(c) && c.timer->periodic(); });
}

/// Ends a timer if condition(), asked under its lock, is true: a run in progress is its last.
template <class Sync>
template <class Condition>
void basic_core<Sync>::complete_if(record_type& r, Condition&& condition) noexcept {
  bool is_running = false;
  {
    const record_lock hold(r.mutex);
    if (!condition()) return;
    end_now(r);
    is_running = r.running != 0;
  }
  if (is_running)
    count_completed();
  else
    complete(r);
}

/// Ends a timer, locked: no run of it starts any more.
template <class Sync>
void basic_core<Sync>::end_now(record_type& r) noexcept {
  r.live = false;
  disarm(r);
  r.take_back_tickets();
}

/// Counts a timer that ended by itself and is pending no more.
template <class Sync>
void basic_core<Sync>::count_completed() noexcept {
  limit_.free_place();
  pool_.count([](tally& t) {
    ++t.completed;
    ++t.left;
  });
}

/// Frees one that is not live any more, and not running.
template <class Sync>
void basic_core<Sync>::complete(record_type& r) noexcept {
  limit_.free_place();
  finish(r, [](tally& t) {
    ++t.completed;
    ++t.left;
  });
}

/// (What is pending is never counted too low here: no timer is scheduled any more.)
template <class Sync>
bool basic_core<Sync>::drained() const noexcept {
  return pending() <= apart_.load(std::memory_order_seq_cst) && activities_.none();
}

template <class Sync>
bool basic_core<Sync>::pass_time_until_drained(duration limit) {
  return endings_.wait_until(saturating_add(now(), limit), [this] { return drained(); });
}

/// Stops without memory for a list: destroys what was not fired.
template <class Sync>
void basic_core<Sync>::stop_one_by_one() noexcept {
  stopped_.store(true, std::memory_order_seq_cst);
  next_due_moved_earlier();  // for the driver to notice
  activities_.wait_for_others(frame::activities(this));
  pool_.for_each([this](record_type& r) { complete_if(r, [&r] { return r.live; }); });
}

template <class Sync>
void basic_core<Sync>::abandon() noexcept {
  abandoned_ = true;
  number_ = next_scheduler_number();  // so that no id names any of its timers
  stopped_.store(true, std::memory_order_seq_cst);
}

template <class Sync>
void basic_core<Sync>::retire() noexcept {
  if (abandoned()) return end_driver();
  frame::keep(this, this->shared_from_this());
  try {
    const std::vector<unfired> destroyed_here = stop();
  } catch (const std::bad_alloc&) {
    stop_one_by_one();
  }
  activities_.wait_for_others(frame::activities(this));
  end_driver();
  handlers_.release();
}

}  // namespace rondo::detail
