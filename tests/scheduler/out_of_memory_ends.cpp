// Without memory, creating a scheduler either succeeds or leaves nothing behind, and ending one works.
#include <functional>
#include <memory>
#include <optional>

#include <rondo/polled_timer.hpp>
#include <rondo/timer.hpp>

#include "scheduler/out_of_memory.hpp"

namespace scheduler_out_of_memory_ends {

using namespace rondo;
using namespace rondo::test;

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE_TEMPLATE("without memory a scheduler is not created, and nothing is left behind", T, timer,
                   polled_timer, manual_timer) {
  for (std::size_t k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    const auto token = std::make_shared<int>(0);
    const options o{.buckets = 8,
                    .run_on = [token](job) {},
                    .on_error = [token](std::exception_ptr, const firing&) {},
                    .name = "a name that is too long to be held inside"};
    const auto before = bytes_held();
    bool made = false, struck = false;
    {
      const failing_new failing(k);
      try {
        const T t(o);
        made = true;
      } catch (const std::bad_alloc&) {
      }
      struck = failing.struck();
    }
    CHECK(bytes_held() == before);
    CHECK(token.use_count() == 3);
    CHECK((made || struck));
    if (!struck) {
      CHECK(k > 5);
      return;
    }
  }
}

TEST_CASE("on_earlier() without memory leaves the old function") {
  polled_timer time;
  journal told;
  time.on_earlier(told.noting("old"));
  {
    std::function<void()> f = told.noting("new");
    const failing_new failing;
    CHECK_THROWS_AS(time.on_earlier(std::move(f)), std::bad_alloc);
  }
  time.schedule_after(1h, doing_nothing());
  CHECK(told.take() == "old");
  const failing_new failing;
  time.on_earlier(nullptr);  // needs no memory
}

TEST_CASE("stop() without memory changes nothing") {
  CHECK(fail_everywhere([](world& w) { w.time.stop(); }) > 0);
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  {
    const failing_new failing;
    CHECK_THROWS_AS(time.stop(), std::bad_alloc);
  }
  CHECK_NOTHROW(time.schedule_after(1ms, counting(runs)));
  CHECK(time.advance(1ms) == 2);
}

TEST_CASE("drain() needs no memory of its own") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  time.schedule_every(1ms, counting(runs));
  bool is_drained = false;
  {
    const failing_new failing;
    is_drained = time.drain(1s);
  }
  CHECK(is_drained);
  CHECK(runs == 1);
}

TEST_CASE("drain() that runs out of memory at any point can be called again, and loses nothing") {
  for (std::size_t k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    manual_timer time(options{.buckets = 4});
    int runs = 0;
    for (int i = 0; i != 700; ++i) time.schedule_after(i % 50 * 1ms, counting(runs));
    for (int i = 1; i != 10; ++i) time.schedule_every(i * 1s, counting(runs));
    time.elapse(50ms);
    bool struck = false;
    {
      const failing_new failing(k);
      try {
        time.drain(1h);
      } catch (const std::bad_alloc&) {
      }
      struck = failing.struck();
    }
    CHECK(time.drain(1h));
    CHECK(runs == 700);
    CHECK(time.stats().completed == 709);
    CHECK(adds_up(time.stats()));
    if (!struck) {
      CHECK(k > 1);
      return;
    }
  }
}

TEST_CASE("a scheduler can be destroyed without memory, and its callables with it") {
  const auto token = std::make_shared<int>(0);
  {
    auto time = std::make_unique<manual_timer>();
    for (int i = 0; i != 100; ++i) time->schedule_after(i * 1ms, [token] {});
    time->schedule_every(1ms, [token] {});
    const failing_new failing;
    time.reset();
  }
  CHECK(token.use_count() == 1);
}

TEST_CASE("even without memory, callables are destroyed with their scheduler, and not with its last job") {
  std::optional<job> last;
  const auto token = std::make_shared<int>(0);
  auto time = std::make_unique<manual_timer>(options{.run_on = [&](job j) {
    if (!last) last = std::move(j);
  }});
  for (int i = 0; i != 100; ++i) time->schedule_after(i * 1ms, [token] {});
  time->schedule_after(duration::max(), [token] {});
  time->schedule_every(
      1ms, [token] {}, rondo::on([token](job) {}));
  time->advance(50ms);
  {
    const failing_new failing;
    time.reset();
  }
  CHECK(token.use_count() == 1);
  (*last)();
}

TEST_CASE("a task may destroy its scheduler without memory, and all other callables with it") {
  for (const auto& when : {rondo::every(1h).times(1), rondo::every(1h)}) {
    const auto token = std::make_shared<int>(0);
    auto time = std::make_unique<manual_timer>();
    auto* const raw = time.get();
    long left = 0;
    for (int i = 0; i != 10; ++i) raw->schedule_after(1h, [token] {});
    raw->schedule_every(2h, [token] {});
    raw->schedule(when, [&, held = token] {
      {
        const failing_new failing;
        time.reset();
      }
      left = token.use_count();
    });
    raw->schedule_after(1h, [token] { FAIL("it ran after the end"); });
    raw->advance(1h);
    CHECK(left == 2);  // the test's copy, and that of the running task
    CHECK(token.use_count() == 1);
  }
}

TEST_SUITE_END();

}  // namespace scheduler_out_of_memory_ends
