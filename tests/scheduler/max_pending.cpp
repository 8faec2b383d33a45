// The limit on pending timers.
#include <memory>
#include <stdexcept>

#include "scheduler/virtual_time.hpp"

namespace scheduler_max_pending {

using namespace rondo;
using namespace rondo::test;

bool is_full(manual_timer& time) {
  try {
    time.cancel(time.schedule_after(1h, doing_nothing()));
    return false;
  } catch (const capacity_error&) {
    return true;
  }
}

TEST_CASE("a scheduler takes max_pending timers and not one more") {
  manual_timer time(options{.max_pending = 3});
  time.schedule_after(1ms, doing_nothing());
  time.schedule_every(2ms, doing_nothing());
  CHECK_FALSE(is_full(time));
  time.schedule_after(std::chrono::hours::max(), doing_nothing());
  CHECK_THROWS_WITH_AS(time.schedule_after(1ms, doing_nothing()), doctest::Contains("3"), capacity_error);
  CHECK_THROWS_AS(time.schedule_at(at(1ms), doing_nothing()), capacity_error);
  CHECK_THROWS_AS(time.schedule_every(1ms, doing_nothing()), capacity_error);
}

TEST_CASE("a refusal because of max_pending changes nothing") {
  manual_timer time(options{.max_pending = 1});
  const auto token = std::make_shared<int>(0);
  const auto id = time.schedule_after(5ms, doing_nothing());
  CHECK_THROWS_AS(time.schedule_after(1ms, [token] {}), capacity_error);
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 1);
  CHECK(time.pending(id));
  CHECK(time.next_due() == at(5ms));
  CHECK(time.stats().scheduled == 1);
  CHECK(adds_up(time.stats()));
  CHECK(time.advance(1h) == 1);
}

TEST_CASE("other refusals do not take a place") {
  manual_timer time(options{.max_pending = 1});
  CHECK_THROWS_AS(time.schedule_after(1ms, rondo::task()), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_every(0s, doing_nothing()), std::invalid_argument);
  CHECK_FALSE(is_full(time));
}

TEST_CASE("with max_pending 0 a scheduler takes no timers") {
  manual_timer time(options{.max_pending = 0});
  CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), capacity_error);
}

TEST_CASE("a place is free again after cancel(), again and again") {
  manual_timer time(options{.max_pending = 2});
  time.schedule_every(1h, doing_nothing());
  for (int i = 0; i != 100; ++i) {
    const auto id = time.schedule_after(1ms, doing_nothing());
    CHECK(is_full(time));
    time.cancel(id);
    time.cancel(id);
    CHECK_FALSE(is_full(time));
  }
}

TEST_CASE("a place is free as soon as its one-shot has started") {
  manual_timer time(options{.max_pending = 1});
  int runs = 0;
  time.schedule_after(1ms, [&] {
    time.schedule_after(1ms, counting(runs));
    CHECK(is_full(time));
  });
  time.advance(1ms);
  CHECK(is_full(time));
  time.advance(1ms);
  CHECK(runs == 1);
  CHECK_FALSE(is_full(time));
}

TEST_CASE("a periodic task keeps its place during its runs, until it is cancelled") {
  manual_timer time(options{.max_pending = 1});
  timer_id id;
  id = time.schedule_every(1ms, [&](const rondo::firing& f) {
    CHECK(is_full(time));
    if (f.run != 3) return;
    time.cancel(id);
    CHECK_FALSE(is_full(time));
  });
  time.advance(10ms);
  CHECK_FALSE(is_full(time));
}

TEST_CASE("rescheduling needs no place") {
  manual_timer time(options{.max_pending = 1});
  const auto id = time.schedule_after(1ms, doing_nothing());
  CHECK(time.reschedule_after(id, 5ms));
  CHECK(time.reschedule_after(id, std::chrono::hours::max()));
  CHECK(is_full(time));
  time.cancel(id);
  CHECK_FALSE(is_full(time));
}

TEST_CASE("a timer whose job an executor has keeps its place until the job starts or is dropped") {
  std::vector<job> jobs;
  manual_timer time(options{.max_pending = 1, .run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  REQUIRE(jobs.size() == 1);
  CHECK(is_full(time));
  SUBCASE("started") { jobs[0](); }
  SUBCASE("dropped") { jobs.clear(); }
  CHECK_FALSE(is_full(time));
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a timer whose job the executor refuses frees its place") {
  manual_timer time(options{.max_pending = 1,
                            .run_on = [](const job&) { throw std::runtime_error("full"); },
                            .on_error = [](std::exception_ptr, const rondo::firing&) {}});
  time.schedule_after(1ms, doing_nothing());
  CHECK(is_full(time));
  time.advance(1ms);
  CHECK_FALSE(is_full(time));
}

}  // namespace scheduler_max_pending
