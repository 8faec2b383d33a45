// The completion token of cancel_after() and cancel_at(): an operation of Asio, and a timer that cancels it.
#pragma once

#include <utility>  // before Asio, because Boost 1.74 omits it

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#if __has_include(<boost/asio/recycling_allocator.hpp>)
#include <boost/asio/recycling_allocator.hpp>
#endif

#include <rondo/call_site.hpp>
#include <rondo/detail/asio_executors.hpp>
#include <rondo/detail/canceller.hpp>
#include <rondo/errors.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::detail {

/// Memory that Asio keeps for a thread's next operation, as it does for the operations themselves (Boost 1.79).
#if __has_include(<boost/asio/recycling_allocator.hpp>)
using asio_deadline_memory = boost::asio::recycling_allocator<void>;
#else
using asio_deadline_memory = std::allocator<void>;
#endif

/// What an operation, its timer and the slot of the user's handler share. The operation's own slot belongs to the signal
/// here. Executor is the handler's, Own the operation's (or else the handler's, too).
///
/// The timer's task and the user's slot may keep this for longer than the contexts exist. So the operation's end destroys
/// all that belongs to a context, after it has waited for threads that use it.
template <class Executor, class Own>
class asio_deadline {
 public:
  using cancellation_type = boost::asio::cancellation_type_t;
  using pointer = std::shared_ptr<asio_deadline>;

  asio_deadline(const scheduler& s, Executor&& where, Own&& own)
      : timers_(s), executors_({std::move(where), std::move(own)}) {}

  boost::asio::cancellation_slot slot() noexcept { return signal_.slot(); }

  /// Sets the timer, then calls `start`, which begins the operation. When it returns, the operation may have ended and
  /// `s` may have been destroyed.
  template <class When, class Start>
  static void begin(const pointer& self, scheduler& s, When when, Start start) {
    self->set_timer(expiry(self), s, when);
    start();
    const auto early = static_cast<cancellation_type>(self->state_.fetch_or(begun) / first_type);
    if (early != cancellation_type::none) post_cancel(self, early);
  }

  /// Cancels the operation unless it has ended. Called on the handler's executor.
  void cancel(cancellation_type how) {
    if (can_be_cancelled(how))
      unless_ended(emission_lock_, emitted, [this, how] { emission(*this).emit(how); });
  }

  /// The operation has ended, or is being destroyed. When this returns, nothing that belongs to its contexts is used on
  /// another thread, or kept here, and there is no timer.
  void end() {
    const std::uint64_t before = state_.fetch_or(ended);
    if ((before & emitted) != 0) const std::lock_guard wait(emission_lock_);
    if ((before & posted) != 0) const std::lock_guard wait(posting_lock_);
    if (!emitting_) signal_.slot().clear();
    executors_.reset();
    timers_.cancel(id_);
  }

 private:
  // The bits of the state. From first_type on: how to cancel the operation as soon as it has begun.
  static constexpr std::uint64_t begun = 1, ended = 2, emitted = 4, posted = 8;
  static constexpr std::uint64_t first_type = std::uint64_t{1} << 32;

  struct executors {
    Executor where;
    Own own;
  };

  /// The task. If it is destroyed unrun, the time can no longer come, so the operation is cancelled as well.
  class expiry {
   public:
    explicit expiry(const pointer& d) noexcept : deadline_(d) {}
    expiry(expiry&&) noexcept = default;
    expiry& operator=(expiry&&) = delete;
    ~expiry() {
      if (deadline_ != nullptr) expire(deadline_);
    }
    void operator()() {
      if (deadline_ != nullptr) expire(std::exchange(deadline_, nullptr));
    }

   private:
    pointer deadline_;  // null: moved from, or has run
  };

  /// Emits the signal. If the operation ends meanwhile, its function in the slot is destroyed when that has returned.
  class emission {
   public:
    explicit emission(asio_deadline& d) noexcept : of_(d), outer_(std::exchange(d.emitting_, true)) {}
    ~emission() {
      of_.emitting_ = outer_;
      if (!outer_ && (of_.state_ & ended) != 0) of_.signal_.slot().clear();
    }
    emission(const emission&) = delete;
    emission& operator=(const emission&) = delete;
    void emit(cancellation_type how) { of_.signal_.emit(how); }

   private:
    asio_deadline& of_;
    const bool outer_;
  };

  /// If it throws, nothing has begun.
  template <class When>
  void set_timer(expiry expires, scheduler& s, When when) {
    try {
      task work{std::move(expires), kept_call_site::none()};
      if constexpr (std::is_same_v<When, duration>)
        id_ = s.schedule_after(when, std::move(work));
      else
        id_ = s.schedule_at(when, std::move(work));
    } catch (const stopped_error&) {  // the task has been destroyed unrun
    } catch (const capacity_error&) {
    }
  }

