#include <rondo/manual_timer.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "drivers/driver_lock.hpp"
#include "scheduler/core.hpp"

namespace rondo {
namespace detail {
namespace {

constexpr int passes_at_one_instant = 1'000'000;

void refuse_negative(duration d) {
  if (d < duration::zero())
    throw std::invalid_argument("rondo: time does not go back: the duration is " + std::to_string(d.count()) +
                                " ns");
}

}  // namespace

/// A core on virtual time, driven by the user's calls.
class manual_core final : public core {
 public:
  manual_core(const options& o, time_point start) : core(o, start, kind_of_time::virtual_time), now_(start) {}

  time_point now() const noexcept override { return now_; }

  std::size_t advance(duration d) {
    refuse_negative(d);
    refuse_inside("advance");
    const std::lock_guard driving(driver_lock_);
    const time_point end = saturating_add(now(), d);
    const std::size_t begun = run_up_to(end);
    move_to(end);
    return begun;
  }

  std::size_t advance_to_next() {
    refuse_inside("advance_to_next");
    const std::lock_guard driving(driver_lock_);
    const auto due = next_due();
    if (!due) return 0;
    move_to(*due);
    return run_at_this_instant(now());
  }

  void elapse(duration d) {
    refuse_negative(d);
    time_point old = now_;
    while (!now_.compare_exchange_weak(old, saturating_add(old, d))) {
    }
  }

 private:
  void next_due_moved_earlier() noexcept override { endings().wake(); }

  bool pass_time_until_drained(duration limit) override {
    const time_point end = saturating_add(now(), limit);
    const time_point real_end = saturating_add(scheduler::clock::now(), limit);
    for (;;) {
      {
        const std::lock_guard driving(driver_lock_);  // released during waits, so others may advance
        run_up_to(end);
      }
      if (drained()) return true;
      const auto due = next_due();
      if (due && *due > end) break;
      // All that is pending now waits for jobs on other threads.
      const auto is_over = [this] { return drained() || next_due(); };
      if (!due && !endings().look_until(scheduler::clock::now(), real_end, is_over)) break;
    }
    move_to(end);
    return false;
  }

  /// Moves from one due tick to the next and runs what is due there.
  std::size_t run_up_to(time_point end) {
    std::size_t begun = run_at_this_instant(end);
    while (const auto due = next_due()) {
      if (*due > end) break;
      move_to(*due);
      begun += run_at_this_instant(end);
    }
    return begun;
  }

  /// Never moves time back: a task may have let time pass beyond `t`.
  void move_to(time_point t) noexcept {
    time_point old = now_;
    while (old < t && !now_.compare_exchange_weak(old, t)) {
    }
  }

  /// Runs passes until nothing is due at the current time, or at `end` if that is earlier.
  std::size_t run_at_this_instant(time_point end) {
    std::size_t begun = 0;
    int passes = 0;
    time_point instant = now();
    for (;;) {
      const auto due = next_due();
      if (!due || *due > std::min(end, now())) return begun;
      if (now() != instant) {  // a task has let time pass
        instant = now();
        passes = 0;
      }
      if (++passes > passes_at_one_instant)
        throw std::logic_error("rondo: a chain of zero delays went on for " +
                               std::to_string(passes_at_one_instant) + " passes at one instant");
      begun += run_pass(end, unlimited, woken::advanced);
    }
  }

  std::atomic<time_point> now_;
  driver_lock driver_lock_;
};

}  // namespace detail

manual_timer::manual_timer(options o, any_time_point start)
    : manual_timer(std::make_shared<detail::manual_core>(o, start)) {}

manual_timer::manual_timer(std::shared_ptr<detail::manual_core> core)
    : scheduler(core), core_(std::move(core)) {}

manual_timer::~manual_timer() = default;

// A task may destroy the timer that is being advanced: `core` keeps the core until the call is over.

std::size_t manual_timer::advance(any_duration d) {
  [[maybe_unused]] const detail::checked_call checked{*core_, "advance()"};
  const auto core = core_;
  return core->advance(d);
}

std::size_t manual_timer::advance_to_next() {
  [[maybe_unused]] const detail::checked_call checked{*core_, "advance_to_next()"};
  const auto core = core_;
  return core->advance_to_next();
}

void manual_timer::elapse(any_duration d) { core_->elapse(d); }

}  // namespace rondo
