// A task: holds the user's callable.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/detail/interruption.hpp>
#include <rondo/detail/rejection.hpp>
#include <rondo/export.hpp>
#include <rondo/firing.hpp>

namespace rondo {

namespace detail {

// Throw std::bad_function_call and std::invalid_argument. Out of line, so that the headers compile under -fno-exceptions.
[[noreturn]] RONDO_EXPORT void refuse_empty_call();
[[noreturn]] RONDO_EXPORT void refuse_empty_task();

template <class F>
concept takes_firing = std::is_invocable_v<F&, const firing&>;

template <class F>
concept task_callable = (takes_firing<F> || std::is_invocable_v<F&> ||
                         interruptible_callable<F>)&&std::is_destructible_v<F>;

/// Callables that can be empty: pointers, and wrappers such as std::function. Lambdas are excluded, although those
/// without captures can be compared with nullptr.
template <class F>
concept nullable = std::is_pointer_v<F> || std::is_member_pointer_v<F> ||(
    std::is_class_v<F>&& requires(const F& f) {
      { f == nullptr } -> std::convertible_to<bool>;
    } &&
    !requires(const F& f) { +f; });

/// Whether a callable is null, so that a task made from it is empty. A function given by its name is never null,
/// although its decayed type is a pointer.
template <class F>
constexpr bool is_null(const F& callable) noexcept {
  if constexpr (nullable<std::decay_t<F>> && !std::is_function_v<F>)
    return callable == nullptr;
  else
    return false;
}

struct task_access;

}  // namespace detail

/// A move-only holder of any callable that takes nothing or a `const firing&` (if it accepts both, it is called with
/// the firing; results are discarded). Callables of up to 48 bytes whose move constructor does not throw are held
/// inside, without an allocation. A task made from a null pointer, a null std::function or the like is empty.
///
/// A callable may also take a `std::stop_token`, or a `const firing&` and a `std::stop_token` (if it accepts both, it is
/// called with both), where the standard library has that class. Such a task can be interrupted: each run gets a token of
/// its own, and the calls that end a timer, but do not end its run, request the stop of the runs in progress: see
/// scheduler::cancel(). It gets a token even if it could be called without one, unless it is a generic lambda or what
/// std::bind() returns: these take anything.
///
/// A task that can be interrupted takes an allocation more, and one in each run; if there is no memory for that, the run
/// fails with std::bad_alloc. Of its callable, up to 32 bytes are held inside. Nothing requests the stop of a task that is
/// called by hand, or by another callable.
class RONDO_CHECKED_ABI task {
 public:
  /// The size, in bytes, of the largest callables that are held inside.
  static constexpr std::size_t inside_capacity = 48;

  ///@{
  /// Creates an empty task.
  task() noexcept : made_at_(detail::kept_call_site::none()) {}
  task(std::nullptr_t) noexcept : task() {}
  ///@}

  /// Copies or moves the callable into the task. Throws what copying or moving it throws, and std::bad_alloc if it is
  /// not held inside and there is no memory for it. By default `made_at` is the place of this call; code that wraps a
  /// task in another one passes the made_at() of the inner task.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, task> && detail::task_callable<std::decay_t<F>>)
      task(F&& callable,  // NOLINT(bugprone-forwarding-reference-overload)
           detail::kept_call_site made_at = detail::kept_call_site::here())
      : made_at_(made_at) {
    if (!detail::is_null(callable)) build(std::forward<F>(callable));
  }

  ///@{
  /// Takes over the callable, moving it if it is held inside; the other task is empty afterwards. The callable that
  /// this task held before is destroyed.
  task(task&& other) noexcept : task() { take(other); }
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ///@}
  /// Destroys the callable.
  ~task() { reset(); }

  /// Whether it holds a callable.
  explicit operator bool() const noexcept { return operations_ != nullptr; }

  /// Where the user's code created the task from its callable, usually the call that scheduled it. Known only in
  /// checked builds.
  detail::kept_call_site made_at() const noexcept { return made_at_; }

  /// Calls the callable. Throws std::bad_function_call if the task is empty.
  void operator()(const firing& f = {}) {
    if (operations_ == nullptr) detail::refuse_empty_call();
    operations_->call(storage_, f);
  }

  /// Destroys the callable; the task is empty afterwards.
  void reset() noexcept {
    if (operations_ == nullptr) return;
    // The task is empty before the destructor runs, because that is user code and may use this task.
    const operations* const old = std::exchange(operations_, nullptr);
    if (old->destroy != nullptr) old->destroy(storage_);
  }

 private:
  friend struct detail::task_access;

  struct operations {
    void (*call)(void*, const firing&);
    void (*move)(void* from, void* to) noexcept;                            // null: the bytes can be copied
    void (*destroy)(void*) noexcept;                                        // null: nothing to do
    std::shared_ptr<detail::interruption> (*interrupting)(void*) noexcept;  // null: it cannot be interrupted
    std::shared_ptr<detail::rejection> (*rejecting)(void*) noexcept;        // null: a dropped run is lost
  };

  template <class Held>
  static constexpr bool fits_inside =
      sizeof(Held) <= inside_capacity &&  // NOLINT(misc-redundant-expression): alignof is not sizeof
      alignof(Held) <= alignof(void*) && std::is_nothrow_move_constructible_v<Held>;

  template <class Held>
  static Held& held_in(void* storage) noexcept {
    if constexpr (fits_inside<Held>)
      return *std::launder(static_cast<Held*>(storage));
    else
      return **std::launder(static_cast<Held**>(storage));
  }

