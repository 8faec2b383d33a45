// Scopes, keyed timers and sleeps keep no memory of what has ended.
#include <rondo/keyed_timers.hpp>
#include <rondo/timer_scope.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "on_top/coroutines.hpp"
#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"
#include "times_slower.hpp"

namespace on_top_memory {

using namespace rondo;
using namespace rondo::test;

/// Checks that a repeated operation takes no more memory after some thousand repetitions. (If bytes_held() is unknown,
/// only runs it.)
template <class Do>
void check_flat(Do&& do_it, int times = a_million) {
  int i = 0;
  for (; i != 10'000; ++i) do_it(i);
  const auto before = bytes_held();
  for (; i != 10'000 + times; ++i) do_it(i);
  CHECK(bytes_held() <= before + 512);  // one timer may be pending now that was not pending before
}

TEST_CASE("a scope keeps nothing of timers that have ended") {
  manual_timer time(options{.run_on = [n = 0](job j) mutable {
    if (++n % 5 != 0) j();
  }});
  timer_scope scope(time);
  check_flat([&](int i) {
    const auto id = scope.schedule_after(1ms, [] {});
    if (i % 3 == 0) scope.cancel(id);
    if (i % 3 == 1) time.advance(1ms);
  });
  time.advance(1ms);
  CHECK(scope.pending() == 0);
}

/// The bytes that an Owner takes with its only timer.
template <class Owner, class Set>
std::ptrdiff_t bytes_of_one(Set&& set) {
  constexpr int many = 1000;
  manual_timer time;
  std::vector<std::unique_ptr<Owner>> owners;
  owners.reserve(many);
  const auto before = bytes_held();
  for (int i = 0; i != many; ++i) set(*owners.emplace_back(std::make_unique<Owner>(time)));
  return (bytes_held() - before) / many;
}

TEST_CASE("a scope, or keyed timers, with one timer is small: there may be one for each connection") {
  const auto scope = bytes_of_one<timer_scope>([](timer_scope& s) { s.schedule_after(1s, [] {}); });
  const auto keyed = bytes_of_one<keyed_timers<int>>([](keyed_timers<int>& k) { k.set_after(1, 1s, [] {}); });
  CHECK(scope <= 600);
  CHECK(keyed <= 800);
}

TEST_CASE("in the long run, timers of a scope and of keyed timers allocate nothing") {
  manual_timer time;
  timer_scope scope(time);
  keyed_timers<int> timers(time);
  std::size_t before = 0;
  for (int i = 0; i != 20'000; ++i) {
    if (i == 5'000) before = allocations();
    const auto id = scope.schedule_after(i % 7 * 1ms, [] {});
    if (i % 3 == 0) scope.cancel(id);
    timers.set_after(i % 10, 50ms, [] {});
    if (i % 2 == 0) time.advance(1ms);
  }
  CHECK(allocations() == before);
}

TEST_CASE("keyed timers keep nothing of timers that were replaced as they ran") {
  manual_timer time;
  keyed_timers<int> timers(time);
  check_flat([&](int) {
    timers.set_after(1, 0s, [&timers] { timers.set_after(1, 1h, [] {}); });
    time.advance(1ms);
  });
}

TEST_CASE("a scope and keyed timers keep nothing of timers that were refused") {
  manual_timer time(options{.max_pending = 0});
  timer_scope scope(time);
  keyed_timers<int> timers(time);
  int refused = 0;
  const auto check_refused = [&](auto&& schedule) {
    refused = 0;
    check_flat(
        [&](int i) {
          try {
            schedule(i);
          } catch (const rondo::capacity_error&) {
            ++refused;
          }
        },
        10'000);
    CHECK(refused == 20'000);
  };
  check_refused([&](int) { scope.schedule_after(1ms, [] {}); });
  check_refused([&](int i) { timers.set_after(i, 1ms, [] {}); });
}

TEST_CASE("keyed timers keep nothing of keys whose timers have ended") {
  manual_timer time(options{.run_on = [n = 0](job j) mutable {
    if (++n % 5 != 0) j();
  }});
  keyed_timers<std::string> timers(time);
  check_flat([&](int i) {
    const std::string key = "a key that is too long to be held inside " + std::to_string(i / 2);
    timers.set_after(key, 1ms, [] {});
    if (i % 3 == 0) timers.cancel(key);
    if (i % 3 == 1) time.advance(1ms);
  });
  time.advance(1ms);
  CHECK(timers.size() == 0);
}

routine sleeping(manual_timer& time) { co_await sleep_for(time, 1h); }

TEST_CASE("a million abandoned sleeps leave nothing behind") {
  manual_timer time;
  check_flat([&](int) { const auto sleeper = sleeping(time); });
  CHECK(time.stats().cancelled == 10'000 + a_million);
}

routine sleeping_again(manual_timer& time) {
  for (;;) co_await sleep_for(time, 1ms);
}

TEST_CASE("a coroutine that sleeps again and again leaves nothing behind") {
  manual_timer time;
  const auto sleeper = sleeping_again(time);
  check_flat([&](int) { time.advance(1ms); });
  CHECK(time.stats().completed == 10'000 + a_million);
}

#ifdef __cpp_lib_jthread

routine sleeping(manual_timer& time, std::stop_token token) {
  const bool slept = co_await sleep_for(time, 1h, token);
  static_cast<void>(slept);
}

TEST_CASE("a million sleeps that are asked to stop leave nothing behind") {
  manual_timer time;
  check_flat([&](int) {
    std::stop_source source;
    const auto sleeper = sleeping(time, source.get_token());
    source.request_stop();
  });
  CHECK(time.stats().cancelled == 10'000 + a_million);
}

#endif

}  // namespace on_top_memory
