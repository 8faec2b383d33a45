// A scheduler behaves the same anywhere on the clock: after years of running, before the epoch, at both ends.
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "scheduler/virtual_time.hpp"

namespace scheduler_anywhere_on_the_clock {

using namespace rondo;
using namespace rondo::test;

constexpr time_point first = time_point::min();
constexpr time_point last = time_point::max();

/// A task that notes its name, when it ran and when it was due, both relative to the start.
auto telling(manual_timer& time, journal& ran, time_point start, std::string name) {
  return [&time, &ran, start, name = std::move(name)](const firing& f) {
    ran.add(name + '@' + std::to_string((time.now() - start).count()) + '/' +
            std::to_string((f.due - start).count()) + '+' + std::to_string(f.missed));
  };
}

/// What happens in about a hundred turns of a small wheel that is 5 turns old: near and far timers, moved, cancelled
/// and periodic ones, and two stalls.
std::string some_hundred_turns(time_point start, duration tick) {
  manual_timer time(options{.tick = tick, .buckets = 8}, start);
  journal ran;
  time.advance(43 * tick);
  std::vector<timer_id> ids;
  std::uint32_t state = 1;
  const auto random = [&](int below) {
    state = state * 1664525U + 1013904223U;
    return static_cast<int>((state >> 8) % static_cast<std::uint32_t>(below));
  };
  const auto tell = [&](std::string name) { return telling(time, ran, start, std::move(name)); };
  for (int i = 0; i != 60; ++i)
    ids.push_back(time.schedule_after((random(900) - 10) * tick, tell(std::to_string(i))));
  time.schedule_every(7 * tick, tell("skip"));
  time.schedule(every(33 * tick).on_missed(missed_runs::burst), tell("burst"));
  time.schedule(every(50 * tick).on_missed(missed_runs::delay).jitter(0.5, 1), tell("delay"));
  for (int i = 0; i != 20; ++i) {
    time.reschedule_after(ids[static_cast<std::size_t>(random(60))], random(700) * tick);
    time.cancel(ids[static_cast<std::size_t>(random(60))]);
    if (i % 10 == 5) time.elapse(100 * tick);
    time.advance(random(30) * tick);
  }
  time.advance(600 * tick);
  ran.add("next@" + std::to_string((time.next_due().value() - start).count()));
  return ran.take();
}

TEST_CASE("a timer that has run for years behaves like a new one, to the tick") {
  for (const duration tick : {duration(1ns), duration(1us), duration(1ms)}) {
    const std::string anew = some_hundred_turns(at(0s), tick);
    for (const int power : {31, 32, 53, 62}) {
      const duration::rep there = duration::rep{1} << power;
      for (const duration::rep off : {-4999, -1, 0, 1}) {
        CAPTURE(power);
        CAPTURE(off);
        CHECK(some_hundred_turns(at(duration(there + off)), tick) == anew);
        CHECK(some_hundred_turns(at(duration(-there + off)), tick) == anew);
        if (there < last.time_since_epoch() / tick)  // that many ticks, too
          CHECK(some_hundred_turns(at((there + off) * tick), tick) == anew);
      }
    }
  }
}

TEST_CASE("a timer at either end of the clock behaves like any other, to the tick") {
  for (const duration tick : {duration(1ns), duration(1us), duration(1ms)}) {
    const std::string anew = some_hundred_turns(at(0s), tick);
    for (const duration off : {0 * tick, tick / 2, tick, 3 * tick}) {
      CAPTURE(tick);
      CAPTURE(off);
      CHECK(some_hundred_turns(first + off, tick) == anew);
      CHECK(some_hundred_turns(last - 5000 * tick - off, tick) == anew);
    }
  }
}

TEST_CASE("a timer that runs past 2^31 and 2^32 ticks loses no task that was scheduled on the way") {
  manual_timer time;
  int far = 0, near = 0, often = 0;
  constexpr duration step = 2'147'483ms;  // 2^31 ticks in a thousand
  time.schedule_after(2000 * step + 5ms, counting(far));
  time.schedule_every(step, counting(often));
  bool on_time = true;
  for (int i = 0; i != 3000; ++i) {
    time.advance(step);
    time.schedule_after(100ms, counting(near));
    time.advance(99ms);
    on_time = on_time && near == i;
    time.advance(1ms);
    on_time = on_time && near == i + 1;
  }
  CHECK(on_time);
  CHECK(far == 1);
  CHECK(often == 3000);
}

TEST_CASE("deadlines at both ends of the clock keep their order, to the nanosecond") {
  for (const time_point start : {first, first + 1ns, at(-1h), at(0s), at(duration(std::int64_t{1} << 62))}) {
    CAPTURE(start);
    manual_timer time(options{.tick = 1ns}, start);
    journal ran;
    const time_point dues[] = {last, last - 1ns, last - 2ns, start + 1h, start, first + 1ns, first};
    const char* const names[] = {"never", "end-1", "end-2", "1h", "start", "first+1", "first"};
    for (std::size_t i = 0; i != std::size(dues); ++i) time.schedule_at(dues[i], ran.noting(names[i]));
    time.advance(0s);
    if (start == first)
      CHECK(ran.take() == "start first");
    else if (start == first + 1ns)
      CHECK(ran.take() == "first start first+1");
    else
      CHECK(ran.take() == "first first+1 start");
    time.advance(1h);
    CHECK(ran.take() == (start == first ? "first+1 1h" : "1h"));
    CHECK(time.next_due() == last - 2ns);
    while (time.now() < last - 3ns) time.advance(rondo::saturating_difference(last - 3ns, time.now()));
    CHECK(ran.take().empty());
    CHECK(time.advance(1ns) == 1);
    CHECK(time.advance(1ns) == 1);
    CHECK(ran.take() == "end-2 end-1");
    CHECK(time.advance(1h) == 0);
    CHECK(time.pending() == 1);
  }
}

TEST_CASE("a timer may be moved from one end of the clock to the other, and back") {
  manual_timer time(options{.tick = 1ns});
  int runs = 0;
  const timer_id id = time.schedule_at(first, counting(runs));
  for (const time_point due : {last - 1ns, first, last, first + 1ns, last - 1ns}) {
    CHECK(time.reschedule_at(id, due));
    CHECK(time.next_due() == (due == last ? std::optional<time_point>() : due));
  }
  time.elapse(duration::max() - 2ns);
  CHECK(time.advance(0s) == 0);
  CHECK(time.advance(1ns) == 1);
}

TEST_CASE("a burst at the end of the clock has its points, and not the moment that means never") {
  manual_timer time(options{.tick = 1ns}, last - 10h);
  int runs = 0;
  time.schedule(every(1h).on_missed(missed_runs::burst), [&] {
    if (++runs == 100) time.stop();
  });
  time.elapse(duration::max());
  time.advance(0s);
  CHECK(runs == 9);  // one hour after another, until one before the end
  CHECK(time.pending() == 1);
}

}  // namespace scheduler_anywhere_on_the_clock
