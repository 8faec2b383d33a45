// Tasks that can be interrupted: each of their runs gets a std::stop_token.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <version>

#include <rondo/export.hpp>
#include <rondo/firing.hpp>

#ifdef __cpp_lib_jthread
#include <functional>
#include <stop_token>
#include <utility>
#endif

namespace rondo::detail {

/// Interrupts the runs of one task.
class interruption;

#ifdef __cpp_lib_jthread

struct not_a_token {};

/// Callables that take a firing and do not care what else they get: generic lambdas, whose body might not even compile with a
/// token, and what std::bind() returns.
template <class F>
concept indifferent_callable = std::is_invocable_v<F&, const firing&> &&(requires {
  &F::template operator()<const firing&>;
} || std::is_invocable_v<F&, const firing&, not_a_token> || std::is_invocable_v<F&, not_a_token>);

template <class F>
concept interruptible_callable =
    !indifferent_callable<F> &&
    (std::is_invocable_v<F&, const firing&, std::stop_token> || std::is_invocable_v<F&, std::stop_token>);

/// Throws std::bad_alloc.
RONDO_EXPORT std::shared_ptr<interruption> make_interruption();

/// A run in progress, on its thread's stack, with a token of its own.
class RONDO_EXPORT interruptible_run {
 public:
  /// Throws std::bad_alloc.
  explicit interruptible_run(std::shared_ptr<interruption> of);
  ~interruptible_run();
  interruptible_run(const interruptible_run&) = delete;
  interruptible_run& operator=(const interruptible_run&) = delete;

  std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  friend class interruption;

  const std::shared_ptr<interruption> of_;
  std::stop_source source_;
  interruptible_run* next_ = nullptr;  // of the same task
};

/// What a task holds instead of such a callable.
template <class F>
class interruptible {
 public:
  explicit interruptible(const F& callable) : callable_(callable), interruption_(make_interruption()) {}
  explicit interruptible(F&& callable) : callable_(std::move(callable)), interruption_(make_interruption()) {}

  void operator()(const firing& f) {
    const interruptible_run run(interruption_);
    if constexpr (std::is_invocable_v<F&, const firing&, std::stop_token>)
      static_cast<void>(std::invoke(callable_, f, run.token()));
    else
      static_cast<void>(std::invoke(callable_, run.token()));
  }

  std::shared_ptr<interruption> interrupting() const noexcept { return interruption_; }

 private:
  F callable_;
  std::shared_ptr<interruption> interruption_;
};

template <class F>
struct held_for {
  using type = F;
};
template <interruptible_callable F>
struct held_for<F> {
  using type = interruptible<F>;
};
#else
template <class>
concept interruptible_callable = false;

template <class F>
struct held_for {
  using type = F;
};
#endif

/// What a task holds of a callable of the type F.
template <class F>
using held_of = typename held_for<F>::type;

/// Callables of the library that can be interrupted.
template <class Held>
concept interrupting = requires(const Held& held) {
  { held.interrupting() } -> std::same_as<std::shared_ptr<interruption>>;
};

}  // namespace rondo::detail
