// Coroutine types for the tests of sleeping.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include <rondo/coroutine.hpp>

#include "detached.hpp"

namespace rondo::test {

/// A coroutine that runs at once up to its first suspension, and is destroyed with this object wherever it is
/// suspended. (Other threads may resume it because it does not destroy itself at its end: see sleep_for().)
class routine {
 public:
  struct promise_type {
    std::exception_ptr thrown;
    bool lets_out = false;
    routine get_return_object() { return routine(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() {
      thrown = std::current_exception();
      if (lets_out) throw;
    }
  };

  routine(routine&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  routine& operator=(routine&&) = delete;
  ~routine() { destroy(); }

  bool done() const { return handle_.done(); }
  /// Lets an exception leave the coroutine, out of resume().
  void let_out() { handle_.promise().lets_out = true; }
  /// Rethrows the exception that ended the coroutine, if any.
  void rethrow() const {
    if (handle_.promise().thrown) std::rethrow_exception(handle_.promise().thrown);
  }
  void destroy() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }

 private:
  explicit routine(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace rondo::test
