// For users of Boost.Asio: async_wait_for(scheduler, 1s, token) waits, cancel_after(scheduler, 1s, token) gives any
// operation a deadline. Needs Boost 1.74 or later; deadlines need 1.77.
#pragma once

#include <utility>  // before Asio, because Boost 1.74 omits it

#include <atomic>
#include <concepts>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <type_traits>

#include <boost/version.hpp>
#if BOOST_VERSION < 107400
#error "rondo/asio.hpp needs Boost 1.74 or later"
#endif

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#if __has_include(<boost/asio/associated_cancellation_slot.hpp>)  // Boost 1.77
#include <boost/asio/associated_cancellation_slot.hpp>
#define RONDO_ASIO_HAS_CANCELLATION 1
#endif

#include <rondo/call_site.hpp>
#ifdef RONDO_ASIO_HAS_CANCELLATION
#include <rondo/detail/asio_deadline.hpp>
#endif
#include <rondo/detail/asio_executors.hpp>
#include <rondo/detail/canceller.hpp>
#include <rondo/errors.hpp>
#include <rondo/executor.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

namespace detail {

template <class Handler>
class asio_wait;

#ifdef RONDO_ASIO_HAS_CANCELLATION

/// The function in the handler's cancellation slot. If the handler owns the slot, the two own each other until the wait
/// ends.
template <class Handler>
struct asio_cancellation {
  std::shared_ptr<asio_wait<Handler>> wait;
  canceller timers;

  void operator()(boost::asio::cancellation_type_t type) const {
    using kind = boost::asio::cancellation_type;
    if ((type & (kind::terminal | kind::partial | kind::total)) == kind::none) return;
    wait->cancel(timers);
  }
};

template <class Handler>
void connect_slot(const std::shared_ptr<asio_wait<Handler>>& wait, const canceller& timers,
                  const Handler& handler) {
  auto slot = boost::asio::get_associated_cancellation_slot(handler);
  if (slot.is_connected()) slot.assign(asio_cancellation<Handler>{wait, timers});
}

#else

template <class Handler>
void connect_slot(const std::shared_ptr<asio_wait<Handler>>&, const canceller&, const Handler&) noexcept {}
template <class Handler>
void clear_slot(const Handler&) noexcept {}

#endif

/// The completion of a wait, submitted to the handler's executor, where it calls the handler. Before the handler is
/// called or destroyed there, the thread that submits it has left the executor.
template <class Handler>
class asio_completion {
 public:
  using allocator_type = boost::asio::associated_allocator_t<Handler>;

  explicit asio_completion(Handler&& handler)
      : handler_(std::move(handler)), work_(get_executor_of(handler_)) {}
  /// That of a wait that ends: its handler is submitted by this thread.
  asio_completion(asio_completion&& pending, std::shared_ptr<asio_wait<Handler>> wait,
                  boost::system::error_code result)
      : asio_completion(std::move(pending)) {
    wait_ = std::move(wait);
    result_ = result;
    submitter_ = std::this_thread::get_id();
  }
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): the handler's may throw
  asio_completion(asio_completion&&) = default;
  asio_completion& operator=(asio_completion&&) = delete;
  ~asio_completion() {
    if (wait_ != nullptr) let_submission_end();
  }

  const Handler& handler() const noexcept { return handler_; }
  auto where() const noexcept { return work_.get_executor(); }
  allocator_type get_allocator() const noexcept { return boost::asio::get_associated_allocator(handler_); }

  void operator()() {
    let_submission_end();
    clear_slot(handler_);
    if (wait_->cancelled()) result_ = boost::asio::error::operation_aborted;
    wait_.reset();
    std::move(handler_)(result_);
  }

 private:
  void let_submission_end() const noexcept {
    if (std::this_thread::get_id() != submitter_) wait_->let_submission_end();
  }

  Handler handler_;
  boost::asio::executor_work_guard<asio_executor_of<Handler>> work_;
  std::shared_ptr<asio_wait<Handler>>
      wait_;  // null: it is not submitted, or moved from, or the handler is called
  boost::system::error_code result_;
  std::thread::id submitter_;
};

