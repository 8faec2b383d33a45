// What lib/README.md says about the memory of a pending timer of each kind.
#include <array>
#include <chrono>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/rondo.hpp>

#include "benchmarks/held_bytes.hpp"
#include "times_slower.hpp"

namespace readme_memory {

using namespace std::chrono_literals;

constexpr int a_million = 1'000'000;  // the documents give the memory of one of so many
const int timers = static_cast<int>(rondo::test::shortened(a_million));
// Sanitizers and checked builds hold more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(RONDO_CHECKS)
constexpr bool is_exact = false;
#else
constexpr bool is_exact = sizeof(void*) == 8;
#endif

/// A coroutine that nobody waits for. The end of its scheduler ends it.
struct routine {
  struct promise_type {
    routine get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };

  std::coroutine_handle<> coroutine;
};
routine sleep(rondo::scheduler& s) { co_await rondo::sleep_for(s, 30s); }

/// The heap memory in use per timer after set(number) has been called for all of them.
template <class Set>
double bytes_of(Set&& set) {
  const std::size_t before = held_bytes();
  for (int i = 0; i != timers; ++i) set(i);
  return static_cast<double>(held_bytes() - before) / timers;
}

void check(double bytes, double documented) {
  CAPTURE(bytes);
  if (is_exact) CHECK(bytes == doctest::Approx(documented).epsilon(timers == a_million ? 0.02 : 0.3));
}

TEST_CASE("the memory of a pending timer") {
  const auto work = [much = std::array<char, 16>{}] { (void)much; };
  const auto delay = [](int i) { return 30s + i % 1000 * 1ms; };
  rondo::manual_timer time;
  const auto plain = [&](int i) { time.schedule_after(delay(i), work); };

  SUBCASE("of a bare wheel") {
    struct request : rondo::wheel_node {
      int number = 0;
    };
    CHECK((!is_exact || sizeof(request) == 32));
    std::vector<request> requests(static_cast<std::size_t>(timers));
    rondo::wheel<request> wheel;
    check(32 + bytes_of(
                   [&](int i) { wheel.schedule(requests[static_cast<std::size_t>(i)], 30'000 + i % 1000); }),
          41);
  }
  SUBCASE("of a scheduler") { check(bytes_of(plain), 137); }
  SUBCASE("with a name") {
    check(bytes_of([&](int i) { time.schedule_after(delay(i), work, {.name = "report"}); }), 281);
  }
  SUBCASE("with an executor of its own") {
    const rondo::on here([](rondo::job j) { j(); });
    check(bytes_of([&](int i) { time.schedule_after(delay(i), work, here); }), 314);
  }
  SUBCASE("periodic") {
    check(bytes_of([&](int i) { time.schedule_every(delay(i), work); }), 489);
  }
  SUBCASE("of a scope") {
    rondo::timer_scope scope(time);
    check(bytes_of([&](int i) { scope.schedule_after(delay(i), work); }), 162);
  }
  SUBCASE("of keyed timers") {
    rondo::keyed_timers<int> keyed(time);
    check(bytes_of([&](int i) { keyed.set_after(i, delay(i), work); }), 166);
  }
  SUBCASE("a coroutine that sleeps") {
    check(bytes_of([&](int) { sleep(time).coroutine.resume(); }), 329);
  }
}

}  // namespace readme_memory
