// Scopes and keyed timers forget what has ended.
#include <rondo/keyed_timers.hpp>
#include <rondo/timer_scope.hpp>

#include <cstddef>
#include <string>

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#define RONDO_TEST_KNOWS_ITS_MEMORY
#endif
#endif

#include "scheduler/virtual_time.hpp"

namespace {

using namespace rondo::test;
using rondo::job;
using rondo::keyed_timers;
using rondo::manual_timer;
using rondo::options;
using rondo::timer_scope;

/// Of this program; always 0 where nobody tells, as under sanitizers.
std::size_t bytes_in_use() {
#if defined(RONDO_TEST_KNOWS_ITS_MEMORY)
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

/// Whether doing something again and again, some ten thousand times after some thousand, leaves nothing behind.
template <class Do>
void check_flat(Do&& do_it) {
  int i = 0;
  for (; i != 5'000; ++i) do_it(i);
  const std::size_t before = bytes_in_use();
  for (; i != 100'000; ++i) do_it(i);
  CHECK(bytes_in_use() <= before + 4096);
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

}  // namespace
