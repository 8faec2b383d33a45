// co_await sleep_for(scheduler, 1s): coroutines that sleep on a scheduler.
#pragma once

#include <rondo/export.hpp>

#ifndef __cpp_impl_coroutine
#error "rondo/coroutine.hpp needs coroutines, and this compiler has none or has not switched them on"
#endif

#include <atomic>
#include <coroutine>
#include <memory>
#include <optional>
#include <utility>
#include <version>

#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include <rondo/detail/canceller.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

namespace detail {

/// One wait of one coroutine: what the coroutine, its task and its stop_callback share, so that any of them
/// may go first. It ends in one way, and whoever ends it sees to the coroutine.
class RONDO_EXPORT wait {
 public:
  wait(scheduler& s, std::coroutine_handle<> waiting) noexcept
      : scheduler_(&s), timers_(s), waiting_(waiting) {}

  /// From await_suspend: schedules the task. False if the coroutine is to go on at once. The coroutine may be
  /// gone when it returns.
  static bool begin(const std::shared_ptr<wait>&, duration delay);
  static bool begin(const std::shared_ptr<wait>&, time_point due);

  /// The wait is asked to stop: cancels, and resumes the coroutine, here.
  static void ask(const std::shared_ptr<wait>&) noexcept;
  /// Nobody waits any more: cancels, unless it has ended.
  void abandon() noexcept;
  /// Once it has ended: whether it did so in time; false if it was asked to stop. Dropped: stopped_error.
  bool slept() const;

 private:
  class wake_up;  // the task

  // An end that comes while it is starting is left to begin(), but for the firing.
  enum class phase : unsigned char { starting, suspended, slept, asked, dropped, abandoned };

  phase end(phase how) noexcept;
  bool suspend() noexcept;

  scheduler* const scheduler_;  // for begin() alone: it may be gone when the wait ends
  const canceller timers_;
  const std::coroutine_handle<> waiting_;
  timer_id id_;  // written before it is suspended
  std::atomic<phase> phase_{phase::starting};
};

/// What sleep_for() (When is a duration) and sleep_until() (a time_point) give to co_await. It may be moved
/// until it is awaited, and awaited again: a duration then counts anew.
template <class When>
class [[nodiscard]] sleep {
 public:
  sleep(scheduler& s, When when) noexcept : scheduler_(&s), when_(when) {}
  sleep(sleep&&) noexcept = default;
  sleep& operator=(sleep&&) = delete;
  ~sleep() {
    if (wait_ != nullptr) wait_->abandon();
  }

  bool await_ready() const noexcept { return false; }

  // Never inline: older clangs keep what is inlined here in the coroutine's frame, which another thread may
  // have resumed and freed meanwhile (llvm-project#56301).
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> waiting) {
    wait_ = std::make_shared<wait>(*scheduler_, waiting);
    return wait::begin(wait_, when_);
  }

  void await_resume() { static_cast<void>(std::exchange(wait_, nullptr)->slept()); }

 private:
  scheduler* scheduler_;
  When when_;
  std::shared_ptr<wait> wait_;
};

#ifdef __cpp_lib_jthread

/// What asks a wait to stop.
struct asker {
  std::shared_ptr<wait> asked;
  void operator()() const noexcept { wait::ask(asked); }
};

/// The same as sleep with a stop_token.
template <class When>
class [[nodiscard]] stoppable_sleep {
 public:
  stoppable_sleep(scheduler& s, When when, std::stop_token token) noexcept
      : scheduler_(&s), when_(when), token_(std::move(token)) {}
  stoppable_sleep(stoppable_sleep&& other) noexcept
      : stoppable_sleep(*other.scheduler_, other.when_, std::move(other.token_)) {}
  stoppable_sleep& operator=(stoppable_sleep&&) = delete;
  ~stoppable_sleep() {
    if (wait_ != nullptr) wait_->abandon();
  }

  bool await_ready() const noexcept { return false; }

  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> waiting) {  // see sleep
    wait_ = std::make_shared<wait>(*scheduler_, waiting);
    // First of all: once the task is scheduled this object may be gone.
    asking_.emplace(token_, asker{wait_});
    return wait::begin(wait_, when_);
  }

  bool await_resume() {
    asking_.reset();  // here, not wherever the coroutine has got to at the end of the whole expression
    return std::exchange(wait_, nullptr)->slept();
  }

 private:
  scheduler* scheduler_;
  When when_;
  std::stop_token token_;
  std::shared_ptr<wait> wait_;
  std::optional<std::stop_callback<asker>> asking_;
};

#endif

}  // namespace detail

/// `co_await sleep_for(s, d)` suspends the coroutine for `d`, counted from the co_await by the clock of `s`.
/// Zero and negative durations wait for the driver's next pass, the largest one for ever.
///
/// - It goes on inside a task of `s`: on its driver, or wherever its executor runs the job. (On another thread
///   that may be before the call that ran the coroutine up to the co_await has returned.)
/// - Any duration is taken, and converted, as by `scheduler::schedule_after`; what that throws (stopped_error,
///   capacity_error, std::bad_alloc; std::invalid_argument for NaN) comes out of the co_await expression, and
///   nothing is left scheduled.
/// - Destroying the suspended coroutine cancels the timer. Any thread may do so, but not while another resumes
///   it. `s` may be gone by then.
/// - If its task is destroyed without having run (the executor dropped the job, the scheduler was destroyed,
///   or the list that stop() gave), it goes on with stopped_error, on the thread that destroys the task; on its
///   own if that comes before it has quite suspended. A task of that list that is run by hand resumes it as
///   slept to the end.
/// - An exception that the promise lets out of the coroutine goes, from a task that runs, to `on_error`; from a
///   task that is destroyed, or from request_stop(), to std::terminate().
/// - O(1), and one allocation of some 80 bytes beside those of the scheduler.
inline detail::sleep<duration> sleep_for(scheduler& s, any_duration d) { return {s, d}; }

/// The same as sleep_for() until `t`; a time that is past waits for the driver's next pass.
inline detail::sleep<time_point> sleep_until(scheduler& s, any_time_point t) { return {s, t}; }

#ifdef __cpp_lib_jthread

///@{
/// The same with a stop_token, giving true if it slept to the end and false if it was asked to stop. Then the
/// timer is cancelled, and the coroutine goes on inside request_stop(), on the thread that calls it; if it was asked before, it
/// goes on at once, and nothing is scheduled. Of stop and firing exactly one resumes it, whichever is first.
/// Any thread may ask, at any time: also while `s` is being destroyed, and afterwards.
///
/// (g++ 12.2 miscompiles a co_await in the condition of an if or a loop, whatever is awaited, in a coroutine
/// without any local variable: keep the result in one.)
inline detail::stoppable_sleep<duration> sleep_for(scheduler& s, any_duration d, std::stop_token token) {
  return {s, d, std::move(token)};
}
inline detail::stoppable_sleep<time_point> sleep_until(scheduler& s, any_time_point t,
                                                       std::stop_token token) {
  return {s, t, std::move(token)};
}
///@}

#endif

}  // namespace rondo