/// One wait: shared by its task and the handler's cancellation slot, which may be destroyed in either order, and later than
/// the executor's context. It ends in exactly one way, and the caller that ends it submits the handler.
template <class Handler>
class asio_wait : public std::enable_shared_from_this<asio_wait<Handler>> {
 public:
  explicit asio_wait(Handler handler) : pending_(std::in_place, std::move(handler)) {}

  /// Schedules the task. When it returns, the wait may have ended and `s` may have been destroyed. An error becomes the
  /// result of the wait: the handler has already been moved out of the token, and few tokens can handle an exception at
  /// that point.
  template <class When>
  void begin(scheduler& s, When when) {
    const auto kept = this->shared_from_this();
    const canceller timers(s);
    connect_slot(kept, timers, pending_->handler());
    boost::system::error_code refusal = boost::asio::error::operation_aborted;
    try {
      id_ = schedule(s, when, {wake_up(kept), kept_call_site::none()});
    } catch (const stopped_error&) {
    } catch (const capacity_error&) {
      refusal = boost::asio::error::no_buffer_space;
    } catch (const std::bad_alloc&) {
      refusal = boost::asio::error::no_memory;
    }
    phase before = phase::starting;
    if (phase_.compare_exchange_strong(before, phase::waiting) || before != phase::dropped) return;
    timers.cancel(id_);  // needed if the slot ended the wait
    post(refusal);
  }

  /// Called by the slot, on the handler's executor; effective until the handler is called there.
  void cancel(const canceller& timers) {
    cancelled_ = true;
    if (end(phase::dropped) != phase::waiting) return;
    timers.cancel(id_);
    post(boost::asio::error::operation_aborted);
  }

  bool cancelled() const noexcept { return cancelled_; }
  void let_submission_end() const noexcept { submitting_.wait(1); }

 private:
  // begin() completes a wait that is dropped during `starting`.
  enum class phase : unsigned char { starting, waiting, elapsed, dropped };

  /// The task.
  class wake_up {
   public:
    explicit wake_up(std::shared_ptr<asio_wait> w) noexcept : wait_(std::move(w)) {}
    wake_up(wake_up&&) noexcept = default;
    wake_up& operator=(wake_up&&) = delete;
    ~wake_up() {
      if (wait_ != nullptr) wait_->drop();
    }
    void operator()() const { wait_->elapse(); }

   private:
    std::shared_ptr<asio_wait> wait_;  // null: moved from
  };

  static timer_id schedule(scheduler& s, duration delay, task work) {
    return s.schedule_after(delay, std::move(work));
  }
  static timer_id schedule(scheduler& s, time_point due, task work) {
    return s.schedule_at(due, std::move(work));
  }

  void elapse() {
    const phase before = end(phase::elapsed);
    if (before == phase::starting || before == phase::waiting)
      submit({}, [](const auto& where, auto work) { dispatch_without_waiting(where, std::move(work)); });
  }

  void drop() {
    if (end(phase::dropped) == phase::waiting) post(boost::asio::error::operation_aborted);
  }

  /// Sets the phase unless the wait has ended; returns the previous phase.
  phase end(phase how) noexcept {
    phase before = phase_;
    while (before == phase::starting || before == phase::waiting)
      if (phase_.compare_exchange_weak(before, how)) break;
    return before;
  }

  void post(boost::system::error_code result) {
    submit(result, [](const auto& where, auto work) { boost::asio::post(where, std::move(work)); });
  }

  /// Moves the handler and its executor out and destroys their remains here, because the task may be kept for a long time.
  template <class To>
  void submit(boost::system::error_code result, To to) {
    const submission in_progress(*this);
    const auto where = pending_->where();
    asio_completion<Handler> end(std::move(*pending_), this->shared_from_this(), result);
    pending_.reset();
    to(where, std::move(end));
  }

  class submission {
   public:
    explicit submission(asio_wait& w) noexcept : of_(w.shared_from_this()) {}
    ~submission() {
      of_->submitting_ = 0;
      of_->submitting_.notify_all();
    }
    submission(const submission&) = delete;
    submission& operator=(const submission&) = delete;

