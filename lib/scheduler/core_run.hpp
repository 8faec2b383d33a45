// basic_core: a pass of the driver, and the life of one run.
#pragma once

#include <algorithm>
#include <iostream>
#include <string>

#include "scheduler/core.hpp"

namespace rondo::detail {

template <class Sync>
basic_core<Sync>::activity::activity(basic_core& c) noexcept : core_(c), frame_(frame::kind::activity, &c) {
  core_.activities_.fetch_add(1, std::memory_order_seq_cst);
}

template <class Sync>
basic_core<Sync>::activity::~activity() {
  core_.activities_.fetch_sub(1, std::memory_order_seq_cst);
  core_.wake_waiting();
}

template <class Sync>
std::size_t basic_core<Sync>::run_pass(time_point until, std::size_t limit) {
  const activity pass(*this);
  const auto user = current_handlers();
  if (stopped() || user == nullptr) return 0;
  time_point reading = now();
  const tick_number due = grid_.at_or_before(std::min(until, reading));
  collect(due);
  place_unplaced(due);
  std::size_t begun = 0;
  while (begun != limit && !stopped()) {
    const auto entry = ready_.front();
    if (!entry) break;
    if (begin(*entry, *user, reading)) ++begun;
    // Only now, and not if it did not begin because of stop(): until it has begun it is to be found there.
    if (!stopped()) ready_.pop();
  }
  return begun;
}

/// Takes what is due out of the wheel, all of it before any of it runs: what tasks make due is for the next
/// pass.
template <class Sync>
void basic_core<Sync>::collect(tick_number until) {
  if (!ready_.empty()) return;  // the pass before reached its limit: it goes on first
  for (;;) {
    const std::size_t room = ready_.make_room();
    const std::size_t taken = wheel_.take_due(
        until, room, [this](node& n, tick_number tick) { ready_.push(static_cast<record_type&>(n), tick); });
    if (taken != room || room == 0) return;
  }
}

/// Runs the task, or hands it to the executor; false if the entry is not good any more or the run is dropped.
/// `reading` is the time; it is read anew at the end, and serves as the start of the next.
template <class Sync>
bool basic_core<Sync>::begin(const typename ready_list<Sync>::entry& entry, const handlers& user,
                             time_point& reading) {
  const bool to_executor = static_cast<bool>(user.run_on);
  const beginning b = start_waiting(*entry.timer, entry.arming, entry.tick, to_executor, reading);
  if (b.overlapped != 0 || b.fact.missed != 0) {
    pool_.count([&](tally& t) {
      t.overlapped += b.overlapped;
      t.missed += b.fact.missed;
    });
  }
  if (b.timer == nullptr) return false;
  if (to_executor) {
    hand_over(b, user);
  } else {
    run(*b.timer, b.generation, b.fact);
    end_run(*b.timer, b.generation);
  }
  reading = now();
  return true;
}

struct grid_look {
  std::uint64_t missed;  // points after `due` that are not later than `now`
  time_point next;       // the first point after those
};

/// Precondition: due <= now. Unsigned, as the distance may be longer than the longest duration.
inline grid_look look_at_grid(time_point due, duration period, time_point now) noexcept {
  const auto late = static_cast<std::uint64_t>(now.time_since_epoch().count()) -
                    static_cast<std::uint64_t>(due.time_since_epoch().count());
  const auto step = static_cast<std::uint64_t>(period.count());
  return {late / step, saturating_add(now, duration(static_cast<duration::rep>(step - late % step)))};
}

/// Turns a waiting timer into a run, and has a periodic one wait for the next.
template <class Sync>
typename basic_core<Sync>::beginning basic_core<Sync>::start_waiting(record_type& r, std::uint64_t arming,
                                                                     tick_number tick, bool to_executor,
                                                                     time_point& reading) {
  beginning b;
  const record_lock hold(r.mutex);
  if (r.arming.load(std::memory_order_relaxed) != arming || stopped()) return b;
  const time_point due = r.deadline;
  // What another thread made due just now, after the time was read, may have come into the pass.
  if (due > reading) reading = now();
  if (r.periodic()) {
    const grid_look look = look_at_grid(due, r.period, reading);
    arm_surely(r, look.next, grid_.of_deadline(look.next, reading));
    if (r.running != 0 || r.handed != 0) {
      b.overlapped = look.missed + 1;
      return b;
    }
    b.fact.missed = look.missed;
  } else {
    disarm(r);
  }
  b.timer = &r;
  b.generation = r.generation;
  b.fact.id = id_of(r);
  b.fact.due = due;
  b.fact.lateness = saturating_difference(reading, due);
  b.fact.run = ++r.runs;
  if (to_executor) {
    b.ticket = r.in_hand_over = ++r.tickets;
    ++r.handed;
    r.handed_due = due;
    r.handed_tick = tick;
    r.order = orders_.fetch_add(1, std::memory_order_relaxed);
  } else {
    ++r.running;
    if (!r.periodic()) r.live = false;
  }
  return b;
}

/// Precondition: counted in r.running. (Whether it is periodic does not change while it runs.)
template <class Sync>
void basic_core<Sync>::run(record_type& r, std::uint64_t generation, const firing& fact) noexcept {
  const bool last = !r.periodic();
  pool_.count([&](tally& t) {
    ++t.fired;
    if (last) ++t.left;
  });
  if (last) free_place();
  const frame here(frame::kind::user_code, this, &r, generation);
  try {
    r.work(fact);
  } catch (...) {
    pool_.count([](tally& t) { ++t.failed; });
    report(thrower::task, std::current_exception(), fact);
  }
}

template <class Sync>
void basic_core<Sync>::end_run(record_type& r, std::uint64_t generation) noexcept {
  if (r.periodic()) {
    const record_lock hold(r.mutex);
    // The last run of one that was cancelled meanwhile stays "running" until its callable is destroyed.
    if (r.live || r.running != 1 || r.handed != 0) {
      --r.running;
      return;
    }
  }
  const bool completed = !r.periodic();  // a periodic one was counted by whoever ended it
  {
    const frame here(frame::kind::user_code, this, &r, generation);
    r.work.reset();
  }
  release(r, [&](tally& t) { t.completed += completed ? 1 : 0; });
}

template <class Sync>
void basic_core<Sync>::hand_over(const beginning& b, const handlers& user) noexcept {
  record_type& r = *b.timer;
  std::exception_ptr thrown;
  const frame here(frame::kind::user_code, this);
  try {
    user.run_on(job(this->shared_from_this(),
                    job_ticket{&r, b.generation, b.ticket, b.fact.due, b.fact.run, b.fact.missed}));
  } catch (...) {
    thrown = std::current_exception();
  }
  bool dropped = false;
  {
    const record_lock hold(r.mutex);
    if (r.generation == b.generation && r.in_hand_over == b.ticket) {
      r.in_hand_over = 0;
      dropped = std::exchange(r.dropped, false);
    }
  }
  if (thrown) {
    pool_.count([](tally& t) { ++t.failed; });
    give_up_ticket(r, b.generation, b.ticket, mishap::failed);
    report(thrower::executor, thrown, b.fact);
  } else if (dropped) {
    give_up_ticket(r, b.generation, b.ticket, mishap::rejected);
  }
}

template <class Sync>
void basic_core<Sync>::start(const job_ticket& ticket) noexcept {
  const activity in_progress(*this);
  record_type& r = *static_cast<record_type*>(ticket.record);
  firing fact;
  {
    const record_lock hold(r.mutex);
    if (stopped() || r.generation != ticket.generation || !r.ticket_is_good(ticket.number)) return;
    --r.handed;
    ++r.running;
    if (!r.periodic()) r.live = false;
    fact.id = id_of(r);
  }
  fact.due = ticket.due;
  fact.lateness = saturating_difference(now(), ticket.due);
  fact.run = ticket.run;
  fact.missed = ticket.missed;
  run(r, ticket.generation, fact);
  end_run(r, ticket.generation);
}

template <class Sync>
void basic_core<Sync>::drop(const job_ticket& ticket) noexcept {
  const activity in_progress(*this);
  record_type& r = *static_cast<record_type*>(ticket.record);
  {
    const record_lock hold(r.mutex);
    if (r.generation != ticket.generation) return;
    if (r.in_hand_over == ticket.number) {  // whether the executor refuses it by throwing is not known yet
      r.dropped = true;
      return;
    }
  }
  give_up_ticket(r, ticket.generation, ticket.number, mishap::rejected);
}

/// A run that was handed over and will not happen. Nothing if it has started or been taken back.
template <class Sync>
void basic_core<Sync>::give_up_ticket(record_type& r, std::uint64_t generation, std::uint64_t number,
                                      mishap what) noexcept {
  bool last = false;
  {
    const record_lock hold(r.mutex);
    if (stopped() || r.generation != generation || !r.ticket_is_good(number)) return;
    --r.handed;
    r.void_tickets = number;  // the executor may have kept the job
    last = !r.periodic();
    if (last) r.live = false;
  }
  const auto count = [&](tally& t) {
    if (what == mishap::rejected) ++t.rejected;
    if (!last) return;
    ++t.completed;
    ++t.left;
  };
  if (!last) {
    pool_.count(count);
    return;
  }
  free_place();
  {
    const frame here(frame::kind::user_code, this, &r, generation);
    r.work.reset();
  }
  release(r, count);
}

inline std::string text_of(const std::exception_ptr& thrown) {
  std::string text = "something that is no std::exception";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// One line.
inline void report_on_cerr(const char* who, const std::exception_ptr& thrown) noexcept {
  try {
    try {
      std::cerr << std::string("rondo: ") + who + " threw: " + text_of(thrown) + '\n';
    } catch (const std::bad_alloc&) {
      std::cerr << "rondo: " << who << " threw, and there is no memory to say what\n";
    }
  } catch (...) {  // std::cerr itself is set to throw: there is nobody left to tell
  }
}

/// Precondition: user code is on the stack, as far as frames tell.
template <class Sync>
void basic_core<Sync>::report(thrower who, std::exception_ptr thrown, const firing& fact) noexcept {
  const auto user = current_handlers();
  if (user == nullptr || !user->on_error) {
    report_on_cerr(who == thrower::task ? "a task" : "the executor", thrown);
    return;
  }
  try {
    user->on_error(std::move(thrown), fact);
  } catch (...) {
    report_on_cerr("on_error", std::current_exception());
  }
}

template <class Sync>
std::shared_ptr<const typename basic_core<Sync>::handlers> basic_core<Sync>::current_handlers()
    const noexcept {
  const std::lock_guard hold(handlers_mutex_);
  return handlers_;
}

}  // namespace rondo::detail
