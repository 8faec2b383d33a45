// co_await sleep_for(scheduler, 1s): coroutines that sleep on a scheduler.
#pragma once

#include <rondo/export.hpp>

#ifndef __cpp_impl_coroutine
#error "rondo/coroutine.hpp needs coroutines, and this compiler has none or has not switched them on"
#endif

#include <coroutine>
#include <memory>
#include <optional>
#include <utility>
#include <version>

#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include <rondo/detail/canceller.hpp>
#include <rondo/detail/sync.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

namespace detail {

/// One wait of one coroutine: shared by the coroutine, its task and its stop_callback, which may be destroyed in any
/// order. It ends in exactly one way, and the caller that ends it resumes the coroutine, if it is to be resumed.
class RONDO_EXPORT wait {
 public:
  wait(scheduler& s, std::coroutine_handle<> waiting) noexcept
      : scheduler_(&s), timers_(s), waiting_(waiting) {}

  /// For await_suspend: schedules the task. Returns false if the coroutine continues at once. When it returns, the
  /// coroutine may have been destroyed.
  static bool begin(const std::shared_ptr<wait>&, duration delay);
  static bool begin(const std::shared_ptr<wait>&, time_point due);

  /// Asks the wait to stop: cancels the timer and resumes the coroutine, on this thread, unless the wait has ended.
  static void ask(const std::shared_ptr<wait>&) noexcept;
  /// For when the coroutine is being destroyed: cancels the timer, unless the wait has ended.
  void abandon() noexcept;
  /// After the end: returns true if it slept to the end, false if it was asked to stop. Throws stopped_error if it was
  /// dropped.
  bool slept() const;

 private:
  class wake_up;  // the task

  // begin() handles an end that occurs during `starting`, except the firing, whose task resumes the coroutine.
  enum class phase : unsigned char { starting, suspended, slept, asked, dropped, abandoned };

  phase end(phase how) noexcept;
  bool suspend() noexcept;
  void cancel_timer() const;

  scheduler* const scheduler_;  // only for begin(): when the wait ends, it may have been destroyed
  const canceller timers_;
  const std::coroutine_handle<> waiting_;
  timer_id id_;  // written before it is suspended
  header_sync::atomic<phase> phase_{phase::starting};
};

/// The awaitable of sleep_for() (When is a duration) and sleep_until() (a time_point). It may be moved before it is
/// awaited, and awaited again: a duration then counts from the new co_await.
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

  // Not inline: older versions of clang place the variables of inlined calls in the coroutine's frame, which another
  // thread may have freed by then (llvm-project#56301).
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

/// The stop_callback's function.
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
    // Before begin(): once the task is scheduled, this object may have been destroyed.
    asking_.emplace(token_, asker{wait_});
    return wait::begin(wait_, when_);
  }

  bool await_resume() {
    asking_.reset();  // now, not at the end of the full expression, which the coroutine may reach much later
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

/// `co_await sleep_for(s, d)` suspends the coroutine for `d`, counted from the co_await on the clock of `s`. Zero and
/// negative durations wait for the driver's next pass; the largest duration waits indefinitely.
///
/// - The coroutine resumes inside a task of `s`: on its driver, or where its executor runs the job. (If that is another
///   thread, it may resume before the call that ran the coroutine up to the co_await has returned.)
/// - With g++ 15 and 16, a coroutine that another thread may resume, and that destroys itself at its end, must not
///   begin inside the call that creates it: its initial_suspend() returns std::suspend_always, and it is resumed once
///   that call has returned. (These compilers count references to the frame, but not atomically, and the call gives up
///   its own after the coroutine has suspended. If the coroutine ends on another thread at that moment, its frame may
///   leak.) Coroutines that begin when they are awaited, as Asio's, are safe, and so are those that their
///   owner destroys. clang and older versions of g++ do not need this.
/// - NaN throws std::invalid_argument from sleep_for() itself. What `scheduler::schedule_after` throws (stopped_error,
///   capacity_error, std::bad_alloc) is thrown from the co_await expression, and nothing is left scheduled.
/// - Destroying the suspended coroutine cancels the timer. Any thread may do so, but not while another thread resumes
///   it. `s` may already have been destroyed.
/// - If its task is destroyed without having run (because the executor dropped the job, or the scheduler or the list
///   that stop() returned was destroyed), the coroutine resumes with stopped_error on the thread that destroys the
///   task, or on its own thread if it has not completely suspended by then. If a task of that list is run by hand, the
///   coroutine resumes as after a full sleep.
/// - An exception that the coroutine's promise lets escape is reported to `on_error` if a running task resumed the
///   coroutine; otherwise (a task that is destroyed, or request_stop()) std::terminate() is called.
/// - O(1), and one allocation of about 80 bytes in addition to the scheduler's.
inline detail::sleep<duration> sleep_for(scheduler& s, any_duration d) { return {s, d}; }

/// As sleep_for(), but sleeps until `t`; a time in the past waits for the driver's next pass.
inline detail::sleep<time_point> sleep_until(scheduler& s, any_time_point t) { return {s, t}; }

#ifdef __cpp_lib_jthread

///@{
/// As above, with a stop_token. The result is true if the coroutine slept to the end, false if it was asked to stop.
/// Stopping cancels the timer, and the coroutine resumes inside request_stop(), on the thread that calls it. If the
/// stop was already requested, the coroutine continues at once, and nothing is scheduled. If both a stop and the firing
/// happen, only the first of them resumes it. Any thread may request the stop at any time, even while `s` is being
/// destroyed, and afterwards.
///
/// (g++ 12.2 miscompiles a co_await in the condition of an if or a loop, whatever is awaited, in a coroutine without
/// local variables. To avoid this, store the result in a local variable.)
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
