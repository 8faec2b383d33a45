// Time that jumps: the machine slept, the process was stopped, or the driver got no processor.
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/virtual_time.hpp"

namespace scheduler_jumps {

using namespace rondo;
using namespace rondo::test;

std::string in_hours(duration d) { return std::to_string(d / 1h) + 'h'; }

/// A task that notes its run: its name, when it was due, how late it is and how many points it missed.
auto telling(journal& ran, std::string name) {
  return [&ran, name = std::move(name)](const firing& f) {
    ran.add(name + '@' + in_hours(f.due.time_since_epoch()) + '+' + in_hours(f.lateness) + '-' +
            std::to_string(f.missed));
  };
}

TEST_CASE("after eight hours of sleep all due tasks run, in order, and get their lateness") {
  manual_timer time;
  journal ran;
  for (const int hours : {9, 7, 1, 8, 2}) time.schedule_after(hours * 1h, telling(ran, "once"));
  time.schedule_every(3h, telling(ran, "skip"));
  time.schedule(every(3h).on_missed(missed_runs::burst), telling(ran, "burst"));
  time.schedule(every(3h).on_missed(missed_runs::burst, 1), telling(ran, "newest"));
  time.schedule(every(3h).on_missed(missed_runs::delay), telling(ran, "delay"));
  time.schedule(after_completion(3h), telling(ran, "gap"));
  time.elapse(8h);
  time.advance(0s);
  CHECK(ran.take() ==
        "once@1h+7h-0 once@2h+6h-0 skip@3h+5h-1 burst@3h+5h-0 newest@6h+2h-1 delay@3h+5h-1 gap@3h+5h-0 "
        "burst@6h+2h-0 once@7h+1h-0 once@8h+0h-0");
  time.advance(4h);  // continues as before; `delay` and `gap` count from when the machine woke
  CHECK(ran.take() ==
        "once@9h+0h-0 skip@9h+0h-0 newest@9h+0h-0 burst@9h+0h-0 delay@11h+0h-0 gap@11h+0h-0 skip@12h+0h-0 "
        "newest@12h+0h-0 burst@12h+0h-0");
}

TEST_CASE("if the machine sleeps during a task, other tasks are late and periodic ones miss points") {
  manual_timer time;
  journal ran;
  time.schedule_after(1h, [&] { time.elapse(8h); });
  time.schedule_after(1h, telling(ran, "same"));
  time.schedule_every(2h, telling(ran, "every"));
  time.advance(1h);
  CHECK(ran.take() == "same@1h+8h-0");
  time.advance(0s);
  CHECK(ran.take() == "every@2h+7h-3");
}

TEST_CASE("a timer that is due shortly after the machine has woken still waits for its time") {
  manual_timer time;
  int runs = 0;
  time.schedule_after(8h + 1ms, counting(runs));
  time.elapse(8h);
  CHECK(time.advance(0s) == 0);
  CHECK(time.advance(1ms) == 1);
}

/// What happens to a timer with a period of one second when nothing ran for a year.
struct outcome {
  std::uint64_t runs = 0, missed = 0;
  duration next{};
};

outcome after_a_year(const recurrence& when) {
  outcome o;
  manual_timer time;
  time.schedule(when, [&](const firing& f) {
    ++o.runs;
    o.missed += f.missed;
  });
  time.elapse(24h * 365 + 500ms);
  time.advance(0s);
  CHECK(time.stats().missed == o.missed);
  CHECK(time.stats().fired == o.runs);
  o.next = time.next_due().value() - time.now();
  return o;
}

TEST_CASE("after a jump of a year, a periodic timer runs as its policy says, and each point is counted") {
  constexpr std::uint64_t points = 365 * 86'400;
  const auto skip = after_a_year(every(1s));
  CHECK(skip.runs == 1);
  CHECK(skip.missed == points - 1);
  CHECK(skip.next == 500ms);
  const auto burst = after_a_year(every(1s).on_missed(missed_runs::burst));
  CHECK(burst.runs == 1000);
  CHECK(burst.missed == points - 1000);
  CHECK(burst.next == 500ms);
  const auto large_burst = after_a_year(every(1s).on_missed(missed_runs::burst, 100'000));
  CHECK(large_burst.runs == 100'000);
  CHECK(large_burst.missed == points - 100'000);
  const auto delay = after_a_year(every(1s).on_missed(missed_runs::delay));
  CHECK(delay.runs == 1);
  CHECK(delay.missed == points - 1);
  CHECK(delay.next == 1s);
  const auto gap = after_a_year(after_completion(1s));
  CHECK(gap.runs == 1);
  CHECK(gap.missed == 0);
  CHECK(gap.next == 1s);
}

TEST_CASE("whatever the jumps, each point of a grid either runs or is missed") {
  for (const auto& when :
       {every(7ms), every(7ms).on_missed(missed_runs::burst), every(7ms).on_missed(missed_runs::burst, 3)}) {
    CAPTURE(when);
    manual_timer time(options{.buckets = 4});
    std::uint64_t accounted = 0;
    time.schedule(when, [&](const firing& f) { accounted += 1 + f.missed; });
    std::uint32_t state = 7;
    for (int i = 0; i != 2000; ++i) {
      state = state * 1664525U + 1013904223U;
      const duration d = (state >> 8) % (i % 100 == 0 ? 10'000'000 : 50'000) * 1us;
      if (i % 2 == 0)
        time.elapse(d);
      else
        time.advance(d);
      time.advance(0s);
      CHECK(accounted == static_cast<std::uint64_t>(since_epoch(time) / 7ms));
    }
  }
}

TEST_CASE("a stall of millions of rounds costs as much as the timers that are due, be it one or many") {
  for (const int timers : {1, 20'000}) {
    CAPTURE(timers);
    manual_timer time(options{.tick = 1us, .buckets = 8});
    std::vector<int> order;
    constexpr duration stall = 30h;  // 13,500 million rounds
    for (int i = 0; i != timers; ++i) {
      const int which = static_cast<int>(static_cast<std::int64_t>(i) * 7919 % timers);
      time.schedule_after(stall / timers * which + 1us, [&order, which] { order.push_back(which); });
    }
    time.elapse(stall);
    CHECK(time.advance(0s) == static_cast<std::size_t>(timers));
    bool in_order = true;
    for (std::size_t i = 0; i != order.size(); ++i) in_order = in_order && order[i] == static_cast<int>(i);
    CHECK(in_order);
    CHECK_FALSE(time.next_due().has_value());
  }
}

}  // namespace scheduler_jumps