  /// Most tasks are destroyed because the operation has ended.
  static void expire(const pointer& self) {
    if (self->can_be_cancelled(cancellation_type::terminal)) post_cancel(self, cancellation_type::terminal);
  }

  /// Whether the operation has begun and has not ended. While it is being begun on another thread, its slot cannot be
  /// used: then it is cancelled as soon as it has begun.
  bool can_be_cancelled(cancellation_type how) {
    std::uint64_t before = state_;
    do
      if ((before & (begun | ended)) != 0) return (before & ended) == 0;
    while (!state_.compare_exchange_weak(before, before | static_cast<std::uint64_t>(how) * first_type));
    return false;
  }

  /// Calls `use`, which uses what belongs to the contexts, unless the operation has ended. It may end inside. `bit` of the
  /// state tells the end to wait for the lock.
  template <class Use>
  void unless_ended(std::recursive_mutex& lock, std::uint64_t bit, Use use) {
    const std::lock_guard hold(lock);
    if ((state_.fetch_or(bit) & ended) == 0) use();
  }

  /// Reaches the handler's executor by way of the operation's, as the operation's completion does. Some handlers have
  /// only an executor that runs them where they are called (that of use_future does). The guards count as work, because a
  /// strand that has taken the function before its context gets to know would also hold back the operation's completion:
  /// the context would run out of work.
  static void post_cancel(const pointer& self, cancellation_type how) {
    self->unless_ended(self->posting_lock_, posted, [&] {
      const auto own =
          boost::asio::make_work_guard(self->executors_->own);  // stays if the operation ends inside
      boost::asio::post(own.get_executor(), [self, how] { dispatch_cancel(self, how); });
    });
  }
  static void dispatch_cancel(const pointer& self, cancellation_type how) {
    self->unless_ended(self->emission_lock_, emitted, [&] {
      const auto where = boost::asio::make_work_guard(self->executors_->where);
      dispatch_without_waiting(where.get_executor(), [self, how] { self->cancel(how); });
    });
  }

  std::atomic<std::uint64_t> state_{0};
  // The operation's end waits for both. The first is held while the handler's executor takes the cancellation and while the
  // signal is emitted, which calls the operation; the second while the operation's executor takes the cancellation. So the
  // scheduler's driver, which submits it, never waits for what an operation does. Recursive, because the operation may end
  // inside.
  std::recursive_mutex emission_lock_, posting_lock_;
  bool emitting_ = false;  // under the first lock: whether the signal is being emitted
  boost::asio::cancellation_signal signal_;
  const canceller timers_;
  timer_id id_;                         // written before the operation begins
  std::optional<executors> executors_;  // none: it has ended
};

/// The function in the slot of the user's handler.
template <class Deadline>
struct asio_deadline_slot {
  std::shared_ptr<Deadline> deadline;

  void operator()(boost::asio::cancellation_type_t how) const {
    const auto kept = deadline;  // the operation may end now, which clears the slot
    kept->cancel(how);
  }
};

template <class Handler>
void clear_slot(const Handler& handler) {
  auto slot = boost::asio::get_associated_cancellation_slot(handler);
  if (slot.is_connected()) slot.clear();
}

template <class Handler, class Deadline>
class asio_deadline_handler;

/// What has a deadline, a wait or another deadline, leaves its slot to that: another thread may still be calling the function
/// there.
template <class Handler, class Deadline>
void clear_slot(const asio_deadline_handler<Handler, Deadline>&) noexcept {}

/// The handler that the operation gets in place of the user's.
template <class Handler, class Deadline>
class asio_deadline_handler {
 public:
  asio_deadline_handler(Handler&& handler, std::shared_ptr<Deadline> deadline)
      : handler_(std::move(handler)), deadline_(std::move(deadline)) {}
  asio_deadline_handler(asio_deadline_handler&&) = default;
  asio_deadline_handler& operator=(asio_deadline_handler&&) = delete;
  ~asio_deadline_handler() {
    if (deadline_ != nullptr) deadline_->end();
  }

  const Handler& handler() const noexcept { return handler_; }
  boost::asio::cancellation_slot slot() const noexcept { return deadline_->slot(); }

  template <class... Results>
  void operator()(Results&&... results) {
    std::exchange(deadline_, nullptr)->end();
    clear_slot(handler_);
    std::move(handler_)(std::forward<Results>(results)...);
  }

