// Times in the database are numbers of microseconds since 1970. A sum of two of them does not overflow.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

namespace rondo::durable::detail {

/// Rounds up, so that nothing is early.
template <class Rep, class Period>
std::int64_t microseconds_of(std::chrono::duration<Rep, Period> d) {
  return std::chrono::ceil<std::chrono::microseconds>(d).count();
}

/// A negative delay means at once, which is zero.
inline std::int64_t microseconds_of_delay(duration d) {
  return microseconds_of(std::max(d, duration::zero()));
}

inline std::int64_t microseconds_of(wall_time t) { return microseconds_of(t.time_since_epoch()); }

/// Clamps to the range of `To`.
template <class To>
To from_microseconds(std::int64_t count) {
  using std::chrono::microseconds;
  const std::int64_t least = std::chrono::ceil<microseconds>(To::min()).count();
  const std::int64_t most = std::chrono::floor<microseconds>(To::max()).count();
  if (count > most) return To::max();
  return std::chrono::duration_cast<To>(microseconds(std::max(count, least)));
}

/// The time from `now`, by the engine's clock, until `due`. `due` may be any number, as operators may write to the
/// database.
inline duration time_until(std::int64_t due, std::int64_t now) {
  constexpr std::int64_t most = std::chrono::ceil<std::chrono::microseconds>(duration::max()).count();
  return from_microseconds<duration>(std::clamp(due, -most, most) - now);
}

inline wall_time wall_time_of(std::int64_t count) {
  return wall_time(from_microseconds<wall_time::duration>(count));
}

}  // namespace rondo::durable::detail