  template <class Held>
  static void call(void* storage, const firing& f) {
    if constexpr (detail::takes_firing<Held>)
      static_cast<void>(std::invoke(held_in<Held>(storage), f));
    else
      static_cast<void>(std::invoke(held_in<Held>(storage)));
  }

  /// Precondition: the callable is held inside.
  template <class Held>
  static void move(void* from, void* to) noexcept {
    ::new (to) Held(std::move(held_in<Held>(from)));
    std::destroy_at(&held_in<Held>(from));
  }

  template <class Held>
  static void destroy(void* storage) noexcept {
    if constexpr (fits_inside<Held>)
      std::destroy_at(&held_in<Held>(storage));
    else
      delete &held_in<Held>(storage);
  }

  template <detail::interrupting Held>
  static std::shared_ptr<detail::interruption> interrupting(void* storage) noexcept {
    return held_in<Held>(storage).interrupting();
  }
  template <class Held>
  static constexpr auto interrupting_of() noexcept -> decltype(operations::interrupting) {
    if constexpr (detail::interrupting<Held>)
      return &interrupting<Held>;
    else
      return nullptr;
  }

  template <detail::rejecting Held>
  static std::shared_ptr<detail::rejection> rejecting(void* storage) noexcept {
    return held_in<Held>(storage).rejecting();
  }
  template <class Held>
  static constexpr auto rejecting_of() noexcept -> decltype(operations::rejecting) {
    if constexpr (detail::rejecting<Held>)
      return &rejecting<Held>;
    else
      return nullptr;
  }

  template <class Held>
  static constexpr bool is_bytes = !fits_inside<Held> || std::is_trivially_copyable_v<Held>;
  template <class Held>
  static constexpr operations operations_of{
      &call<Held>, is_bytes<Held> ? nullptr : &move<Held>,
      fits_inside<Held>&& std::is_trivially_destructible_v<Held> ? nullptr : &destroy<Held>,
      interrupting_of<Held>(), rejecting_of<Held>()};

  /// Precondition: nothing held needs to be destroyed. Strong guarantee.
  template <class F>
  void build(F&& callable) {
    using held = detail::held_of<std::decay_t<F>>;
    if constexpr (fits_inside<held>)
      ::new (static_cast<void*>(storage_)) held(std::forward<F>(callable));
    else
      ::new (static_cast<void*>(storage_)) held*(new held(std::forward<F>(callable)));
    operations_ = &operations_of<held>;
  }

  void take(task& other) noexcept {
    if (other.operations_ == nullptr) return;
    if (other.operations_->move == nullptr)
      std::memcpy(storage_, other.storage_, inside_capacity);  // all of it, in three instructions
    else
      other.operations_->move(other.storage_, storage_);
    operations_ = std::exchange(other.operations_, nullptr);
    made_at_ = other.made_at_;
  }

  [[no_unique_address]] detail::kept_call_site made_at_;
  const operations* operations_ = nullptr;
  // Initialised because g++ otherwise warns, in some callers, about the bytes that take() copies. Costs no instruction.
  alignas(void*) std::byte storage_[inside_capacity] = {};
};

namespace detail {
struct task_access {
  /// Whether destroying `t` runs no user code.
  static bool trivial_to_destroy(const task& t) noexcept {
    return t.operations_ == nullptr || t.operations_->destroy == nullptr;
  }
  /// Whether moving and destroying `t` runs no user code, and it owns nothing. Precondition: it is not empty.
  static bool is_bytes(const task& t) noexcept {
    return t.operations_->move == nullptr && t.operations_->destroy == nullptr;
  }
  /// What interrupts the runs of `t`; null if it cannot be interrupted.
  static std::shared_ptr<interruption> interrupting(task& t) noexcept {
    const auto* const operations = t.operations_;
    return operations != nullptr && operations->interrupting != nullptr ? operations->interrupting(t.storage_)
                                                                        : nullptr;
  }
  /// What says which runs are rejected if a job of `t` is dropped; null if that is the job's.
  static std::shared_ptr<rejection> rejecting(task& t) noexcept {
    const auto* const operations = t.operations_;
    return operations != nullptr && operations->rejecting != nullptr ? operations->rejecting(t.storage_)
                                                                     : nullptr;
  }
  /// Makes `t` hold `work`, a callable or a task. Precondition: it is not empty, and `t` holds nothing that needs to be
  /// destroyed. Strong guarantee.
  template <class F>
  static void store(task& t, F&& work, kept_call_site made_at) {
    if constexpr (std::is_same_v<F, task>) {
      t = std::forward<F>(work);
    } else {
      t.build(std::forward<F>(work));
      t.made_at_ = made_at;
    }
  }
};

/// Callables that are not yet a task, which the scheduling calls take directly.
template <class F>
concept new_callable = !std::is_same_v<std::remove_cvref_t<F>, task> && task_callable<std::decay_t<F>>;

/// What the scheduling calls take: a callable, a task, or what converts to a task.
template <class F>
concept schedulable = new_callable<F> || std::is_convertible_v<F, task>;

/// Forwards a callable or a task, and converts anything else to a task.
template <schedulable F>
auto pass_on(std::remove_reference_t<F>& work)
    -> std::conditional_t<new_callable<F> || std::is_same_v<F, task>, F&&, task> {
  return std::forward<F>(work);
}

template <class F>
constexpr void refuse_empty(const F& work) {
  bool is_empty = false;
  if constexpr (std::is_same_v<F, task>)
    is_empty = !work;
  else if constexpr (nullable<std::decay_t<F>>)
    is_empty = is_null(work);
  if (is_empty) [[unlikely]]
    refuse_empty_task();
}

}  // namespace detail

}  // namespace rondo
