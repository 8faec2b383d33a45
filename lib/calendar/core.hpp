// Timers of a wall clock, each on a periodic timer of a scheduler.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <rondo/calendar.hpp>
#include <rondo/timer_scope.hpp>

#include "calendar/zone_offsets.hpp"

namespace rondo::detail {

/// A timer of the wall clock. The core's mutex guards it, except for `core` and for `work`, which does not change while
/// it runs.
struct wall_timer final : std::enable_shared_from_this<wall_timer>, rejection {
  wall_timer(std::shared_ptr<calendar_core> c, task t, std::optional<calendar> w)
      : core(std::move(c)), work(std::move(t)), when(std::move(w)) {}

  void report_rejected(firing job, time_point now, const listener& report) noexcept override;

  const std::shared_ptr<calendar_core> core;
  task work;
  const std::optional<calendar> when;  // none for a one-shot timer
  timer_id id;                         // none until the call that schedules it ends
  wall_time due = wall_time::max();
  wall_time counted_from = wall_time::min();   // `due` is the first point after it, or after a run's
  const zone_offsets* counted_with = nullptr;  // what the calendar's zone had then
  const zone_offsets* found_with = nullptr;    // what `due` was found with
  std::uint64_t changes = 0;                   // of `due`
  // The points up to this one that had to be reported as rejected were reported.
  std::optional<wall_time> rejected;
  const zone_offsets* rejected_with = nullptr;  // what the zone had then
  std::uint64_t seen_steps = 0;                 // the last step of the clock that its wait takes into account
  std::uint64_t runs = 0;
  bool running = false;
  bool ended = false;      // no run follows
  bool cancelled = false;  // during a run that only checks the clock
  // The thread that ends it, because no run follows the one that is about to begin on that thread.
  std::atomic<std::thread::id> ending_on{};
  // What finding the next point has thrown: the timer's next run ends it, and throws this.
  std::exception_ptr failed;
  wall_timer* previous = nullptr;  // in the list of all; both are null if it is in no list, or alone
  wall_timer* next = nullptr;
};

/// Each timer waits on the scheduler for the time that the wall clock has left until the deadline. The wait is
/// corrected when the clock is set. A timer that fires too early because the notice of a step is late waits again.
///
/// Each timer is an after_completion() timer. Every step and every run moves its next run to the right time. If there
/// is no memory for that, no run is lost: the timer fires, and checks the clock, a second later.
class calendar_core : public std::enable_shared_from_this<calendar_core> {
 public:
  calendar_core(scheduler& s, wall_clock& clock) : clock_(clock), timers_(s), looks_(s) {}

  /// Completes the construction.
  void follow_clock();
  void close();

  timer_id schedule(std::optional<calendar> when, wall_time due, task work, timer_options* with);

  timer_scope& timers() noexcept { return timers_; }
  cancel_result cancel(timer_id id);
  std::optional<wall_time> due(timer_id id) const;
  std::optional<wall_time> next_due() const;

  /// Called when the clock was set, or the zone data have changed. Throws std::bad_alloc; then not all timers have been moved.
  void stepped();

  /// Called by a timer's callable. If the timer is not due, begin() makes it wait again and returns std::nullopt. If its
  /// calendar has failed, begin() ends it and throws what the calendar threw.
  std::optional<wall_firing> begin(wall_timer& t, const firing& f);
  void end(wall_timer& t) noexcept;
  /// As rejection::report_rejected().
  void report_rejected(wall_timer& t, firing run, time_point now, const rejection::listener& report) noexcept;
  void forget(wall_timer& t) noexcept;
  wall_time due_of(const wall_timer& t) const noexcept;

 private:
  using lock = std::lock_guard<std::mutex>;

  /// A point to wait for; none if there are no more. If finding it has failed, the timer is due at once.
  struct point {
    std::optional<wall_time> due;
    std::exception_ptr failed = {};
  };

  /// A call of cancel() in progress.
  struct cancel_call {
    const timer_id id;
    std::optional<cancel_result> after_check = {};  // of the timer, if it has ended in a check of the clock
    cancel_call* next = nullptr;
  };

  std::optional<wall_time> read_clock();
  static point next_point(const wall_timer& t, wall_time after, const zone_offsets& then,
                          const zone_offsets& by) noexcept;
  static point earlier(point a, point b) noexcept;
  void correct(wall_timer& t, wall_time now) noexcept;
  void find_next(wall_timer& t, wall_time shown, wall_firing& now) noexcept;
  void look(const firing& f);
  bool arm(wall_timer& t);
  void arm_or_look_again(wall_timer& t) noexcept;
  void settle(timer_id id, wall_timer& t, std::uint64_t steps);
  std::uint64_t steps() const;
  std::shared_ptr<wall_timer> first_to_move(std::uint64_t step);

  // With the mutex held.
  static duration until_due(const wall_timer& t, wall_time now) noexcept;
  static void wait_for(wall_timer& t, point next) noexcept;
  static void note_cancelled(wall_timer& t, cancel_call& by) noexcept;
  void link_last(wall_timer& t) noexcept;
  void unlink(wall_timer& t) noexcept;
  bool linked(const wall_timer& t) const noexcept { return t.previous != nullptr || first_ == &t; }

  wall_clock& clock_;
  timer_scope timers_;
  timer_scope looks_;  // checks a clock that does not report its steps
  std::shared_ptr<void> notice_;
  std::shared_ptr<void> zone_notice_;
  std::optional<duration> offset_;  // of the wall clock from the scheduler's; used only by look()

  mutable std::mutex mutex_;
  // Of the clock, on threads for which close() would not wait otherwise.
  std::size_t readers_ = 0;
  std::condition_variable read_;
  std::uint64_t steps_ = 0;
  wall_timer* first_ = nullptr;  // the list is in the order of seen_steps
  wall_timer* last_ = nullptr;
  cancel_call* cancel_calls_ = nullptr;
  bool closed_ = false;
};

}  // namespace rondo::detail
