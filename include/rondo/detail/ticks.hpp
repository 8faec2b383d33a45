// Ticks: the wheel's measure of time, and how moments of a clock map to them. Arithmetic only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <rondo/time.hpp>

namespace rondo {

/// A point in a wheel's time. Absolute: ticks are never decremented or re-based; negative ones are ticks like
/// others.
using tick_number = std::int64_t;

namespace detail {

inline constexpr std::size_t max_buckets = std::size_t{1} << 20;

/// The tick of what is never due: no moment of the clock belongs to it.
inline constexpr tick_number never_tick = std::numeric_limits<tick_number>::max();

/// Which of `mask + 1` buckets (a power of two) tick `t` lives in.
constexpr std::size_t bucket_of(tick_number t, std::size_t mask) noexcept {
  return static_cast<std::size_t>(t) & mask;
}

/// The ticks of one scheduler: tick 0 is not its start but near the clock's epoch, so that no difference of
/// two time points, which could overflow, is ever needed; its start is a tick boundary all the same.
class tick_grid {
 public:
  /// Preconditions: length > 0.
  constexpr tick_grid(duration length, time_point start) noexcept
      : length_(length.count()), phase_(floor_mod(start.time_since_epoch().count())) {}

  constexpr duration length() const noexcept { return duration(length_); }

  /// The last tick that is not later than `t`.
  constexpr tick_number at_or_before(time_point t) const noexcept {
    const auto count = t.time_since_epoch().count();
    return floor_div(count) - (floor_mod(count) < phase_ ? 1 : 0);
  }

  /// The first tick that is not earlier than `t`: rounding down here would fire up to a tick early.
  constexpr tick_number at_or_after(time_point t) const noexcept {
    const auto count = t.time_since_epoch().count();
    return floor_div(count) + (floor_mod(count) > phase_ ? 1 : 0);
  }

  /// The tick that a deadline belongs to when the clock shows `now`: what is due already does not wait for a
  /// tick. never_tick for the clock's last moment, and if no tick of the clock's span begins after the
  /// deadline.
  constexpr tick_number of_deadline(time_point due, time_point now) const noexcept {
    const tick_number tick = at_or_after(due);
    if (due == time_point::max()) return never_tick;
    if (due > now) return begins(tick) ? tick : never_tick;
    const tick_number current = at_or_before(now);
    return tick < current ? tick : current;
  }

  /// The tick that a point of a grid belongs to, whatever the clock shows: one that is past, but whose tick is still to
  /// come, waits for that. Else as of_deadline().
  constexpr tick_number of_point(time_point point) const noexcept {
    return of_deadline(point, time_point::min());
  }

  /// The moment at which tick `t` begins; saturates at both ends of the clock.
  constexpr time_point begin_of(tick_number t) const noexcept {
    duration::rep count = 0;
    if (!multiply_add(t, count)) return t < 0 ? time_point::min() : time_point::max();
    return time_point(duration(count));
  }

 private:
  constexpr bool begins(tick_number t) const noexcept {
    duration::rep count = 0;
    return multiply_add(t, count);
  }
  constexpr bool multiply_add(tick_number t, duration::rep& count) const noexcept {
    // Below zero one tick less is multiplied, and the sum taken from the other side, so that no part
    // overflows alone.
    const tick_number whole = t < 0 ? t + 1 : t;
    const duration::rep rest = t < 0 ? phase_ - length_ : phase_;
    return !__builtin_mul_overflow(whole, length_, &count) && !__builtin_add_overflow(count, rest, &count);
  }
  constexpr duration::rep floor_mod(duration::rep count) const noexcept {
    const duration::rep rest = count % length_;
    return rest < 0 ? rest + length_ : rest;
  }
  constexpr tick_number floor_div(duration::rep count) const noexcept {
    return count / length_ - (count % length_ < 0 ? 1 : 0);
  }

  duration::rep length_;
  duration::rep phase_;  // of the tick boundaries: 0 … length - 1
};

}  // namespace detail
}  // namespace rondo
