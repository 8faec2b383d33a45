// Coroutines that nobody waits for.
#pragma once

#include <coroutine>
#include <exception>

namespace rondo::test {

/// A coroutine that destroys itself at its end. No exception may leave it.
struct detached {
  struct promise_type {
    detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

}  // namespace rondo::test
