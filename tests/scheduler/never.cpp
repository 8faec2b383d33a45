// Timers that are never due, and the ends of the clock.
#include <limits>

#include "scheduler/virtual_time.hpp"

namespace scheduler_never {

using namespace rondo;
using namespace rondo::test;

using coarse_point = std::chrono::time_point<std::chrono::steady_clock, std::chrono::hours>;
constexpr std::chrono::duration<double> infinity(std::numeric_limits<double>::infinity());

/// A way to schedule a timer that is never due.
struct way {
  const char* name;
  timer_id (*take)(manual_timer&, task);
};

const way ways[] = {
    {"duration::max()", [](auto& t, task w) { return t.schedule_after(duration::max(), std::move(w)); }},
    {"hours::max()",
     [](auto& t, task w) { return t.schedule_after(std::chrono::hours::max(), std::move(w)); }},
    {"ms::max()",
     [](auto& t, task w) { return t.schedule_after(std::chrono::milliseconds::max(), std::move(w)); }},
    {"past the end", [](auto& t, task w) { return t.schedule_after(duration::max() - 1ns, std::move(w)); }},
    {"1e300 s",
     [](auto& t, task w) { return t.schedule_after(std::chrono::duration<double>(1e300), std::move(w)); }},
    {"infinity", [](auto& t, task w) { return t.schedule_after(infinity, std::move(w)); }},
    {"time_point::max()", [](auto& t, task w) { return t.schedule_at(time_point::max(), std::move(w)); }},
    {"a coarse maximum", [](auto& t, task w) { return t.schedule_at(coarse_point::max(), std::move(w)); }},
    {"every max", [](auto& t, task w) { return t.schedule_every(duration::max(), std::move(w)); }},
    {"every hours::max()",
     [](auto& t, task w) { return t.schedule_every(std::chrono::hours::max(), std::move(w)); }},
    {"rescheduled after",
     [](auto& t, task w) {
       const auto id = t.schedule_after(1ms, std::move(w));
       CHECK(t.reschedule_after(id, std::chrono::hours::max()));
       return id;
     }},
    {"rescheduled at",
     [](auto& t, task w) {
       const auto id = t.schedule_every(1ms, std::move(w));
       CHECK(t.reschedule_at(id, time_point::max()));
       return id;
     }},
};

/// Calls body(timer, id) with a timer of each kind that is never due.
template <class Body>
void with_each_way(Body&& body) {
  for (const way& w : ways) {
    CAPTURE(w.name);
    manual_timer time({}, at(1s));  // so that the maximum is not the only deadline past the end
    int runs = 0;
    const timer_id id = w.take(time, counting(runs));
    body(time, id, runs);
  }
}

TEST_CASE("a timer at the maximum, or past the end of the clock, is pending and never due") {
  with_each_way([](manual_timer& time, timer_id id, const int& runs) {
    CHECK(time.pending(id));
    CHECK(time.pending() == 1);
    CHECK_FALSE(time.next_due().has_value());
    CHECK(time.advance_to_next() == 0);
    CHECK(time.advance(24h * 365 * 100) == 0);
    CHECK(time.pending(id));
    CHECK(time.advance(duration::max()) == 0);
    CHECK(time.now() == time_point::max());
    CHECK(time.pending(id));
    CHECK(runs == 0);
  });
}

TEST_CASE("a timer that is never due can be cancelled") {
  with_each_way([](manual_timer& time, timer_id id, const int&) {
    CHECK(time.cancel(id) == cancel_result::cancelled);
    CHECK(time.pending() == 0);
    CHECK(adds_up(time.stats()));
  });
}

TEST_CASE("a timer that is never due can be moved to a real deadline") {
  with_each_way([](manual_timer& time, timer_id id, const int& runs) {
    CHECK(time.reschedule_after(id, 5ms));
    CHECK(time.next_due() == time.now() + 5ms);
    CHECK(time.advance(5ms) == 1);
    CHECK(runs == 1);
  });
}

TEST_CASE("stop() hands back timers that are never due") {
  with_each_way([](manual_timer& time, timer_id id, const int&) {
    const auto list = time.stop();
    REQUIRE(list.size() == 1);
    CHECK(list[0].id == id);
    CHECK(list[0].due == time_point::max());
  });
}

TEST_CASE("timers that are never due do not affect others") {
  manual_timer time;
  journal ran;
  time.schedule_after(duration::max(), ran.noting("never"));
  time.schedule_after(1ms, ran.noting("soon"));
  time.schedule_after(24h * 365 * 200, ran.noting("far"));
  CHECK(time.next_due() == at(1ms));
  CHECK(time.advance(1ms) == 1);
  CHECK(time.next_due() == at(24h * 365 * 200));
  CHECK(time.advance_to_next() == 1);
  CHECK_FALSE(time.next_due().has_value());
  CHECK(ran.take() == "soon far");
}

TEST_CASE("a deadline in the last ticks of the clock neither hangs the driver nor fires early") {
  for (const duration tick : {duration(1ns), duration(1ms), duration(10s)}) {
    for (const duration before_end : {duration(1ns), duration(1ms), duration(1s), duration(1h)}) {
      CAPTURE(tick);
      CAPTURE(before_end);
      manual_timer time(options{.tick = tick});
      int runs = 0;
      const time_point due = time_point::max() - before_end;
      time.schedule_at(due, counting(runs));
      time.advance(due.time_since_epoch() - 1ns);
      CHECK(runs == 0);
      CHECK_NOTHROW(time.advance(duration::max()));
      // Its tick may begin past the end. Then the timer is never due, and next_due() does not count it.
      CHECK(time.next_due().has_value() == false);
      CHECK(runs + static_cast<int>(time.pending()) == 1);
    }
  }
}

TEST_CASE("a periodic timer whose next run is past the end of the clock is never due") {
  manual_timer time({}, time_point::max() - 25h);
  int runs = 0;
  const auto id = time.schedule_every(10h, counting(runs));
  CHECK(time.advance(duration::max()) == 2);
  CHECK(runs == 2);
  CHECK(time.pending(id));
  CHECK_FALSE(time.next_due().has_value());
}

TEST_CASE("a timer may start at the beginning of the clock") {
  manual_timer time({}, time_point::min());
  int runs = 0;
  time.schedule_after(0s, counting(runs));
  time.schedule_after(1ms, counting(runs));
  CHECK(time.advance(0s) == 1);
  CHECK(time.next_due() == time_point::min() + 1ms);
  CHECK(time.advance(1ms) == 1);
  CHECK(time.now() == time_point::min() + 1ms);
}

TEST_CASE("the longest duration means never, even if adding it does not reach the end of the clock") {
  for (const time_point start : {time_point::min(), at(-1h), at(-1ns)}) {
    manual_timer time({}, start);
    int runs = 0;
    time.schedule_after(duration::max(), counting(runs));
    time.schedule_every(std::chrono::hours::max(), counting(runs));
    time.reschedule_after(time.schedule_after(1ms, counting(runs)), duration::max());
    CHECK_FALSE(time.next_due().has_value());
    time.advance(duration::max());
    CHECK(runs == 0);
    CHECK(time.pending() == 3);
  }
}

TEST_CASE("at the end of the clock, the longest duration still means never, and zero means now") {
  manual_timer time({}, time_point::max() - 1h);
  int never = 0, now = 0;
  time.elapse(59min);
  time.schedule_after(duration::max(), counting(never));
  time.schedule_after(0s, counting(now));
  time.schedule_at(at(0s), counting(now));
  CHECK(time.advance(0s) == 2);
  CHECK(time.advance(1h) == 0);
  CHECK(never == 0);
}

}  // namespace scheduler_never
