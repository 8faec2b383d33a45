// A driver thread that cannot be started, and one that runs out of memory.
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "failing_new.hpp"
#include "threads/no_threads.hpp"
#include "threads/patience.hpp"

namespace {

using namespace rondo::test;
using rondo::firing;
using rondo::job;
using rondo::options;
using rondo::timer;

#if defined(__GLIBC__)

TEST_CASE("a driver that cannot be started is refused by its name, and nothing is left behind") {
  const auto token = std::make_shared<int>(0);
  for (int attempt = 0; attempt != 3; ++attempt) {
    const auto before = bytes_held();
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
    CHECK(bytes_held() == before);
  }
  CHECK(token.use_count() == 1);
  gate ran;
  timer t;
  t.schedule_after(0s, [&] { ran.open(); });
  CHECK(ran.wait());
}

#endif

TEST_CASE("a driver that runs out of memory tries again, and loses nothing" *
          doctest::skip(!failing_new::available)) {
  for (const std::size_t after : {0U, 1U, 2U, 5U}) {
    constexpr long many = 5000;
    gate ran;
    std::optional<failing_new> failing;  // the driver thread's
    bool struck = false;
    std::atomic<int> early{0};
    timer t(options{.tick = 10us, .buckets = 4});
    t.schedule_after(0s, [&] {
      for (long i = 0; i != many; ++i)
        t.schedule_after(i % 100 * 300us, [&](const firing& f) {
          early += t.now() < f.due;
          ran.open();
        });
      failing.emplace(after, 20);
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
}

}  // namespace
