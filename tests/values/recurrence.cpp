// Recurrences as values: what they plan, compare and print, without any scheduler.
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/recurrence.hpp>

#include "scheduler/seeds.hpp"

namespace values_recurrence {

using namespace std::chrono_literals;
using namespace rondo;

constexpr time_point at(duration since_start) { return time_point(since_start); }

double ms(time_point t) { return std::chrono::duration<double, std::milli>(t.time_since_epoch()).count(); }

/// The times of the first `n` runs, each started on time: "100 200 300" (in ms).
std::string plan(const recurrence& r, int n, time_point now = at(0s)) {
  std::ostringstream text;
  std::optional<recurrence::occurrence> o = r.first(now);
  for (int i = 0; i != n && o; ++i) {
    text << (i == 0 ? "" : " ") << ms(o->due);
    o = r.next(*o, std::max(o->due, now));
  }
  if (!o) text << " end";
  return text.str();
}

std::string text_of(const recurrence& r) {
  std::ostringstream text;
  text << r;
  return text.str();
}

/// The decision of every(300ms) at `now`, started at 0, after its run at 300.
recurrence::look look_at(const recurrence& r, duration now) {
  const auto second = r.next(r.first(at(0s)), at(300ms));
  REQUIRE(second);
  CHECK(second->due == at(600ms));
  return r.look_at(*second, at(now));
}

TEST_CASE("each kind of recurrence has its own gaps") {
  CHECK(plan(every(300ms), 4) == "300 600 900 1200");
  CHECK(plan(after_completion(300ms), 4) == "300 600 900 1200");
  CHECK(plan(intervals({1s, 2s, 5s}), 9) == "1000 3000 8000 end");
  CHECK(plan(cycle({1s, 2s, 5s}), 7) == "1000 3000 8000 9000 11000 16000 17000");
  CHECK(plan(backoff(100ms, 2, 500ms), 6) == "100 300 700 1200 1700 2200");
  CHECK(plan(backoff(100ms, 1.5, 1h), 4) == "100 250 475 812.5");
  CHECK(plan(backoff(100ms, 1, 1s), 4) == "100 200 300 400");
  CHECK(plan(backoff(100ms, 10, 100ms), 3) == "100 200 300");
}

TEST_CASE("the gaps of a list may be given as a vector") {
  const std::vector<duration> gaps{1s, 2s};
  CHECK(intervals(gaps) == intervals({1s, 2s}));
  CHECK(cycle(gaps) == cycle({1s, 2s}));
}

TEST_CASE("times() counts runs") {
  CHECK(plan(every(10ms).times(3), 9) == "10 20 30 end");
  CHECK(plan(every(10ms).times(1), 9) == "10 end");
  CHECK(plan(after_completion(10ms).times(2), 9) == "10 20 end");
  CHECK(plan(intervals({1s, 2s, 5s}).times(2), 9) == "1000 3000 end");
  CHECK(plan(intervals({1s, 2s}).times(7), 9) == "1000 3000 end");
  CHECK(plan(cycle({1s, 2s}).times(5), 9) == "1000 3000 4000 6000 7000 end");
}

TEST_CASE("the first run may be at another time, before the first gap of a list") {
  CHECK(plan(every(300ms).first_after(50ms), 3) == "50 350 650");
  CHECK(plan(every(300ms).first_after(0s), 3) == "0 300 600");
  CHECK(plan(every(300ms).first_at(at(1s)), 3) == "1000 1300 1600");
  CHECK(plan(intervals({1s, 2s, 5s}).first_after(10s), 9) == "10000 11000 13000 18000 end");
  CHECK(plan(cycle({1s, 2s}).first_at(at(5s)), 4) == "5000 6000 8000 9000");
  CHECK(plan(backoff(1s, 2, 4s).first_after(0s), 5) == "0 1000 3000 7000 11000");
  CHECK(plan(after_completion(1s).first_after(10ms), 3) == "10 1010 2010");
}

TEST_CASE("of first_after() and first_at(), the later call counts") {
  CHECK(every(1s).first_after(2s).first_at(at(3s)) == every(1s).first_at(at(3s)));
  CHECK(every(1s).first_at(at(3s)).first_after(2s) == every(1s).first_after(2s));
}

TEST_CASE("aligned_to() runs at the points of a grid through the origin, on both sides of it") {
  CHECK(plan(every(10ms).aligned_to(at(0s)), 3) == "10 20 30");
  CHECK(plan(every(10ms).aligned_to(at(3ms)), 3) == "3 13 23");
  CHECK(plan(every(10ms).aligned_to(at(103ms)), 3) == "3 13 23");
  CHECK(plan(every(10ms).aligned_to(at(-7ms)), 3) == "3 13 23");
  CHECK(plan(every(10ms).aligned_to(at(-20ms)), 2) == "10 20");
  CHECK(plan(every(10ms).aligned_to(at(50ms)), 2) == "10 20");
  CHECK(plan(every(10ms).aligned_to(at(3ms)), 2, at(13ms)) == "23 33");  // later than now
  CHECK(plan(every(10ms).aligned_to(at(3ms)), 2, at(13ms - 1ns)) == "13 23");
  CHECK(plan(every(10ms).aligned_to(at(3ms)).times(2), 9, at(-1s)) == "-997 -987 end");
}

TEST_CASE(
    "aligned_to() works from one end of the clock to the other, and a grid that leaves it is never due") {
  const auto first = [](const recurrence& r, time_point now) { return r.first(now).due; };
  CHECK(first(every(1ns).aligned_to(time_point::max()), time_point::min()) == time_point::min() + 1ns);
  CHECK(first(every(2ns).aligned_to(time_point::max()), time_point::min()) == time_point::min() + 1ns);
  CHECK(first(every(2ns).aligned_to(time_point::min()), time_point::max() - 2ns) == time_point::max() - 1ns);
  CHECK(first(every(1h).aligned_to(time_point::min()), time_point::max() - 1ns) == time_point::max());
  CHECK(first(every(duration::max()).aligned_to(at(5s)), at(0s)) == at(5s));
  CHECK(first(every(duration::max()).aligned_to(at(5s)), at(5s)) == time_point::max());
}

TEST_CASE("aligned_to() replaces first_after() and first_at(), and they replace it") {
  const recurrence aligned = every(1s).aligned_to(at(5s));
  CHECK(every(1s).first_after(2s).aligned_to(at(5s)) == aligned);
  CHECK(every(1s).first_at(at(3s)).aligned_to(at(5s)) == aligned);
  CHECK(aligned.first_after(2s) == every(1s).first_after(2s));
  CHECK(aligned.first_at(at(5s)) == every(1s).first_at(at(5s)));
  CHECK(aligned != every(1s).first_at(at(5s)));
  CHECK(aligned != every(1s).aligned_to(at(6s)));
}

TEST_CASE("jitter delays the runs of aligned_to(), and does not move its grid") {
  const recurrence r = every(10ms).aligned_to(at(3ms)).jitter(1, 7);
  auto o = r.first(at(0s));
  for (const duration grid : {3ms, 13ms, 23ms}) {
    CHECK(o.grid == at(grid));
    CHECK(o.due > o.grid);
    CHECK(o.due < o.grid + 10ms);
    o = *r.next(o, o.due);
  }
}

TEST_CASE("only an every() can be aligned, and the message says what was to be") {
  const auto refused = [](const recurrence& r) -> std::string {
    try {
      static_cast<void>(r.aligned_to(at(0s)));
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "accepted";
  };
  CHECK(refused(after_completion(1s)) == "rondo: aligned_to() takes an every(), not after_completion(1s)");
  CHECK(refused(intervals({1s, 2s})) == "rondo: aligned_to() takes an every(), not intervals({1s, 2s})");
  CHECK(refused(cycle({1s})).ends_with("not cycle({1s})"));
  CHECK(refused(backoff(1s, 2, 4s)).ends_with("not backoff(1s, 2, 4s)"));
}

TEST_CASE("of two calls of jitter(), the later one counts, with or without a seed") {
  CHECK(every(1s).jitter(0.5, 7).jitter(0.2) == every(1s).jitter(0.2));
  CHECK(every(1s).jitter(0.5).jitter(0.2, 7) == every(1s).jitter(0.2, 7));
}

TEST_CASE("a first run in the past is due now, and the grid starts at the time that was given") {
  CHECK(plan(every(10ms).first_at(at(-25ms)), 4) == "0 5 15 25");
  CHECK(plan(every(10ms).first_at(at(-20ms)), 3) == "0 10 20");
  CHECK(plan(every(10ms).first_after(-25ms), 3) == "0 5 15");
  CHECK(plan(cycle({1s, 2s, 5s}).first_at(at(-9500ms)), 4) == "0 1500 6500 7500");
  CHECK(plan(intervals({1s, 2s, 5s}).first_at(at(-2s)), 9) == "0 1000 6000 end");
  CHECK(plan(intervals({1s, 2s}).first_at(at(-100s)), 9) == "0 end");
  CHECK(plan(after_completion(10ms).first_at(at(-25ms)), 3) == "0 10 20");
  const auto first = every(10ms).first_at(at(-25ms)).first(at(0s));
  CHECK(every(10ms).look_at(first, at(0s)).missed == 0);
  CHECK(every(10ms).on_missed(missed_runs::burst).look_at(first, at(3ms)).points == 1);
}

TEST_CASE("skip runs once, reports how many points it missed, and keeps the grid") {
  const auto look = look_at(every(300ms), 950ms);
  CHECK(look.run.due == at(600ms));
  CHECK(look.missed == 1);
  REQUIRE(look.next);
  CHECK(look.next->due == at(1200ms));
}

TEST_CASE("a point has passed when its tick has begun") {
  const recurrence r = every(300ms);
  const auto second = *r.next(r.first(at(0s)), at(300ms));
  const auto look = [&](duration tick) { return r.look_at(second, at(1250ms), at(tick)); };
  CHECK(look(599ms).missed == 0);  // (it was due when it was scheduled, so it did not wait for a tick)
  CHECK(look(899ms).missed == 0);
  CHECK(look(899ms).next->due == at(900ms));
  CHECK(look(900ms).missed == 1);
  CHECK(look(900ms).next->due == at(1200ms));
  CHECK(look(1200ms).missed == 2);
  CHECK(r.look_at(second, at(1250ms)).missed == 2);
  const auto moves = r.on_missed(missed_runs::delay).look_at(second, at(1250ms), at(900ms));
  CHECK(moves.next->due == at(1550ms));  // from now, not from the tick
}

TEST_CASE("burst runs once for each point that has passed") {
  const auto r = every(300ms).on_missed(missed_runs::burst);
  const auto look = look_at(r, 950ms);
  CHECK(look.run.due == at(600ms));
  CHECK(look.missed == 0);
  CHECK(look.points == 2);
  REQUIRE(look.next);
  CHECK(look.next->due == at(900ms));
  const auto second = r.look_at(*look.next, at(950ms));
  CHECK(second.run.due == at(900ms));
  REQUIRE(second.next);
  CHECK(second.next->due == at(1200ms));
}

TEST_CASE("if a burst exceeds its limit, the newest points run and the others are missed") {
  const auto look = look_at(every(300ms).on_missed(missed_runs::burst, 3), 3100ms);  // 600, 900, … 3000
  CHECK(look.points == 9);
  CHECK(look.run.due == at(2400ms));
  CHECK(look.missed == 6);
  CHECK(look.next.value().due == at(2700ms));
  CHECK(look_at(every(300ms).on_missed(missed_runs::burst, 1), 950ms).run.due == at(900ms));
  CHECK(look_at(every(300ms).on_missed(missed_runs::burst, 2), 950ms).missed == 0);
}

TEST_CASE("missed_runs::delay moves the grid") {
  const auto look = look_at(every(300ms).on_missed(missed_runs::delay), 950ms);
  CHECK(look.run.due == at(600ms));
  CHECK(look.missed == 1);
  CHECK(look.next.value().due == at(1250ms));
}

TEST_CASE("a run that is late by less than a period misses nothing and keeps the grid") {
  for (const auto what : {missed_runs::skip, missed_runs::burst, missed_runs::delay}) {
    const auto look = look_at(every(300ms).on_missed(what), 899ms);
    CHECK(look.run.due == at(600ms));
    CHECK(look.missed == 0);
    CHECK(look.next.value().due == at(900ms));
  }
}

TEST_CASE("points of a list that have passed are used up") {
  const auto list = intervals({1s, 2s, 5s});
  const auto look = list.look_at(list.first(at(0s)), at(4s));
  CHECK(look.run.due == at(1s));
  CHECK(look.missed == 1);
  CHECK(look.next.value().due == at(8s));
  const auto all = list.look_at(list.first(at(0s)), at(1h));
  CHECK(all.missed == 2);
  CHECK(all.last);
  CHECK(!all.next);
  CHECK(list.on_missed(missed_runs::delay).look_at(list.first(at(0s)), at(4s)).next.value().due == at(9s));
}

TEST_CASE("look_at() of a late run gives the same result as its points taken one by one") {
  for (const std::uint64_t seed : rondo::test::seeds("recurrences", 200)) {
    CAPTURE(seed);
    rondo::test::dice dice(seed);
    std::vector<duration> gaps(1 + dice.roll(5));
    for (auto& gap : gaps) gap = duration(1 + dice.roll(1000));
    const recurrence kinds[] = {every(gaps[0]), intervals(gaps), cycle(gaps),
                                backoff(gaps[0], 1 + static_cast<double>(dice.roll(10)) / 7, gaps[0] * 9)};
    const recurrence& r = kinds[dice.roll(4)];
    const auto planned = r.first(at(0s));
    const time_point now = planned.due + duration(dice.roll(20'000));
    std::uint64_t points = 1;
    auto next = r.look_at(planned, planned.due).next;
    for (; next && next->due <= now; ++points) next = r.look_at(*next, next->due).next;
    CHECK(r.look_at(planned, now).points == points);
    CHECK(r.look_at(planned, now).missed == points - 1);
    CHECK(r.look_at(planned, now).next.has_value() == next.has_value());
    if (next) CHECK(r.look_at(planned, now).next->due == next->due);
  }
}

TEST_CASE("after_completion() counts from the end of the run and misses nothing") {
  const auto r = after_completion(100ms);
  const auto first = r.first(at(0s));
  CHECK(r.look_at(first, at(10s)).missed == 0);
  CHECK(r.next(first, at(10s)).value().due == at(10100ms));
}

TEST_CASE("an odd period does not drift in a million runs") {
  const auto r = every(333'400us + 7ns);
  auto o = r.first(at(0s));
  for (int i = 0; i != 1'000'000; ++i) {
    // Each run is late by up to a millisecond, as with ticks.
    o = r.next(o, o.due + duration((o.due.time_since_epoch().count() * 7919) % 1'000'000)).value();
  }
  CHECK(o.due == at(1'000'001 * (333'400us + 7ns)));
  CHECK(o.run == 1'000'001);
}

TEST_CASE(
    "jitter stays within its part of the period, is never before the grid, and does not move the grid") {
  const auto r = every(100ms).jitter(0.25, 42);
  auto o = r.first(at(0s));
  duration least = 1h, most = 0s;
  for (int i = 1; i != 10'000; ++i) {
    CHECK(o.grid == at(i * 100ms));
    least = std::min(least, o.due - o.grid);
    most = std::max(most, o.due - o.grid);
    o = r.next(o, o.due).value();
  }
  CHECK(least >= 0s);
  CHECK(least < 100us);
  CHECK(most < 25ms);
  CHECK(most > 24900us);
}

TEST_CASE("jitter alone misses nothing, however coarse the tick") {
  const auto r = every(10'300us).jitter(1, 7);
  auto o = r.first(at(0s));
  for (int i = 0; i != 10'000; ++i) {
    const time_point start = std::chrono::ceil<std::chrono::milliseconds>(o.due);
    const auto look = r.look_at(o, start);
    CHECK(look.missed == 0);
    o = look.next.value();
  }
  CHECK(o.grid == at(10'001 * 10'300us));
}

TEST_CASE("the jitter of a list is a part of the gap before the run") {
  const auto r = cycle({10ms, 1000ms}).jitter(1, 3);
  auto o = r.first(at(0s));
  duration most[2] = {0s, 0s};
  for (std::size_t i = 0; i != 2000; ++i) {
    most[i % 2] = std::max(most[i % 2], o.due - o.grid);
    o = r.next(o, o.grid).value();
  }
  CHECK(most[0] < 10ms);
  CHECK(most[0] > 9ms);
  CHECK(most[1] < 1000ms);
  CHECK(most[1] > 900ms);
}

TEST_CASE("jitter that moves a run past the next points of its list misses none of them") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    const auto r = cycle({100ms, 10ms, 10ms, 10ms}).jitter(1, seed);
    auto o = r.first(at(0s));
    time_point now = o.due;
    for (int i = 1; i != 200; ++i) {
      const auto look = r.look_at(o, now);
      REQUIRE(look.missed == 0);
      o = look.next.value();
      now = std::max(now, o.due);
    }
    CHECK(o.gaps == 200);
  }
}

TEST_CASE("equal seeds draw the same jitter, different seeds do not") {
  const auto draws = [](const recurrence& r, std::uint64_t own) {
    std::vector<time_point> dues;
    for (auto o = r.first(at(0s), own); dues.size() != 20; o = r.next(o, o.due).value())
      dues.push_back(o.due);
    return dues;
  };
  CHECK(draws(every(1s).jitter(1, 5), 1) == draws(every(1s).jitter(1, 5), 2));
  CHECK(draws(every(1s).jitter(1, 5), 1) != draws(every(1s).jitter(1, 6), 1));
  CHECK(draws(every(1s).jitter(1), 1) == draws(every(1s).jitter(1), 1));
  CHECK(draws(every(1s).jitter(1), 1) != draws(every(1s).jitter(1), 2));
}

TEST_CASE("invalid recurrences are refused, with the value in the message") {
  const auto refused = [](auto&& make, const char* value) {
    CHECK_THROWS_WITH_AS(make(), doctest::Contains(value), std::invalid_argument);
  };
  refused([] { return every(0s); }, "0s");
  refused([] { return every(-7ms); }, "-7ms");
  refused([] { return every(std::chrono::hours::min()); }, "-");
  refused([] { return every(std::chrono::duration<double>(std::nan(""))); }, "NaN");
  refused([] { return after_completion(0s); }, "0s");
  refused([] { return intervals({}); }, "empty");
  refused([] { return cycle(std::vector<duration>{}); }, "empty");
  refused([] { return intervals({1s, 0s}); }, "0s");
  refused([] { return cycle({1s, -3s}); }, "-3s");
  refused([] { return backoff(0s, 2, 1s); }, "0s");
  refused([] { return backoff(1s, 0.5, 2s); }, "0.5");
  refused([] { return backoff(1s, std::nan(""), 2s); }, "nan");
  refused([] { return backoff(2s, 2, 1s); }, "1s");
  refused([] { return every(1s).times(0); }, "0");
  refused([] { return every(1s).times(0U); }, "0");
  refused([] { return every(1s).times(-2); }, "-2");
  refused([] { return every(1s).jitter(-0.1); }, "-0.1");
  refused([] { return every(1s).jitter(1.5, 3); }, "1.5");
  refused([] { return every(1s).jitter(std::nan("")); }, "nan");
  refused([] { return every(1s).on_missed(missed_runs::burst, 0); }, "0");
}

TEST_CASE("recurrences take durations of any unit, and saturate them") {
  CHECK(every(std::chrono::hours::max()) == every(duration::max()));
  CHECK(every(std::chrono::duration<double>(0.5)) == every(500ms));
  CHECK(every(1s).first_after(std::chrono::hours::max()).first(at(5s)).due == time_point::max());
  CHECK(every(1s).first_at(std::chrono::time_point<std::chrono::steady_clock, std::chrono::hours>::max()) ==
        every(1s).first_at(time_point::max()));
  CHECK(every(std::chrono::hours::max()).first(at(-1s)).due == time_point::max());
  CHECK(backoff(1s, 1e300, duration::max()).jitter(1, 1).first(at(0s)).due < at(2s));
  CHECK(cycle({duration::max(), duration::max()}).jitter(1).first(at(0s)).due == time_point::max());
}

TEST_CASE("grids as long as the clock's range do not overflow") {
  const time_point dawn = time_point::min();
  const time_point dusk = time_point::max() - 1ns;
  const auto look = every(1ns).look_at(every(1ns).first_at(dawn).first(dawn), dusk);
  CHECK(look.missed == std::numeric_limits<std::uint64_t>::max() - 1);
  CHECK(look.next.value().due == time_point::max());
  const duration century = 100 * 8766h;
  const auto long_cycle = cycle({2 * century, 2 * century});
  const auto at_dawn = long_cycle.first_at(dawn).first(dawn);
  CHECK(long_cycle.look_at(at_dawn, dawn + 2 * century + century).points == 2);
  CHECK(long_cycle.look_at(at_dawn, dawn + 2 * century + 2 * century + 1h).points == 3);
  const auto never_again = cycle({duration::max(), duration::max(), 3ns});  // the sum wraps around to 1 ns
  CHECK(never_again.look_at(never_again.first_at(dawn).first(dawn), dawn + 5ns).points == 1);
  const auto steady = backoff(1ns, 1, 1h);
  CHECK(steady.look_at(steady.first_at(dawn).first(dawn), dusk).missed == look.missed);
  const auto r = cycle({1ns, 2ns, 3ns}).jitter(1, 9);
  CHECK(r.look_at(r.first_at(dawn).first(dawn), dusk).points > std::uint64_t{1} << 62);
}

TEST_CASE("recurrences are equal only if all their parts are") {
  const recurrence all[] = {every(1s),
                            every(2s),
                            after_completion(1s),
                            intervals({1s}),
                            cycle({1s}),
                            cycle({1s, 2s}),
                            backoff(1s, 2, 4s),
                            backoff(1s, 3, 4s),
                            backoff(1s, 2, 5s),
                            every(1s).times(2),
                            every(1s).first_after(1s),
                            every(1s).first_at(at(1s)),
                            every(1s).jitter(0.5),
                            every(1s).jitter(0.5, 0),
                            every(1s).on_missed(missed_runs::burst),
                            every(1s).on_missed(missed_runs::burst, 5),
                            every(1s).on_overlap(overlapping_runs::allow)};
  for (const auto& a : all)
    for (const auto& b : all) CHECK((a == b) == (&a == &b));
  CHECK(cycle({1s, 2s}) == cycle({1000ms, 2000ms}));
}

TEST_CASE("a refinement returns a new value and leaves the old one unchanged") {
  const auto plain = every(1s);
  static_cast<void>(plain.times(3).jitter(0.5));
  CHECK(plain == every(1s));
}

TEST_CASE("a recurrence prints as the calls that create it") {
  CHECK(text_of(every(333'400us)) == "every(333400us)");
  CHECK(text_of(after_completion(90min)) == "after_completion(90min)");
  CHECK(text_of(intervals({1s, 2500ms, 1h})) == "intervals({1s, 2500ms, 1h})");
  CHECK(text_of(backoff(100ms, 1.5, 30s).times(5)) == "backoff(100ms, 1.5, 30s).times(5)");
  CHECK(text_of(cycle({1ns}).first_after(0s).jitter(0.1, 7)) ==
        "cycle({1ns}).first_after(0s).jitter(0.1, 7)");
  CHECK(text_of(every(1s).first_at(at(-3s)).jitter(0.25)) ==
        "every(1s).first_at(time_point(-3s)).jitter(0.25)");
  CHECK(text_of(every(1s).aligned_to(at(2ms))) == "every(1s).aligned_to(time_point(2ms))");
  CHECK(text_of(every(1s).on_missed(missed_runs::burst).on_overlap(overlapping_runs::queue_one)) ==
        "every(1s).on_missed(missed_runs::burst, 1000).on_overlap(overlapping_runs::queue_one)");
  CHECK(text_of(every(1s).on_missed(missed_runs::delay).on_overlap(overlapping_runs::allow)) ==
        "every(1s).on_missed(missed_runs::delay).on_overlap(overlapping_runs::allow)");
}

}  // namespace values_recurrence
