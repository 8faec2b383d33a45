// Out of memory, a call either succeeds or changes nothing, and a timer that waits or runs loses nothing.
#include <memory>
#include <new>
#include <string>

#include "calendar/almanac.hpp"
#include "failing_new.hpp"

namespace calendar_out_of_memory {

using namespace calendar_test;

// These tests need the replaced operator new.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

/// Repeats `operation` with the 1st, 2nd, … allocation failing, until none of its allocations fails. Returns how often
/// one failed.
template <class Operation>
int fail_everywhere(Operation&& operation) {
  for (int k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    place p("2026-05-01 12:00:00");
    const auto here = std::make_shared<int>();
    bool done = false;
    {
      const failing_new failing(static_cast<std::size_t>(k));
      try {
        operation(p, here);
        done = true;
      } catch (const std::bad_alloc&) {
      }
      if (done && !failing.struck()) return k;
    }
    if (!done) {
      CHECK(here.use_count() == 1);
      CHECK(p.timers->pending() == 0);
      CHECK(p.timers->next_due() == std::nullopt);
      CHECK(p.time.pending() == 0);
    }
    CHECK(adds_up(p.time.stats()));
    p.wall.set(utc("2026-05-01 12:30:00"));
    p.time.advance(24h);
  }
}

TEST_CASE("a scheduling call that runs out of memory changes nothing") {
  CHECK(fail_everywhere([](place& p, const std::shared_ptr<int>& kept) {
          p.timers->schedule_at(p.wall.now() + 1h, [kept] {});
        }) > 1);
  const auto each_day = daily(0s, "Europe/Berlin");
  CHECK(fail_everywhere([&](place& p, const std::shared_ptr<int>& kept) {
          p.timers->schedule(each_day, [kept](const wall_firing&) {});
        }) > 1);
}

TEST_CASE("a calendar is created, or the call throws std::bad_alloc") {
  daily(0s, "Europe/Berlin");  // so that the zone has been read
  for (int k = 0;; ++k) {
    REQUIRE(k < 1000);
    const failing_new failing(static_cast<std::size_t>(k));
    try {
      cron("0 0 1 jan-dec mon,tue", "Europe/Berlin");
      if (!failing.struck()) break;
    } catch (const std::bad_alloc&) {
    }
  }
  const auto c = daily(0s, "Europe/Berlin");
  const failing_new failing;
  CHECK(c.next(wall_time{}).has_value());
}

TEST_CASE("finding a point allocates nothing, also in years that the zone's file does not list") {
  for (const auto& c : {daily(2h + 30min, "Europe/Berlin"), cron("0 * * * *", "Europe/Berlin")})
    for (const std::string after : {"2026-03-29 00:30:00", "2100-03-28 00:30:00", "2261-10-27 00:30:00"}) {
      CAPTURE(after);
      const wall_time from = utc(after);
      bool allocates = false;
      {
        const failing_new failing;
        static_cast<void>(c.next(from));
        allocates = failing.struck();
      }
      CHECK_FALSE(allocates);
    }
}

TEST_CASE("a calendar_timers is created, or its constructor throws std::bad_alloc") {
  manual_timer time;
  manual_wall_clock wall(time, wall_time{});
  int failed = 0;
  for (int k = 0;; ++k) {
    REQUIRE(k < 1000);
    const failing_new failing(static_cast<std::size_t>(k));
    try {
      const calendar_timers timers(time, wall);
      if (!failing.struck()) break;
    } catch (const std::bad_alloc&) {
      ++failed;
    }
  }
  CHECK(failed > 2);
  CHECK(time.pending() == 0);
}

TEST_CASE("setting the clock without memory fails; setting it again moves all timers") {
  for (int k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    place p("2026-05-01 12:00:00", {.buckets = 1});
    for (int i = 0; i != 5; ++i)
      p.timers->schedule_at(utc("2026-05-03 12:00:00") + i * 1h, p.noting(std::to_string(i)));
    const auto target = utc("2026-05-02 12:00:00");
    bool done = false;
    {
      const failing_new failing(static_cast<std::size_t>(k));
      try {
        p.wall.set(target);
        done = true;
      } catch (const std::bad_alloc&) {
      }
      if (done && !failing.struck()) break;
    }
    if (!done) p.wall.set(target);
    p.time.advance(24h);
    CHECK(p.ran.take() == "0@2026-05-03 12:00");
    p.time.advance(4h);
    CHECK(p.runs.size() == 5);
  }
}

TEST_CASE("a calendar that runs out of memory continues") {
  std::optional<failing_new> none;
  place p("2026-05-01 12:00:30", {.buckets = 1});
  int runs = 0;
  p.timers->schedule(cron("* * * * *", "UTC"), [&] { ++runs; });
  for (int i = 0; i != 3; ++i) {
    const failing_new failing;
    p.time.advance(1min);
  }
  CHECK(runs == 3);
  p.time.advance(1min);
  CHECK(runs == 4);
}

TEST_CASE("a timer that fires early still waits for its deadline when memory runs out") {
  place p("2026-05-01 12:00:00", {.buckets = 1});
  int runs = 0;
  p.timers->schedule_at(utc("2026-05-01 12:01:00"), [&] { ++runs; });
  p.wall.set_silently(utc("2026-05-01 11:00:00"));
  {
    const failing_new failing;
    p.time.advance(1min);
  }
  CHECK(runs == 0);
  p.time.advance(1h - 1ms);
  CHECK(runs == 0);
  p.time.advance(1ms);
  CHECK(runs == 1);
}

TEST_SUITE_END();

}  // namespace calendar_out_of_memory