   private:
    const std::shared_ptr<asio_wait> of_;
  };

  std::optional<asio_completion<Handler>> pending_;  // none: the wait has ended
  timer_id id_;                                      // read outside begin() only in the phase `waiting`
  std::atomic<phase> phase_{phase::starting};
  std::atomic<bool> cancelled_{false};
  std::atomic<int> submitting_{1};  // 0: the thread that ended the wait has left the executor
};

/// The initiation of async_wait_for() (When is a duration) and async_wait_until() (a time_point).
template <class When>
struct asio_initiation {
  scheduler* on;
  When when;

  template <class Handler>
  void operator()(Handler&& handler) const {
    std::make_shared<asio_wait<std::decay_t<Handler>>>(std::forward<Handler>(handler))->begin(*on, when);
  }
};

}  // namespace detail

/// Waits for `d` on the clock of `s`. An asynchronous operation of Boost.Asio with the signature
/// `void(boost::system::error_code)`, for any completion token:
///
///     async_wait_for(timer, 1s, [](boost::system::error_code e) { … });
///     co_await async_wait_for(timer, 1s, boost::asio::use_awaitable);
///
/// - Success: `d` has passed since the initiation, which is this call unless the token defers it, as use_awaitable
///   (until the co_await) and deferred do. Zero and negative durations wait for the driver's next pass; the largest
///   duration waits indefinitely.
/// - operation_aborted: the handler's cancellation slot was emitted (Boost 1.77; with any cancellation type; effective
///   until the handler is called), `s` was already stopped, or the task was destroyed without running, because the
///   executor dropped the job, or because the scheduler or the list that stop() returned was destroyed.
///   no_buffer_space: `max_pending` timers are pending. no_memory: the scheduler could not allocate.
/// - The handler is called once, through its associated executor (default: system_executor), and never inside the
///   initiation. On success it is dispatched: it runs inside the task if that executor allows it, as system_executor
///   does, so it runs on the driver or where `options::run_on` runs the task. In all other cases it is posted (by
///   system_executor, to Asio's own threads). It is not called under a lock, and only needs to be movable.
/// - Until then the wait counts as outstanding work of that executor, so `io_context::run()` does not return.
/// - The executor's context must exist until the handler is submitted to it. So destroy it after the scheduler, and after
///   the list that stop() returned, if waits may be pending. Once the handler has been called, or destroyed by its
///   context, nothing of the context is used or kept any longer, even if the task is in progress, or the list or the slot
///   exists. (On the thread that submits the handler: when that has returned. On others, the handler's call waits until
///   the submitting thread has left the executor. So executors that run a function on another thread and wait for it are
///   asked not to wait, by blocking.possibly; one that waits all the same never returns.)
/// - The slot may be emitted while the scheduler is being destroyed, and afterwards, but only on the handler's executor,
///   as Asio requires.
/// - The call itself throws std::invalid_argument if `d` is NaN, and std::bad_alloc as every operation of Asio does. If
///   there is no memory to submit the handler of a wait that has elapsed, the handler is destroyed without being
///   called, and `on_error` receives the exception. If there is none for a wait whose task is destroyed,
///   std::terminate() is called.
/// - O(1), and one allocation in addition to the scheduler's; submitting the handler uses its associated allocator.
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code)) CompletionToken>
auto async_wait_for(scheduler& s, any_duration d, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
      detail::asio_initiation<duration>{&s, d}, token);
}

/// As async_wait_for(), but waits until `t`; a time in the past waits for the driver's next pass.
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code)) CompletionToken>
auto async_wait_until(scheduler& s, any_time_point t, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
      detail::asio_initiation<time_point>{&s, t}, token);
}

#ifdef RONDO_ASIO_HAS_CANCELLATION

