// Coroutines that nobody waits for.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace rondo::test {

/// A coroutine that runs from start() on and destroys itself at its end. If it is not started, this object destroys it.
/// No exception may leave it. (Why it does not run inside the call that creates it: see sleep_for().)
class [[nodiscard]] detached {
 public:
  struct promise_type {
    detached get_return_object() noexcept {
      return detached(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  detached(detached&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  detached& operator=(detached&&) = delete;
  ~detached() {
    if (coroutine_) coroutine_.destroy();
  }

  /// Call it once.
  void start() { std::exchange(coroutine_, nullptr).resume(); }

 private:
  explicit detached(std::coroutine_handle<> created) noexcept : coroutine_(created) {}
  std::coroutine_handle<> coroutine_;
};

}  // namespace rondo::test
