// A driver thread that cannot be started, and one that runs out of memory.
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "failing_new.hpp"
#include "threads/no_threads.hpp"
#include "threads/patience.hpp"

namespace threads_driver_start {

using namespace rondo;
using namespace rondo::test;

#if defined(__GLIBC__)

TEST_CASE("if a driver cannot be started, the error names it and nothing is left behind") {
  const auto token = std::make_shared<int>(0);
  for (int attempt = 0; attempt != 3; ++attempt) {
    // Not of all threads: the driver of a timer that an earlier case has destroyed in its own task may end only now.
    const auto before = bytes_held_by_this_thread();
    {
      const options o{.run_on = [token](job) {},
                      .on_error = [token](std::exception_ptr, const firing&) {},
                      .name = "the night watch"};
      std::string told;
      std::error_code code;
      {
        const no_threads while_it_lives;
        try {
          const timer t(o);
        } catch (const std::system_error& e) {
          told = e.what();
          code = e.code();
        }
      }
      CHECK(told.find("rondo: the driver thread \"the night watch\" cannot be started") == 0);
      CHECK(code == std::errc::resource_unavailable_try_again);
      CHECK(token.use_count() == 3);
    }
    CHECK(bytes_held_by_this_thread() == before);
  }
  CHECK(token.use_count() == 1);
  gate ran;
  timer t;
  t.schedule_after(0s, [&] { ran.open(); });
  CHECK(ran.wait());
}

#endif

/// Schedules timers in the far future, each in its own far list, until that would allocate: then the wheel has no chunk left.
/// There should still be some records.
void use_up_chunks(timer& t) {
  const failing_new failing;
  try {
    for (duration span = 1h; span < 1'000'000h; span *= 8)
      for (int i = 1; i != 8; ++i) t.schedule_after(i * span, [] {});
  } catch (const std::bad_alloc&) {
  }
}

TEST_CASE("a driver that runs out of memory tries again, and loses nothing" *
          doctest::skip(!failing_new::available)) {
  constexpr long many = 5000;
  gate ran;
  std::optional<failing_new> failing;  // the driver thread's
  bool struck = false;
  std::atomic<int> early{0};
  timer t(options{.tick = 10us, .buckets = 1});
  t.schedule_after(0s, [&] {
    std::vector<rondo::timer_id> records;
    for (int i = 0; i != 200; ++i) records.push_back(t.schedule_after(1h, [] {}));
    for (long i = 0; i != many; ++i)
      t.schedule_after(1ms + i % 100 * 300us, [&](const firing& f) {
        early += t.now() < f.due;
        ran.open();
      });
    for (const rondo::timer_id id : records) t.cancel(id);
    use_up_chunks(t);
    failing.emplace(0, 20);
  });
  REQUIRE(ran.wait(many));
  t.schedule_after(0s, [&] {
    struck = failing->struck();
    failing.reset();
    ran.open();
  });
  REQUIRE(ran.wait(many + 1));
  t.stop();
  CHECK(struck);
  CHECK(early == 0);
  CHECK(t.stats().completed == many + 2);
  CHECK(adds_up(t.stats()));
}

}  // namespace threads_driver_start
