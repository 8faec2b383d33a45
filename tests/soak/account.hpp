// The program's own account of one scheduler, to be compared with the scheduler's statistics.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include <rondo/scheduler.hpp>

#include "invariants.hpp"

namespace soak {

using counter = std::atomic<std::uint64_t>;
using clock = std::chrono::steady_clock;

struct account {
  counter made{0}, destroyed{0};     // callables
  counter scheduled{0};              // timers, as reported by the calls that scheduled them
  counter unsure{0};                 // further calls whose effect the program cannot know
  counter ran{0};                    // runs
  counter threw{0};                  // tasks, and executors
  counter told{0};                   // calls of on_error
  counter told_of_rejected{0};       // calls of on_rejected
  counter dropped{0};                // jobs
  counter cancelled{0};              // timers, as reported by cancel()
  counter refused{0};                // scheduling calls refused at the limit, or after stop()
  counter sleeping{0};               // coroutines
  std::atomic<bool> ending{false};   // stop() or drain() may have begun
  std::atomic<bool> stopped{false};  // stop() has returned
};

/// One timer, shared by its callable and the code that scheduled it.
struct life {
  std::atomic<clock::rep> earliest{0};  // no run is due before this
  std::atomic<int> running{0};
  std::atomic<bool> has_begun{false};  // a run has begun
  std::atomic<bool> ruled_out{false};  // a call has reported that it will not run again
  std::atomic<bool> destroyed{false};  // the callable is destroyed

  explicit life(rondo::time_point e) noexcept : earliest(e.time_since_epoch().count()) {}
  bool may_have_begun() const noexcept { return clock::now().time_since_epoch().count() >= earliest; }
};

/// The callable of a timer. Keeps the account, checks the invariants of each run, and then calls run(const firing&) of
/// `Subject`, which derives from life.
template <class Subject>
class watched {
 public:
  watched(account& a, std::shared_ptr<Subject> s) noexcept : account_(&a), subject_(std::move(s)) {
    ++a.made;
  }
  watched(watched&&) noexcept = default;
  watched& operator=(watched&&) = delete;
  ~watched() {
    if (subject_ == nullptr) return;  // moved from
    subject_->destroyed = true;
    ++account_->destroyed;
  }

  void operator()(const rondo::firing& f) {
    const auto start = clock::now();
    ++account_->ran;
    invariants& all = always();
    all.check(invariant::never_early, start >= f.due, "by", (f.due - start).count(), "ns");
    all.check(invariant::asked_deadline, f.due.time_since_epoch().count() >= subject_->earliest);
    all.check(invariant::lateness_true, f.lateness.count() >= 0 && f.lateness <= start - f.due);
    all.check(invariant::cancelled_never_runs, !subject_->ruled_out, "run", f.run);
    all.check(invariant::nothing_after_stop, !account_->stopped);
    subject_->has_begun = true;
    const in_progress here(*subject_);
    subject_->run(f);
  }

 private:
  struct in_progress {
    explicit in_progress(life& l) noexcept : of(l) { ++of.running; }
    ~in_progress() { --of.running; }
    in_progress(const in_progress&) = delete;
    in_progress& operator=(const in_progress&) = delete;
    life& of;
  };

  account* account_;
  std::shared_ptr<Subject> subject_;
};

/// Calls `schedule`, which schedules a timer, and records the result. Returns false if the timer was refused.
template <class Schedule>
bool booked(account& a, Schedule&& schedule) {
  try {
    schedule();
    ++a.scheduled;
    return true;
  } catch (const rondo::capacity_error&) {
  } catch (const rondo::stopped_error&) {
  }
  ++a.refused;
  return false;
}

/// Records the result of a cancel, and checks that it is true. `waited` is set for cancel_and_wait().
inline void check_cancel(account& a, life& l, rondo::cancel_result said, bool waited = false) {
  const bool is_cancelled = said == rondo::cancel_result::cancelled;
  if (is_cancelled) {
    l.ruled_out = true;
    ++a.cancelled;
    always().check(invariant::cancelled_never_runs, l.running == 0);
  }
  // (A timer that stop() hands back is gone too, but its callable is not destroyed.)
  if (is_cancelled || (waited && !a.ending)) always().check(invariant::cancelled_destroyed, l.destroyed);
  if (waited) always().check(invariant::waited_for, l.running == 0);
}

}  // namespace soak