 private:
  Handler handler_;
  std::shared_ptr<Deadline> deadline_;  // null: moved from, or the operation has ended
};

/// The initiation that the user's token gets in place of the operation's.
template <class Initiation, class When>
class asio_deadline_initiation {
 public:
  asio_deadline_initiation(scheduler& s, When when, Initiation&& initiation)
      : on_(&s), when_(when), initiation_(std::move(initiation)) {}
  asio_deadline_initiation(scheduler& s, When when, const Initiation& initiation)
      : on_(&s), when_(when), initiation_(initiation) {}

  const Initiation& initiation() const noexcept { return initiation_; }

  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args&&... args) {
    begin(std::move(initiation_), std::decay_t<Handler>(std::forward<Handler>(handler)),
          std::forward<Args>(args)...);
  }
  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args&&... args) const {
    begin(initiation_, std::decay_t<Handler>(std::forward<Handler>(handler)), std::forward<Args>(args)...);
  }

 private:
  template <class Begin, class Handler, class... Args>
  void begin(Begin&& initiation, Handler handler, Args&&... args) const {
    auto where = boost::asio::get_associated_executor(handler, get_executor_of(initiation));
    auto own = boost::asio::get_associated_executor(initiation, where);
    using deadline_type = asio_deadline<decltype(where), decltype(own)>;
    const auto deadline =
        std::allocate_shared<deadline_type>(asio_deadline_memory(), *on_, std::move(where), std::move(own));
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.assign(asio_deadline_slot<deadline_type>{deadline});
    asio_deadline_handler<Handler, deadline_type> ending(std::move(handler),
                                                         deadline);  // also if this throws
    deadline_type::begin(deadline, *on_, when_, [&] {
      std::forward<Begin>(initiation)(std::move(ending), std::forward<Args>(args)...);
    });
  }

  scheduler* on_;
  When when_;
  Initiation initiation_;
};

/// When is a duration for cancel_after(), and a time_point for cancel_at().
template <class When, class Token>
struct asio_deadline_token {
  scheduler* on;
  When when;
  Token token;
};

}  // namespace rondo::detail

namespace boost::asio {

template <class When, class Token, class... Signatures>
class async_result<rondo::detail::asio_deadline_token<When, Token>, Signatures...> {
  template <class Initiation>
  using initiation = rondo::detail::asio_deadline_initiation<std::decay_t<Initiation>, When>;

 public:
  template <class Initiation, class... Args>
  static auto initiate(Initiation&& begins, rondo::detail::asio_deadline_token<When, Token> token,
                       Args&&... args)
      -> decltype(async_initiate<Token, Signatures...>(std::declval<initiation<Initiation>>(),
                                                       std::declval<Token&>(), std::declval<Args>()...)) {
    return async_initiate<Token, Signatures...>(
        initiation<Initiation>(*token.on, token.when, std::forward<Initiation>(begins)), token.token,
        std::forward<Args>(args)...);
  }
};

/// The handler has the executor, allocator and whatever else of the user's, except for the slot.
template <template <class, class> class Associator, class Handler, class Deadline, class Default>
struct associator<Associator, rondo::detail::asio_deadline_handler<Handler, Deadline>, Default>
    : Associator<Handler, Default> {
  using wrapped = rondo::detail::asio_deadline_handler<Handler, Deadline>;
  static auto get(const wrapped& h) noexcept { return Associator<Handler, Default>::get(h.handler()); }
  static auto get(const wrapped& h, const Default& otherwise) noexcept {
    return Associator<Handler, Default>::get(h.handler(), otherwise);
  }
};

template <class Handler, class Deadline, class Default>
struct associated_cancellation_slot<rondo::detail::asio_deadline_handler<Handler, Deadline>, Default> {
  using type = cancellation_slot;
  using wrapped = rondo::detail::asio_deadline_handler<Handler, Deadline>;
  static type get(const wrapped& h) noexcept { return h.slot(); }
  static type get(const wrapped& h, const Default&) noexcept { return h.slot(); }
};

template <template <class, class> class Associator, class Initiation, class When, class Default>
struct associator<Associator, rondo::detail::asio_deadline_initiation<Initiation, When>, Default>
    : Associator<Initiation, Default> {
  using wrapped = rondo::detail::asio_deadline_initiation<Initiation, When>;
  static auto get(const wrapped& i) noexcept { return Associator<Initiation, Default>::get(i.initiation()); }
  static auto get(const wrapped& i, const Default& otherwise) noexcept {
    return Associator<Initiation, Default>::get(i.initiation(), otherwise);
  }
};

}  // namespace boost::asio
