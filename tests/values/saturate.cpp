#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <stdexcept>

#include <rondo/time.hpp>

namespace values_saturate {

using namespace std::chrono_literals;
using namespace rondo;

template <class Rep, class Period>
std::int64_t count(std::chrono::duration<Rep, Period> d) {
  return saturate(d).count();
}

constexpr std::int64_t most = duration::max().count();
constexpr std::int64_t least = duration::min().count();

using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
using real_seconds = std::chrono::duration<double>;
using real_hours = std::chrono::duration<double, std::ratio<3600>>;

static_assert(saturate(5ms) == duration(5'000'000), "conversions are constant expressions");

TEST_CASE("coarser durations are converted to nanoseconds exactly") {
  CHECK(count(0s) == 0);
  CHECK(count(7ns) == 7);
  CHECK(count(3us) == 3'000);
  CHECK(count(1500ms) == 1'500'000'000);
  CHECK(count(-2s) == -2'000'000'000);
  CHECK(count(std::chrono::days(1)) == 86'400'000'000'000);
  CHECK(count(std::chrono::duration<std::int8_t, std::milli>(-128)) == -128'000'000);
}

TEST_CASE("a duration that is too long becomes the longest, and never a negative one") {
  CHECK(count(std::chrono::hours::max()) == most);
  CHECK(count(std::chrono::seconds::max()) == most);
  CHECK(count(std::chrono::microseconds::max()) == most);
  CHECK(count(std::chrono::years(1000)) == most);
  CHECK(count(duration::max()) == most);
}

TEST_CASE("a duration that is too short becomes the shortest") {
  CHECK(count(std::chrono::hours::min()) == least);
  CHECK(count(std::chrono::seconds::min()) == least);
  CHECK(count(std::chrono::years(-1000)) == least);
  CHECK(count(duration::min()) == least);
}

TEST_CASE("the last second that fits is exact, the next one saturates") {
  constexpr std::int64_t whole = most / 1'000'000'000;
  CHECK(count(std::chrono::seconds(whole)) == whole * 1'000'000'000);
  CHECK(count(std::chrono::seconds(whole + 1)) == most);
  CHECK(count(std::chrono::seconds(-whole)) == -whole * 1'000'000'000);
  CHECK(count(std::chrono::seconds(-whole - 1)) == least);
}

TEST_CASE("finer durations are rounded up") {
  struct {
    std::int64_t pico, nano;
  } const cases[] = {{0, 0},
                     {1, 1},
                     {999, 1},
                     {1000, 1},
                     {1001, 2},
                     {-1, 0},
                     {-999, 0},
                     {-1000, -1},
                     {-1001, -1},
                     {-1999, -1},
                     {-2000, -2},
                     {most, most / 1000 + 1},
                     {least, least / 1000}};
  for (const auto& c : cases) {
    CAPTURE(c.pico);
    CHECK(count(picoseconds(c.pico)) == c.nano);
  }
}

TEST_CASE("durations whose unit neither divides a nanosecond nor is divided by it are rounded up") {
  using thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
  using frames = std::chrono::duration<std::int32_t, std::ratio<1, 60>>;
  CHECK(count(thirds(1)) == 333'333'334);
  CHECK(count(thirds(2)) == 666'666'667);
  CHECK(count(thirds(3)) == 1'000'000'000);
  CHECK(count(thirds(-1)) == -333'333'333);
  CHECK(count(thirds(-2)) == -666'666'666);
  CHECK(count(frames(1)) == 16'666'667);
  CHECK(count(thirds::max()) == most);
  CHECK(count(thirds::min()) == least);
}

TEST_CASE("unsigned counts are never treated as negative") {
  using unsigned_nano = std::chrono::duration<std::uint64_t, std::nano>;
  using unsigned_pico = std::chrono::duration<std::uint64_t, std::pico>;
  using unsigned_seconds = std::chrono::duration<std::uint64_t>;
  using small_seconds = std::chrono::duration<std::uint32_t>;
  constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
  CHECK(count(unsigned_nano(5)) == 5);
  CHECK(count(unsigned_nano(static_cast<std::uint64_t>(most))) == most);
  CHECK(count(unsigned_nano(static_cast<std::uint64_t>(most) + 1)) == most);
  CHECK(count(unsigned_nano(largest)) == most);
  CHECK(count(unsigned_seconds(largest)) == most);
  CHECK(count(unsigned_pico(largest)) == static_cast<std::int64_t>(largest / 1000) + 1);
  CHECK(count(small_seconds(4'294'967'295)) == 4'294'967'295'000'000'000);
}

TEST_CASE("floating-point durations are rounded up") {
  using real_nano = std::chrono::duration<double, std::nano>;
  CHECK(count(real_nano(1.0)) == 1);
  CHECK(count(real_nano(1.25)) == 2);
  CHECK(count(real_nano(0.001)) == 1);
  CHECK(count(real_nano(-1.25)) == -1);
  CHECK(count(real_nano(-0.5)) == 0);
  CHECK(count(real_seconds(0.5)) == 500'000'000);
  CHECK(count(real_seconds(-2.5)) == -2'500'000'000);
  CHECK(count(real_hours(1.5)) == 5'400'000'000'000);
  CHECK(count(std::chrono::duration<float>(0.25F)) == 250'000'000);
  CHECK(count(std::chrono::duration<long double>(0.25L)) == 250'000'000);
  CHECK(count(std::chrono::duration<double, std::pico>(1500)) == 2);
}

TEST_CASE("floating-point durations beyond the range saturate, including infinity") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(count(real_seconds(1e300)) == most);
  CHECK(count(real_seconds(-1e300)) == least);
  CHECK(count(real_seconds(infinity)) == most);
  CHECK(count(real_seconds(-infinity)) == least);
  CHECK(count(real_hours::max()) == most);
  CHECK(count(real_hours::min()) == least);
  CHECK(count(std::chrono::duration<float, std::ratio<3600>>::max()) == most);
  CHECK(count(std::chrono::duration<long double>::max()) == most);
  CHECK(count(std::chrono::duration<double, std::nano>(0x1p63)) == most);
  CHECK(count(std::chrono::duration<double, std::nano>(-0x1p63)) == least);
  CHECK(count(std::chrono::duration<double, std::nano>(0x1.fffffffffffffp62)) == most - 1023);
}

TEST_CASE("a finite floating-point duration that is just in range never becomes a negative one") {
  for (const double seconds : {1e9, 9e9, 9.2e9, 9.3e9, 1e10}) {
    CAPTURE(seconds);
    CHECK(count(real_seconds(seconds)) > 0);
  }
}

TEST_CASE("NaN is refused") {
  CHECK_THROWS_AS(saturate(real_seconds(std::numeric_limits<double>::quiet_NaN())), std::invalid_argument);
  CHECK_THROWS_AS(saturate(std::chrono::duration<float>(std::numeric_limits<float>::quiet_NaN())),
                  std::invalid_argument);
  CHECK_THROWS_AS(
      saturate(std::chrono::duration<long double, std::milli>(std::numeric_limits<long double>::quiet_NaN())),
      std::invalid_argument);
}

TEST_CASE("time points of the clock with other durations are converted in the same way") {
  using steady = std::chrono::steady_clock;
  CHECK((saturate(std::chrono::time_point<steady, std::chrono::seconds>(5s)) == time_point(5s)));
  CHECK((saturate(std::chrono::time_point<steady, picoseconds>(picoseconds(1))) == time_point(1ns)));
  CHECK((saturate(std::chrono::time_point<steady, std::chrono::hours>::max()) == time_point::max()));
  CHECK((saturate(std::chrono::time_point<steady, std::chrono::hours>::min()) == time_point::min()));
  CHECK((saturate(std::chrono::time_point<steady, real_seconds>(real_seconds(0.5))) == time_point(500ms)));
}

TEST_CASE("adding to a time point saturates at the ends of the clock") {
  CHECK((saturating_add(time_point(5ns), 3ns) == time_point(8ns)));
  CHECK((saturating_add(time_point(5ns), -8ns) == time_point(-3ns)));
  CHECK((saturating_add(time_point(1ns), duration::max()) == time_point::max()));
  CHECK((saturating_add(time_point(0ns), duration::max()) == time_point::max()));
  CHECK((saturating_add(time_point(-1ns), duration::max()) == time_point::max() - 1ns));
  CHECK((saturating_add(time_point::max(), 1ns) == time_point::max()));
  CHECK((saturating_add(time_point::max(), -1ns) == time_point::max() - 1ns));
  CHECK((saturating_add(time_point::min(), -1ns) == time_point::min()));
  CHECK((saturating_add(time_point(-1ns), duration::min()) == time_point::min()));
  CHECK((saturating_add(time_point::min(), duration::max()) == time_point(-1ns)));
}

TEST_CASE("the distance of two time points saturates at the ends of a duration's range") {
  CHECK((saturating_difference(time_point(8ns), time_point(5ns)) == 3ns));
  CHECK((saturating_difference(time_point(5ns), time_point(8ns)) == -3ns));
  CHECK((saturating_difference(time_point::max(), time_point(-1ns)) == duration::max()));
  CHECK((saturating_difference(time_point::max(), time_point::min()) == duration::max()));
  CHECK((saturating_difference(time_point::min(), time_point::max()) == duration::min()));
  CHECK((saturating_difference(time_point::min(), time_point(1ns)) == duration::min()));
  CHECK((saturating_difference(time_point::min(), time_point::min()) == 0ns));
}

}  // namespace values_saturate
