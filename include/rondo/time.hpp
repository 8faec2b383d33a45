// Durations and time points: the types that Rondo uses, and conversions from all others.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

#include <rondo/export.hpp>

namespace rondo {

///@{
/// All durations and time points are converted to these types, which are those of the steady clock.
using duration = std::chrono::steady_clock::duration;
using time_point = std::chrono::steady_clock::time_point;
///@}

/// A time of the wall clock: of std::chrono::system_clock, in UTC, to the nanosecond on every platform. (The clock's own
/// time points are coarser with some standard libraries.)
using wall_time = std::chrono::time_point<std::chrono::system_clock, duration>;

/// No limit, wherever a function or option takes a maximum number of timers.
inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

namespace detail {

/// Throws std::invalid_argument. Out of line, so that the headers compile under -fno-exceptions.
[[noreturn]] RONDO_EXPORT void refuse_nan();

template <class Rep>
constexpr duration saturate_floating(Rep exact) {
  if (__builtin_isnan(exact)) refuse_nan();
  if (exact >= static_cast<Rep>(0x1p63L)) return duration::max();
  if (exact <= static_cast<Rep>(-0x1p63L)) return duration::min();
  const auto whole = static_cast<duration::rep>(exact);
  return duration(static_cast<Rep>(whole) < exact ? whole + 1 : whole);
}

/// `count * numerator / denominator`, rounded up.
template <class Integer>
constexpr duration saturate_integral(Integer count, std::intmax_t numerator, std::intmax_t denominator) {
  const auto whole = count / static_cast<Integer>(denominator);
  if (std::cmp_greater(whole, duration::max().count())) return duration::max();
  if (std::cmp_less(whole, duration::min().count())) return duration::min();
  duration::rep sum = 0;
  if (__builtin_mul_overflow(static_cast<duration::rep>(whole), numerator, &sum))
    return count < 0 ? duration::min() : duration::max();
  const auto product = static_cast<duration::rep>(count % static_cast<Integer>(denominator)) * numerator;
  const auto rest = product / denominator + (product % denominator > 0 ? 1 : 0);
  if (__builtin_add_overflow(sum, rest, &sum)) return count < 0 ? duration::min() : duration::max();
  return duration(sum);
}

}  // namespace detail

///@{
/// Converts any duration to rondo::duration. It rounds up and saturates: `hours::max()` becomes `duration::max()`,
/// where a plain conversion would overflow to a time in the past. Throws std::invalid_argument for NaN.
template <class Rep, class Period>
constexpr duration saturate(std::chrono::duration<Rep, Period> d) {
  using ratio = std::ratio_divide<Period, duration::period>;
  if constexpr (std::is_floating_point_v<Rep>) {
    return detail::saturate_floating(d.count() * static_cast<Rep>(ratio::num) / static_cast<Rep>(ratio::den));
  } else {
    static_assert(ratio::num <= std::numeric_limits<std::intmax_t>::max() / ratio::den,
                  "this period is too far from a nanosecond to be converted exactly");
    if constexpr (sizeof(Rep) < sizeof(duration::rep))
      return detail::saturate_integral(static_cast<duration::rep>(d.count()), ratio::num, ratio::den);
    else
      return detail::saturate_integral(d.count(), ratio::num, ratio::den);
  }
}
constexpr duration saturate(duration d) noexcept { return d; }
///@}

/// Converts any time point of the steady clock to rondo::time_point in the same way.
template <class Duration>
constexpr time_point saturate(std::chrono::time_point<std::chrono::steady_clock, Duration> t) {
  return time_point(saturate(t.time_since_epoch()));
}

namespace detail {

// What any_time_point and any_wall_time accept: overload resolution chooses among these.
constexpr time_point to_time_point(time_point t) noexcept { return t; }
template <class Duration>
constexpr time_point to_time_point(std::chrono::time_point<std::chrono::steady_clock, Duration> t) {
  return saturate(t);
}
constexpr wall_time to_wall_time(wall_time t) noexcept { return t; }
template <class Duration>
constexpr wall_time to_wall_time(std::chrono::time_point<std::chrono::system_clock, Duration> t) {
  return wall_time(saturate(t.time_since_epoch()));
}

}  // namespace detail

/// The type of parameters that accept any std::chrono::duration and anything that converts to rondo::duration: `5ms`,
/// `hours::max()`, `std::chrono::duration<double>(0.5)`. As cheap to pass as a duration.
class any_duration {
 public:
  /// Zero. This is what `{}` passes.
  constexpr any_duration() noexcept = default;
  /// Converts as saturate() does. Throws std::invalid_argument for NaN.
  template <class Duration>
  requires std::same_as<decltype(rondo::saturate(std::declval<Duration>())), duration>
  constexpr any_duration(Duration&& d)  // NOLINT(bugprone-forwarding-reference-overload)
      : value_(rondo::saturate(std::forward<Duration>(d))) {}
  /// The converted duration.
  constexpr operator duration() const noexcept { return value_; }

 private:
  duration value_{};
};

/// The type of parameters that accept any time point of the steady clock and anything that converts to
/// rondo::time_point. As cheap to pass as a time point.
class any_time_point {
 public:
  /// The clock's epoch. This is what `{}` passes.
  constexpr any_time_point() noexcept = default;
  /// Converts as saturate() does. Throws std::invalid_argument for NaN.
  template <class TimePoint>
  requires std::same_as<decltype(detail::to_time_point(std::declval<TimePoint>())), time_point>
  constexpr any_time_point(TimePoint&& t)  // NOLINT(bugprone-forwarding-reference-overload)
      : value_(detail::to_time_point(std::forward<TimePoint>(t))) {}
  /// The converted time point.
  constexpr operator time_point() const noexcept { return value_; }

 private:
  time_point value_{};
};

/// The type of parameters that accept any time point of the wall clock, std::chrono::system_clock, and anything that
/// converts to rondo::wall_time: `system_clock::now() + 1h`, `sys_days(2027y / January / 1)`. As cheap to pass as a time
/// point.
class any_wall_time {
 public:
  /// The clock's epoch. This is what `{}` passes.
  constexpr any_wall_time() noexcept = default;
  /// Converts as saturate() does. Throws std::invalid_argument for NaN.
  template <class TimePoint>
  requires std::same_as<decltype(detail::to_wall_time(std::declval<TimePoint>())), wall_time>
  constexpr any_wall_time(TimePoint&& t)  // NOLINT(bugprone-forwarding-reference-overload)
      : value_(detail::to_wall_time(std::forward<TimePoint>(t))) {}
  /// The converted time.
  constexpr operator wall_time() const noexcept { return value_; }

 private:
  wall_time value_{};
};

/// `t + d`, or the end of the clock's range if that overflows.
constexpr time_point saturating_add(time_point t, duration d) noexcept {
  duration::rep sum = 0;
  if (__builtin_add_overflow(t.time_since_epoch().count(), d.count(), &sum))
    return d < duration::zero() ? time_point::min() : time_point::max();
  return time_point(duration(sum));
}

/// `later - earlier`, or the longest or shortest duration if that overflows.
constexpr duration saturating_difference(time_point later, time_point earlier) noexcept {
  duration::rep difference = 0;
  if (__builtin_sub_overflow(later.time_since_epoch().count(), earlier.time_since_epoch().count(),
                             &difference))
    return later < earlier ? duration::min() : duration::max();
  return duration(difference);
}

}  // namespace rondo