/// Gives an operation of Asio a deadline: a completion token, made from any other one, for any operation. If the
/// operation has not ended within `d` on the clock of `s`, it is cancelled. Boost 1.77 or later.
///
///     co_await socket.async_read_some(buffer, cancel_after(timer, 500ms, boost::asio::use_awaitable));
///     boost::asio::async_read(socket, buffer, cancel_after(timer, 500ms, [](error_code e, std::size_t n) { … }));
///
/// - The time counts from the initiation, which is the call of the operation unless `token` defers it. The operation
///   ends once, with its own result: whatever it says, even if that is success and the time has come meanwhile. When it
///   is cancelled, most say operation_aborted; async_read() also says how much it has read. What cannot be cancelled
///   (async_resolve() cannot be) goes on.
/// - It is cancelled with cancellation_type::terminal, by a function that is posted to the operation's own executor and
///   dispatched by the handler's, as the handler itself is. Zero, negative and past times cancel at the driver's next
///   pass; the largest never. When the handler is called, or destroyed with its context, no timer is left.
/// - It is also cancelled if the time can no longer come: `s` was already stopped, `max_pending` timers are pending, or
///   the task was destroyed without running (see async_wait_for()).
/// - The executor, allocator and cancellation slot of `token` are passed on. An emission of that slot reaches the
///   operation with its own type. So bind them to `token` itself: bind_executor(), as_tuple() and so on belong inside.
/// - Threads: Asio's own rule is that a slot is emitted on a thread that runs the operation's handlers. This holds if
///   the handler's executor is a strand or has a context with one thread. On a pool without a strand, operations of
///   one step are safe too (a socket's async_read_some(), a timer's async_wait()), but composed ones are not, and a slot
///   that `token` brings must not be emitted there as the operation ends.
/// - Until the handler is called, do not destroy the operation's object (a socket, a timer), but close() or cancel() it:
///   the cancellation may be on its way to it. Asio's own slots ask for the same.
/// - `s` must outlive the initiation; afterwards it may be destroyed. Once the operation has ended (the handler is called,
///   or destroyed), nothing of its contexts is used or kept any longer, even if the task is in progress, or a list that
///   stop() returned or the slot of `token` exists. A context may also be destroyed before its operations have ended, if
///   none of them is cancelled meanwhile: no deadline comes, and neither the scheduler nor such a list is destroyed.
/// - The end waits while another thread submits the cancellation or carries it out; a lock is held meanwhile, but never
///   while the scheduler's driver waits for it. So the function that cancels the operation, and a handler that it calls at
///   once, must not wait for other threads that end or cancel this operation. (The end of a deadline inside a deadline does:
///   without a strand, an operation that has both must not end inside its cancellation, as no socket or timer does.) Nor may an
///   executor wait for what it runs on another thread (see async_wait_for()).
/// - The call throws std::invalid_argument if `d` is NaN. The initiation throws what the operation's throws, and
///   std::bad_alloc if there is no memory for the timer. If there is none to post the cancellation, `on_error` receives
///   the exception, or, if the task was destroyed without running, std::terminate() is called.
/// - O(1), and one allocation in addition to those of the scheduler and the operation: none on a thread that runs a
///   context, if that can reuse the memory of an earlier operation (Boost 1.79).
template <class CompletionToken>
auto cancel_after(scheduler& s, any_duration d, CompletionToken&& token) {
  return detail::asio_deadline_token<duration, std::decay_t<CompletionToken>>{
      &s, d, std::forward<CompletionToken>(token)};
}

/// As cancel_after(), but the deadline is `t`.
template <class CompletionToken>
auto cancel_at(scheduler& s, any_time_point t, CompletionToken&& token) {
  return detail::asio_deadline_token<time_point, std::decay_t<CompletionToken>>{
      &s, t, std::forward<CompletionToken>(token)};
}

#endif

/// Returns an executor that posts to an executor of Asio, for example a strand, of which it keeps a copy:
///
///     rondo::timer timer({.run_on = post_to(pool)});
///
/// When a context is destroyed, its jobs are dropped; they count as rejected. While it is stopped and not run again, they wait in
/// it: their one-shots stay pending, and drain() waits for them.
template <class Executor>
executor post_to(const Executor& where) {
  return [where](job j) { boost::asio::post(where, std::move(j)); };
}

/// Overload for an execution context: a thread_pool, an io_context. It must outlive the scheduler.
template <std::derived_from<boost::asio::execution_context> Context>
executor post_to(Context& where) {
  return post_to(where.get_executor());
}

}  // namespace rondo
