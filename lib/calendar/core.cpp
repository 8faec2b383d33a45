#include "calendar/core.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include <rondo/recurrence.hpp>

#include "calendar/rule.hpp"
#include "calendar/zone_data.hpp"

namespace rondo::detail {

namespace {

/// When a timer that could not be moved checks the clock again, and how often a clock that does not report its steps is
/// checked.
constexpr duration soon = std::chrono::seconds(1);
/// If the clock is set back further than this, its earlier time was wrong, and a calendar starts again.
constexpr duration far_back = std::chrono::hours(3);
/// If a clock that does not report its steps differs by less than this, it was not set: two clocks are not read at the
/// same time.
constexpr duration smallest_step = std::chrono::milliseconds(1);
constexpr std::uint64_t most_missed = 1000;

duration difference(wall_time later, wall_time earlier) noexcept {
  return saturating_difference(time_point(later.time_since_epoch()), time_point(earlier.time_since_epoch()));
}

/// A timer's callable.
class wall_run {
 public:
  explicit wall_run(std::shared_ptr<wall_timer> t) noexcept : timer_(std::move(t)) {}
  wall_run(wall_run&&) noexcept = default;
  wall_run& operator=(wall_run&&) = delete;
  ~wall_run() {
    if (timer_ == nullptr) return;
    timer_->core->forget(*timer_);
    timer_->work.reset();  // here, because the call that schedules the timer may still share it
  }

  void operator()(const firing& f) {
    if (f.run == 0) return timer_->work(by_hand());
    const std::optional<wall_firing> now = timer_->core->begin(*timer_, f);
    if (!now) return;
    const ending at_end{*timer_};
    timer_->work(*now);
  }

  std::shared_ptr<rejection> rejecting() const noexcept { return timer_; }

  std::shared_ptr<interruption> interrupting() const noexcept {
    const bool is_beginning = timer_->ending_on.load(std::memory_order_relaxed) == std::this_thread::get_id();
    return is_beginning ? nullptr : task_access::interrupting(timer_->work);
  }

 private:
  struct ending {
    wall_timer& timer;
    ~ending() { timer.core->end(timer); }
  };

  /// For a task that stop() handed back. The clock may no longer exist.
  wall_firing by_hand() const noexcept {
    wall_firing f;
    f.wall_due = timer_->core->due_of(*timer_);
    return f;
  }

