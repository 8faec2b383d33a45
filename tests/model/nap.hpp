// A coroutine that sleeps once, and may be asked to stop if the standard library can do that.
#pragma once

#include <coroutine>
#include <exception>
#include <version>

#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include <rondo/coroutine.hpp>

namespace rondo::test {

/// Begins when it is resumed, and destroys itself at its end. Until then, its owner may destroy it. No exception may
/// leave it.
struct nap {
  struct promise_type {
    nap get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  std::coroutine_handle<> coroutine;
};

#ifdef __cpp_lib_jthread

struct nap_stopper {
  static constexpr bool possible = true;
  using token = std::stop_token;

  std::stop_source source;

  token get_token() const { return source.get_token(); }
  void request_stop() { source.request_stop(); }
};

#else

struct nap_stopper {
  static constexpr bool possible = false;
  struct token {
    bool stop_possible() const { return false; }
    bool stop_requested() const { return false; }
  };

  token get_token() const { return {}; }
  void request_stop() {}
};

/// The result is true, as with a token.
template <class When>
struct plain_sleep : detail::sleep<When> {
  bool await_resume() {
    detail::sleep<When>::await_resume();
    return true;
  }
};
inline plain_sleep<duration> sleep_for(scheduler& s, any_duration d, nap_stopper::token) { return {{s, d}}; }
inline plain_sleep<time_point> sleep_until(scheduler& s, any_time_point t, nap_stopper::token) {
  return {{s, t}};
}

#endif

struct sleeper {
  std::coroutine_handle<> coroutine;  // valid while its timer is pending
  nap_stopper stopper;
};

/// How a nap ends without the firing of its timer. (A nap that cannot begin also ends with the exception of the call.)
enum class nap_end { asked, stopped_error, capacity_error };

}  // namespace rondo::test
