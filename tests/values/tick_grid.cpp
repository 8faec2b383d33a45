#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>

#include <rondo/detail/ticks.hpp>

#if !defined(__SIZEOF_INT128__)  // for example on 32-bit targets
#include <boost/multiprecision/cpp_int.hpp>
#endif

using namespace std::chrono_literals;
using namespace rondo;
using namespace rondo::detail;

constexpr time_point at(duration since_epoch) { return time_point(since_epoch); }

#if defined(__SIZEOF_INT128__)
__extension__ using int128 = __int128;
#else
using int128 = boost::multiprecision::int128_t;
#endif

namespace values_tick_grid {

/// A tick grid in 128 bits, where nothing overflows. before() is the last tick boundary not later than `count`.
struct wide_grid {
  int128 length, start;
  int128 before(std::int64_t count) const {
    const int128 distance = count - start;
    const int128 ticks = distance / length - (distance % length < 0 ? 1 : 0);
    return start + ticks * length;
  }
  int128 after(std::int64_t count) const {
    const int128 boundary = before(count);
    return boundary == count ? boundary : boundary + length;
  }
};

TEST_CASE("between two ticks, a deadline belongs to the later tick, and now to the earlier one") {
  constexpr tick_grid grid(10ns, at(0ns));
  struct {
    duration moment;
    tick_number before, after;
  } const cases[] = {{0ns, 0, 0},   {1ns, 0, 1},   {9ns, 0, 1},     {10ns, 1, 1},    {11ns, 1, 2},
                     {-1ns, -1, 0}, {-9ns, -1, 0}, {-10ns, -1, -1}, {-11ns, -2, -1}, {-20ns, -2, -2}};
  for (const auto& c : cases) {
    CAPTURE(c.moment.count());
    CHECK(grid.at_or_before(at(c.moment)) == c.before);
    CHECK(grid.at_or_after(at(c.moment)) == c.after);
  }
}

TEST_CASE("the start is always a tick boundary, whatever its value") {
  for (const duration start : {0ns, 3ns, 9ns, -1ns, -13ns, 1234567ns}) {
    CAPTURE(start.count());
    const tick_grid grid(10ns, at(start));
    const tick_number first = grid.at_or_before(at(start));
    CHECK(grid.at_or_after(at(start)) == first);
    CHECK((grid.begin_of(first) == at(start)));
    CHECK(grid.at_or_before(at(start - 1ns)) == first - 1);
    CHECK(grid.at_or_after(at(start + 1ns)) == first + 1);
    CHECK(grid.at_or_before(at(start + 9ns)) == first);
    CHECK(grid.at_or_after(at(start + 10ns)) == first + 1);
    CHECK(grid.at_or_after(at(start - 9ns)) == first);
    CHECK(grid.at_or_after(at(start - 10ns)) == first - 1);
  }
}

TEST_CASE("a tick begins at the boundary that it was computed from") {
  for (const duration length : {1ns, 2ns, 7ns, 1'000'000ns, 86'400'000'000'000ns}) {
    for (const duration start : {0ns, 5ns, -5ns, 123'456'789ns}) {
      const tick_grid grid(length, at(start));
      for (const tick_number t : {-3, -1, 0, 1, 2, 1000}) {
        const time_point begin = grid.begin_of(t);
        CHECK(grid.at_or_before(begin) == t);
        CHECK(grid.at_or_after(begin) == t);
        CHECK((grid.begin_of(t + 1) - begin == length));
      }
    }
  }
}

TEST_CASE("ticks are right at both ends of the clock") {
  constexpr auto first = time_point::min().time_since_epoch().count();
  constexpr auto last = time_point::max().time_since_epoch().count();
  for (const duration length : {1ns, 2ns, 10ns, 1'000'000ns, duration::max()}) {
    for (const duration start : {0ns, 9ns, -9ns, duration::max(), duration::min()}) {
      const tick_grid grid(length, at(start));
      const wide_grid wide{length.count(), start.count()};
      const int128 origin = grid.at_or_before(at(start));
      for (const std::int64_t count :
           {first, first + 1, first + 5, first + 9, last - 9, last - 5, last - 1, last}) {
        CAPTURE(length.count());
        CAPTURE(start.count());
        CAPTURE(count);
        const time_point t = at(duration(count));
        CHECK(((grid.at_or_before(t) - origin) * wide.length + wide.start == wide.before(count)));
        CHECK(((grid.at_or_after(t) - origin) * wide.length + wide.start == wide.after(count)));
      }
    }
  }
}

TEST_CASE("the beginning of a tick saturates at the ends of the clock, and nowhere else") {
  constexpr auto first = time_point::min().time_since_epoch().count();
  constexpr auto last = time_point::max().time_since_epoch().count();
  for (const duration length : {1ns, 10ns, 1'000'000ns}) {
    for (const duration start : {0ns, 9ns, 999'999ns, -9ns}) {
      const tick_grid grid(length, at(start));
      const wide_grid wide{length.count(), start.count()};
      for (const std::int64_t count : {first, first + 1, first + 9, last - 9, last - 1, last}) {
        CAPTURE(length.count());
        CAPTURE(start.count());
        CAPTURE(count);
        const int128 begin = wide.after(count);
        const auto expected = begin > last ? last : static_cast<std::int64_t>(begin);
        CHECK(grid.begin_of(grid.at_or_after(at(duration(count)))).time_since_epoch().count() == expected);
      }
    }
  }
  const tick_grid coarse(1s, at(0ns));
  CHECK((coarse.begin_of(std::numeric_limits<tick_number>::max()) == time_point::max()));
  CHECK((coarse.begin_of(std::numeric_limits<tick_number>::min()) == time_point::min()));
}

TEST_CASE(
    "a deadline belongs to the first tick at or after it, but a due one never to a tick after that of now") {
  constexpr tick_grid grid(10ns, at(0ns));
  struct {
    duration due, now;
    tick_number tick;
  } const cases[] = {
      {25ns, 12ns, 3},  // ahead: rounded up
      {20ns, 12ns, 2},  //
      {13ns, 12ns, 2},  // in this tick, but not yet
      {12ns, 12ns, 1},  // now: does not wait for the next tick
      {11ns, 12ns, 1},  //
      {10ns, 12ns, 1},  //
      {9ns, 12ns, 1},   // when rounded up, it is in the tick of now
      {5ns, 42ns, 1},   // older: its own
      {-5ns, 42ns, 0},  //
      {-25ns, -12ns, -2}, {-12ns, -12ns, -2}, {-5ns, -12ns, 0},
  };
  for (const auto& c : cases) {
    CAPTURE(c.due.count());
    CAPTURE(c.now.count());
    CHECK(grid.of_deadline(at(c.due), at(c.now)) == c.tick);
  }
}

TEST_CASE("a grid point belongs to the first tick at or after it, also between the point and that tick") {
  constexpr tick_grid grid(10ns, at(0ns));
  CHECK(grid.of_point(at(25ns)) == 3);
  CHECK(grid.of_point(at(20ns)) == 2);
  CHECK(grid.of_point(at(-25ns)) == -2);
  CHECK(grid.of_point(time_point::max()) == never_tick);
  CHECK(grid.of_point(time_point::max() - 6ns) == never_tick);  // no tick of the clock begins after it
  CHECK(grid.of_point(time_point::max() - 7ns) == time_point::max().time_since_epoch().count() / 10);
}

TEST_CASE("a deadline at the clock's last moment or after its last tick is never due") {
  constexpr time_point end = time_point::max();  // a count that ends in 807
  constexpr tick_grid fine(1ns, at(0ns));
  constexpr tick_grid coarse(10ns, at(0ns));
  constexpr tick_number last_coarse = end.time_since_epoch().count() / 10;
  CHECK(fine.of_deadline(end, at(0ns)) == never_tick);
  CHECK(fine.of_deadline(end, end) == never_tick);
  CHECK(fine.of_deadline(end - 1ns, at(0ns)) == never_tick - 1);
  CHECK(coarse.of_deadline(end, at(0ns)) == never_tick);
  CHECK(coarse.of_deadline(end, end) == never_tick);
  CHECK(tick_grid(10ns, end).of_deadline(end, at(0ns)) == never_tick);  // although a tick begins there
  CHECK(coarse.of_deadline(end - 6ns, at(0ns)) == never_tick);
  CHECK(coarse.of_deadline(end - 7ns, at(0ns)) == last_coarse);
  CHECK(coarse.of_deadline(end - 6ns, end - 1ns) == last_coarse);
}

TEST_CASE("no future deadline belongs to a tick that begins before it") {
  for (const duration length : {1ns, 3ns, 10ns}) {
    for (duration start = 0ns; start != length; ++start) {
      const tick_grid grid(length, at(start));
      for (duration now = -25ns; now != 25ns; ++now)
        for (duration due = now + 1ns; due != 30ns; ++due)
          REQUIRE((grid.begin_of(grid.of_deadline(at(due), at(now))) >= at(due)));
    }
  }
}

TEST_CASE("a tick's bucket is its remainder, even for negative ticks") {
  CHECK(bucket_of(0, 7) == 0);
  CHECK(bucket_of(13, 7) == 5);
  CHECK(bucket_of(-1, 7) == 7);
  CHECK(bucket_of(-8, 7) == 0);
  CHECK(bucket_of(std::numeric_limits<tick_number>::min(), 7) == 0);
  CHECK(bucket_of(std::numeric_limits<tick_number>::max(), 7) == 7);
  CHECK(bucket_of(12345, 0) == 0);
}

TEST_CASE("with slack, the tick is a multiple of the greatest power of two, everywhere on the clock") {
  const auto zeros = [](tick_number t, tick_number from) {
    return std::countr_zero(static_cast<std::uint64_t>(t) - static_cast<std::uint64_t>(from));
  };
  for (const std::int64_t start :
       {std::int64_t{0}, std::int64_t{-7}, std::int64_t{1001}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max() - 100}) {
    for (const std::int64_t length : {1, 3}) {
      const tick_grid grid{duration(length), at(duration(start))};
      const tick_number from = grid.at_or_before(at(duration(start)));
      for (int before = -40; before != 40; ++before) {
        std::int64_t due = 0;
        if (__builtin_add_overflow(start, before, &due)) continue;
        for (int slack = 1; slack != 50; ++slack) {
          const tick_number own = grid.at_or_after(at(duration(due)));
          const tick_number taken = grid.with_slack(own, at(duration(due)), duration(slack));
          const tick_number last = grid.at_or_before(saturating_add(at(duration(due)), duration(slack)));
          tick_number best = own;
          for (tick_number t = own; t <= last; ++t)
            if (zeros(t, from) > zeros(best, from)) best = t;
          if (taken != best) FAIL_CHECK("start " << start << ", due " << due << ", slack " << slack);
        }
      }
    }
  }
}

TEST_CASE("slack keeps never, and a deadline that no tick follows within it") {
  constexpr tick_grid grid{10ns, at(0ns)};
  static_assert(grid.with_slack(never_tick, time_point::max(), 1s) == never_tick);
  static_assert(grid.with_slack(2, at(11ns), 8ns) == 2);
  static_assert(grid.with_slack(7, at(11ns), 8ns) == 7);
  static_assert(grid.with_slack(1, at(11ns), 9ns) == 2);
  static_assert(grid.with_slack(2, at(11ns), duration::max()) == tick_number{1} << 59);
  constexpr tick_grid at_the_end{1ns, time_point::max()};
  static_assert(at_the_end.with_slack(never_tick - 1, time_point::max() - 1ns, 1ns) == never_tick - 1);
}

}  // namespace values_tick_grid
