// A timer with its own executor.
#include <memory>
#include <stdexcept>

#include "scheduler/virtual_time.hpp"

namespace scheduler_own_executor {

using namespace rondo;
using namespace rondo::test;

struct shelf {
  std::vector<job> jobs;
  on here{[this](job j) { jobs.push_back(std::move(j)); }};
};

TEST_CASE("every scheduling call takes an executor for that timer alone") {
  shelf s;
  manual_timer time;
  journal what;
  time.schedule_after(1s, what.noting("after"), s.here);
  time.schedule_after(std::chrono::duration<double>(1), what.noting("after-double"), s.here);
  time.schedule_at(at(1s), what.noting("at"), s.here);
  time.schedule_every(1s, what.noting("every"), s.here);
  time.schedule_every(std::chrono::seconds(1), what.noting("every-s"), s.here);
  time.schedule(every(1s), what.noting("recurrence"), s.here);
  time.schedule_after(1s, what.noting("inline"));
  CHECK(time.advance(1s) == 7);
  CHECK(what.take() == "inline");
  REQUIRE(s.jobs.size() == 6);
  for (job& j : s.jobs) j();
  CHECK(what.take() == "after after-double at every every-s recurrence");
}

TEST_CASE("a timer's own executor replaces that of the scheduler") {
  shelf own, all;
  manual_timer time({.run_on = [&](job j) { all.jobs.push_back(std::move(j)); }});
  int runs = 0;
  time.schedule_after(1s, counting(runs), own.here);
  time.schedule_after(1s, counting(runs));
  time.schedule_after(1s, counting(runs), on([](job j) { j(); }));
  time.advance(1s);
  CHECK(own.jobs.size() == 1);
  CHECK(all.jobs.size() == 1);
  CHECK(runs == 1);
}

TEST_CASE("a slow task on its own executor does not delay others") {
  shelf s;
  manual_timer time;
  journal what;
  time.schedule_after(
      1ms, [&] { time.elapse(1h); }, s.here);
  time.schedule_every(1ms, what.noting("quick"));
  time.advance(3ms);
  CHECK(what.take() == "quick quick quick");
  CHECK(time.stats().missed == 0);
  s.jobs.at(0)();
}

TEST_CASE("a null executor is refused") {
  CHECK_THROWS_WITH_AS(on(nullptr), doctest::Contains("null"), std::invalid_argument);
  CHECK_THROWS_AS(on{rondo::executor{}}, std::invalid_argument);
}

TEST_CASE("a timer's own executor is destroyed with its callable") {
  const auto token = std::make_shared<int>(0);
  manual_timer time;
  const auto make = [&] { return on([token](job j) { j(); }); };
  time.schedule_after(1s, doing_nothing(), make());
  const auto id = time.schedule_every(1s, doing_nothing(), make());
  time.schedule_after(1h, doing_nothing(), make());
  CHECK(token.use_count() == 4);
  time.advance(1s);
  CHECK(token.use_count() == 3);
  time.cancel(id);
  CHECK(token.use_count() == 2);
  auto rest = time.stop();
  CHECK(token.use_count() == 1);
  rest.at(0).work();
}

TEST_CASE("timers with the same executor share it without copying it") {
  const auto token = std::make_shared<int>(0);
  manual_timer time;
  {
    const on shared([token](job j) { j(); });
    CHECK(token.use_count() == 2);
    time.schedule_after(1s, doing_nothing(), shared);
    time.schedule_every(1s, doing_nothing(), shared);
    const on another = shared;
    time.schedule_after(1s, doing_nothing(), another);
    CHECK(token.use_count() == 2);
  }
  CHECK(time.advance(1s) == 3);
  CHECK(token.use_count() == 2);
  time.stop();
  CHECK(token.use_count() == 1);
}

TEST_CASE("an executor that cancels its own timer lives until it returns") {
  manual_timer time;
  rondo::timer_id id;
  const auto token = std::make_shared<int>(7);
  int seen = 0;
  id = time.schedule_after(1s, doing_nothing(), on([&, token](job) {
                             CHECK(time.cancel(id) == rondo::cancel_result::cancelled);
                             seen = *token;
                           }));
  time.advance(1s);
  CHECK(seen == 7);
  CHECK(token.use_count() == 1);
  CHECK(time.stats().cancelled == 1);
  CHECK(time.stats().rejected == 0);
}

TEST_CASE(
    "an executor that stop() destroys may call cancel_and_wait() for its own timer, which does not wait") {
  manual_timer time;
  rondo::timer_id id;
  bool is_destroyed = false;
  std::shared_ptr<void> at_its_end(nullptr, [&](void*) {
    CHECK(time.cancel_and_wait(id) == rondo::cancel_result::gone);
    is_destroyed = true;
  });
  id = time.schedule_after(1s, doing_nothing(), on([at_its_end](job) {}));
  at_its_end.reset();
  CHECK(time.stop().size() == 1);
  CHECK(is_destroyed);
}

TEST_CASE("an executor that is destroyed because its call cancels the timer still counts as inside") {
  manual_timer time;
  rondo::timer_id id;
  bool is_refused = false;
  std::shared_ptr<void> at_its_end(nullptr, [&](void*) {
    try {
      time.drain(0s);
    } catch (const std::logic_error&) {
      is_refused = true;
    }
  });
  id = time.schedule_after(1s, doing_nothing(), on([&, at_its_end](job) { time.cancel(id); }));
  at_its_end.reset();
  time.advance(1s);
  CHECK(is_refused);
}

TEST_CASE("one executor may serve many timers, and its exceptions are reported for each of them") {
  int reported = 0;
  manual_timer time({.on_error = [&](std::exception_ptr, const rondo::firing&) { ++reported; }});
  const on refusing([](job) { throw 1; });
  for (int i = 0; i != 10; ++i) time.schedule_after(1s, doing_nothing(), refusing);
  time.advance(1s);
  CHECK(reported == 10);
  CHECK(time.stats().failed == 10);
  CHECK(time.stats().completed == 10);
}

}  // namespace scheduler_own_executor