  std::shared_ptr<wall_timer> timer_;
};

}  // namespace

void calendar_core::follow_clock() {
  const auto weak = weak_from_this();
  zone_notice_ = on_new_zone_data([weak] {
    if (const auto core = weak.lock()) core->stepped();
  });
  notice_ = clock_.on_step([weak] {
    if (const auto core = weak.lock()) core->stepped();
  });
  if (notice_ != nullptr) return;
  looks_.schedule_every(soon, [weak](const firing& f) {
    if (const auto core = weak.lock()) core->look(f);
  });
}

void calendar_core::close() {
  {
    const lock hold(mutex_);
    closed_ = true;
  }
  {
    std::unique_lock hold(mutex_);
    read_.wait(hold, [this] { return readers_ == 0; });
  }
  looks_.close();
  notice_.reset();
  zone_notice_.reset();
  timers_.close();
}

/// Checks a clock that does not report its steps. Calls do not overlap, as these are runs of one periodic timer.
void calendar_core::look(const firing& f) {
  const wall_time steady(saturating_add(f.due, f.lateness).time_since_epoch());
  const duration offset = difference(clock_.now(), steady);
  if (offset_ && offset - *offset_ < smallest_step && *offset_ - offset < smallest_step) return;
  stepped();
  offset_ = offset;
}

std::uint64_t calendar_core::steps() const {
  const lock hold(mutex_);
  return steps_;
}

timer_id calendar_core::schedule(std::optional<calendar> when, wall_time due, task work,
                                 timer_options* with) {
  if (!work) refuse_empty_task();
  const kept_call_site made_at = work.made_at();
  const auto t = std::make_shared<wall_timer>(shared_from_this(), std::move(work), std::move(when));
  task turn(wall_run(t), made_at);  // from here on, destroying it ends the timer
  // Reads the count of steps before the clock, so that settle() notices any step after that.
  const std::uint64_t before = steps();
  const wall_time now = clock_.now();
  point first{due};
  if (t->when) {
    t->counted_with = t->found_with = &t->when->rule_->zone->offsets();
    first = next_point(*t, now, *t->found_with, *t->found_with);
  }
  const wall_time shown = t->when ? clock_.now() : now;  // finding the point may have taken a while
  duration delay{};
  {
    const lock hold(mutex_);
    wait_for(*t, std::move(first));
    t->counted_from = now;
    t->seen_steps = steps_;
    link_last(*t);
    delay = until_due(*t, shown);
  }
  const recurrence turns = after_completion(soon).first_after(delay).on_overlap(overlapping_runs::queue_one);
  const timer_id id = with == nullptr ? timers_.schedule(turns, std::move(turn))
                                      : timers_.schedule(turns, std::move(turn), std::move(*with));
  settle(id, *t, before);
  return id;
}

/// Completes the scheduling of a timer. A step during it could not move the timer, whose id was not yet known.
void calendar_core::settle(timer_id id, wall_timer& t, std::uint64_t steps) {
  {
    const lock hold(mutex_);
    t.id = id;
    if (steps_ == steps) return;
  }
  try {
    arm(t);
  } catch (...) {
    if (cancel(id) == cancel_result::cancelled) throw;
  }
}

/// To the scheduler, a run that only checks the clock is a run too. A timer cancelled during such a run counts as
/// cancelled, not as running, and no run follows. If the check ends before this call has looked for the timer, forget()
/// says so.
cancel_result calendar_core::cancel(timer_id id) {
  cancel_call here{id};
  {
    const lock hold(mutex_);
    here.next = std::exchange(cancel_calls_, &here);
  }
  const cancel_result result = timers_.cancel(id);
  const lock hold(mutex_);
  cancel_call** link = &cancel_calls_;
  while (*link != &here) link = &(*link)->next;
  *link = here.next;
  if (result != cancel_result::running) return result;
  for (wall_timer* t = first_; t != nullptr; t = t->next)
    if (t->id == id) note_cancelled(*t, here);
  return here.after_check.value_or(result);
}

/// Unless a run of the task is in progress, or was the last.
void calendar_core::note_cancelled(wall_timer& t, cancel_call& by) noexcept {
  if (t.running || t.ended) return;
  by.after_check = std::exchange(t.cancelled, true) ? cancel_result::gone : cancel_result::cancelled;
}

/// How long the timer has to wait.
duration calendar_core::until_due(const wall_timer& t, wall_time now) noexcept {
  return t.due == wall_time::max() ? duration::max() : difference(t.due, now);
}

void calendar_core::wait_for(wall_timer& t, point next) noexcept {
  t.due = next.due.value_or(wall_time::max());
  t.failed = std::move(next.failed);
  ++t.changes;
}

/// The calendar's point after `after`, see calendar_rule::next(). Calls user code.
calendar_core::point calendar_core::next_point(const wall_timer& t, wall_time after, const zone_offsets& then,
                                               const zone_offsets& by) noexcept {
  try {
    const auto next = t.when->rule_->next(after, then, by);
    return {next ? std::optional(next->at) : std::nullopt};
  } catch (...) {
    return {wall_time::min(), std::current_exception()};
  }
}

calendar_core::point calendar_core::earlier(point a, point b) noexcept {
  return !b.due || (a.due && *a.due <= *b.due) ? std::move(a) : std::move(b);
}

/// If the clock was set back far, or the zone has other offsets now, the timer gets a new point to wait for.
void calendar_core::correct(wall_timer& t, wall_time now) noexcept {
  if (!t.when) return;
  const calendar_rule& rule = *t.when->rule_;
  const zone_offsets& present = rule.zone->offsets();
  const auto is_set_back = [&] { return difference(t.counted_from, now) > far_back; };
  const auto is_wrong = [&] {
    return !t.running && t.failed == nullptr && (is_set_back() || t.found_with != &present);
  };
  std::uint64_t change = 0;
  bool has_run = false;
  wall_time from = now;
  const zone_offsets* then = &present;
  {
    const lock hold(mutex_);
    if (!is_wrong()) return;
    change = t.changes;
    has_run = t.runs != 0;
    const bool set_back = is_set_back();
    if (rule.elapsed && !set_back && t.due <= now) {  // its run is about to begin
      t.counted_with = t.found_with = &present;
      return;
    }
    if (rule.elapsed && !set_back) from = std::max(now, t.counted_from);
    if (!rule.elapsed && !set_back) {
      from = t.counted_from;
      then = t.counted_with;
    }
  }
  point next = next_point(t, from, *then, present);
  // Neither of the times at which it was scheduled, by the old rules and by the new ones, was after a run.
  if (!has_run && then != &present) next = earlier(std::move(next), next_point(t, from, present, present));
  const lock hold(mutex_);
  if (!is_wrong() || t.changes != change) return;
  if (is_set_back()) {
    t.rejected.reset();
    t.counted_from = from;
  }
  t.counted_with = then;
  t.found_with = &present;
  wait_for(t, std::move(next));
}

/// Makes the timer wait for the right time as of now. Returns false if it is not pending. Throws std::bad_alloc; the
/// timer then waits as before.
bool calendar_core::arm(wall_timer& t) {
  for (;;) {
    std::uint64_t step = 0;
    {
      const lock hold(mutex_);
      if (closed_) return false;  // the clock may no longer exist
      step = steps_;
    }
    correct(t, clock_.now());
    const wall_time now = clock_.now();  // finding another point may have taken a while
    duration delay{};
    std::uint64_t change = 0;
    timer_id id;
    {
      const lock hold(mutex_);
      delay = until_due(t, now);
      change = t.changes;
      id = t.id;
    }
    const bool moved = timers_.reschedule_after(id, delay);
    const lock hold(mutex_);
    // Another thread may have moved the timer since, from an earlier reading of the clock. So repeat until nothing has
    // changed since our own reading.
    if (steps_ != step || t.changes != change) continue;
    if (linked(t)) {
      unlink(t);
      t.seen_steps = step;
      link_last(t);
    }
    return moved;
  }
}

void calendar_core::arm_or_look_again(wall_timer& t) noexcept {
  try {
    arm(t);
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; its next run is soon, and checks the clock
  }
}

void calendar_core::stepped() {
  const auto core = shared_from_this();  // a handler of the scheduler may destroy the calendar
  std::uint64_t step = 0;
  {
    const lock hold(mutex_);
    step = ++steps_;
  }
  while (const auto t = first_to_move(step)) arm(*t);
}

/// Returns a timer that has not been moved since that step. Timers that are running or being scheduled move themselves.
std::shared_ptr<wall_timer> calendar_core::first_to_move(std::uint64_t step) {
  const lock hold(mutex_);
  while (!closed_ && first_ != nullptr && first_->seen_steps < step) {
    wall_timer& t = *first_;
    if (!t.running && t.id != timer_id{}) return t.shared_from_this();
    unlink(t);
    t.seen_steps = steps_;
    link_last(t);
  }
  return nullptr;
}

std::optional<wall_firing> calendar_core::begin(wall_timer& t, const firing& f) {
  wall_firing now;
  const wall_time shown = clock_.now();
  bool early = false;
  std::exception_ptr failed;
  correct(t, shown);
  {
    const lock hold(mutex_);
    if (t.cancelled) return std::nullopt;
    t.id = f.id;
    failed = t.failed;
    t.ended = t.ended || failed != nullptr;
    early = until_due(t, shown) > duration::zero();
    if (!early && failed == nullptr) {
      t.running = true;
      t.counted_from = shown;
      t.counted_with = t.found_with;
      now.run = ++t.runs;
      now.wall_due = t.due;
    }
  }
  if (failed != nullptr) {
    timers_.cancel(f.id);
    std::rethrow_exception(failed);
  }
  if (early) {
    arm_or_look_again(t);
    return std::nullopt;
  }
  now.id = f.id;
  now.name = f.name;
  now.lateness = difference(shown, now.wall_due);
  const time_point start = saturating_add(f.due, f.lateness);
  now.due = time_point(saturating_difference(start, time_point(now.lateness)));
  find_next(t, shown, now);
  // Finding the next point may have taken a while, and the clock may have been set back meanwhile.
  if (t.when) now.lateness = std::max(now.lateness, difference(clock_.now(), now.wall_due));
  return now;
}

/// Finds the point after `now`, a run that begins when the clock shows `shown`, and counts the points that have passed.
void calendar_core::find_next(wall_timer& t, wall_time shown, wall_firing& now) noexcept {
  point next;
  const auto next_after = [&](wall_time after) { return next_point(t, after, *t.found_with, *t.found_with); };
  const auto has_passed = [&] { return next.due && *next.due <= shown && next.failed == nullptr; };
  if (t.when) next = next_after(now.wall_due);
  for (; has_passed() && now.missed != most_missed; next = next_after(*next.due)) ++now.missed;
  if (has_passed()) next = next_after(shown);
  const bool is_last = !next.due;
  {
    const lock hold(mutex_);
    t.ended = is_last;
    wait_for(t, std::move(next));
  }
  if (!is_last) return;
  now.left = 0;
  // Like any other timer, it is not pending during its last run, which must not be interrupted by that.
  t.ending_on.store(std::this_thread::get_id(), std::memory_order_relaxed);
  timers_.cancel(now.id);
  t.ending_on.store({}, std::memory_order_relaxed);
}

void calendar_core::end(wall_timer& t) noexcept {
  {
    const lock hold(mutex_);
    t.running = false;
    // Whoever has ended it during the run was told that it was running; so is who cancels it from now on.
    t.ended = t.ended || !timers_.pending(t.id);
    if (t.ended) return;
  }
  arm_or_look_again(t);
}

void wall_timer::report_rejected(firing job, time_point now, const listener& report) noexcept {
  core->report_rejected(*this, job, now, report);
}

/// Returns std::nullopt if the clock may no longer exist.
std::optional<wall_time> calendar_core::read_clock() {
  {
    const lock hold(mutex_);
    if (closed_) return std::nullopt;
    ++readers_;
  }
  const wall_time shown = clock_.now();
  const lock hold(mutex_);
  --readers_;
  read_.notify_all();
  return shown;
}

/// A dropped run is repeated soon, and may be dropped again. Each point is reported once: `due`, and later ones as they come.
void calendar_core::report_rejected(wall_timer& t, firing run, time_point now,
                                    const rejection::listener& report) noexcept {
  const time_point submitted = saturating_add(run.due, run.lateness);
  const std::optional<wall_time> shown = read_clock();
  if (!shown) return;
  point next;
  std::optional<wall_time> last;
  const zone_offsets* by = nullptr;
  const zone_offsets* then = nullptr;  // when `last` was reported
  std::uint64_t change = 0;
  {
    const lock hold(mutex_);
    if (t.failed != nullptr) return;
    next.due = t.due;
    last = t.rejected;
    by = t.found_with;
    then = t.rejected_with;
    change = t.changes;
  }
  const auto next_after = [&](wall_time after) { return t.when ? next_point(t, after, *by, *by) : point{}; };
  const auto has_passed = [&] { return next.due && *next.due <= *shown && next.failed == nullptr; };
  if (last && t.when) {
    point after_last = next_point(t, *last, *then, *by);
    if (after_last.failed != nullptr || !after_last.due || *after_last.due > *next.due)
      next = std::move(after_last);
  } else if (last && *last >= *next.due) {
    return;
  }
  run.missed = 0;
  for (std::uint64_t n = 0; has_passed() && n <= most_missed; ++n, next = next_after(*next.due)) {
    {
      const lock hold(mutex_);
      // Another thread may have reported the point, or the timer waits for another one by now.
      if (t.running || t.changes != change || t.rejected != last) return;
      t.rejected_with = by;
      t.rejected = last = n == most_missed ? *shown : *next.due;
      run.run = t.runs + 1;
    }
    run.due = time_point(saturating_difference(now, time_point(difference(*shown, *next.due))));
    run.lateness = std::max(saturating_difference(submitted, run.due), duration::zero());
    if (!report(run)) return;
  }
}

void calendar_core::forget(wall_timer& t) noexcept {
  const lock hold(mutex_);
  if (linked(t)) unlink(t);
  for (cancel_call* c = cancel_calls_; c != nullptr; c = c->next)
    if (c->id == t.id) note_cancelled(t, *c);
}

wall_time calendar_core::due_of(const wall_timer& t) const noexcept {
  const lock hold(mutex_);
  return t.due;
}

std::optional<wall_time> calendar_core::due(timer_id id) const {
  const lock hold(mutex_);
  for (const wall_timer* t = first_; t != nullptr; t = t->next)
    if (t->id == id && !t->running && timers_.pending(id)) return t->due;
  return std::nullopt;
}

std::optional<wall_time> calendar_core::next_due() const {
  const lock hold(mutex_);
  std::optional<wall_time> earliest;
  for (const wall_timer* t = first_; t != nullptr; t = t->next)
    if (t->due != wall_time::max() && (!earliest || t->due < *earliest) && timers_.pending(t->id))
      earliest = t->due;
  return earliest;
}

void calendar_core::link_last(wall_timer& t) noexcept {
  t.previous = last_;
  t.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &t;
  last_ = &t;
}

void calendar_core::unlink(wall_timer& t) noexcept {
  (t.previous == nullptr ? first_ : t.previous->next) = t.next;
  (t.next == nullptr ? last_ : t.next->previous) = t.previous;
  t.previous = nullptr;
  t.next = nullptr;
}

}  // namespace rondo::detail
