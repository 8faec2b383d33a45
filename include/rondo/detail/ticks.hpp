// Ticks, the unit of the wheel's time, and the conversion between ticks and time points. Arithmetic only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <rondo/time.hpp>

namespace rondo {

/// A point in a wheel's time. It is absolute: ticks are never decremented or re-based. Negative ticks are allowed.
using tick_number = std::int64_t;

namespace detail {

inline constexpr std::size_t max_buckets = std::size_t{1} << 20;

/// The tick of a timer that is never due. It corresponds to no time point.
inline constexpr tick_number never_tick = std::numeric_limits<tick_number>::max();

/// The bucket of tick `t`, of `mask + 1` buckets (a power of two).
constexpr std::size_t bucket_of(tick_number t, std::size_t mask) noexcept {
  return static_cast<std::size_t>(t) & mask;
}

/// The ticks of one scheduler. Tick 0 is near the clock's epoch, not at the scheduler's start. So no difference of two
/// time points is needed, which could overflow. The start is still a tick boundary.
class tick_grid {
 public:
  /// Precondition: length > 0.
  constexpr tick_grid(duration length, time_point start) noexcept
      : length_(length.count()),
        phase_(divide(start.time_since_epoch().count()).rest),
        start_(divide(start.time_since_epoch().count()).whole) {}

  constexpr duration length() const noexcept { return duration(length_); }

  /// The last tick that does not begin after `t`.
  constexpr tick_number at_or_before(time_point t) const noexcept {
    const auto [whole, rest] = divide(t.time_since_epoch().count());
    return whole - (rest < phase_ ? 1 : 0);
  }

  /// The first tick that does not begin before `t`. Rounding down here would fire up to a tick early.
  constexpr tick_number at_or_after(time_point t) const noexcept {
    const auto [whole, rest] = divide(t.time_since_epoch().count());
    return whole + (rest > phase_ ? 1 : 0);
  }

  /// The tick of a deadline at time `now`. A deadline that has passed does not wait for the next tick. Returns
  /// never_tick for the clock's last time point, and if no tick in the clock's range begins at or after the deadline.
  constexpr tick_number of_deadline(time_point due, time_point now) const noexcept {
    const tick_number tick = at_or_after(due);
    duration::rep begin = 0;
    if (due == time_point::max()) return never_tick;
    if (due > now) return multiply_add(tick, begin) ? tick : never_tick;
    const tick_number current = at_or_before(now);
    return tick < current ? tick : current;
  }

  /// The tick of a grid point, whatever the time is. A point that has passed waits for its tick if that tick is still
  /// to come. Otherwise as of_deadline().
  constexpr tick_number of_point(time_point point) const noexcept {
    return of_deadline(point, time_point::min());
  }

  /// The tick of a deadline with slack: of those that begin in [due, due + slack], the one that is a multiple of the
  /// greatest power of two, counted from the start's tick. `own` is the deadline's own tick; it is returned if no tick
  /// begins there, and for never_tick.
  constexpr tick_number with_slack(tick_number own, time_point due, duration slack) const noexcept {
    const tick_number first = at_or_after(due);
    tick_number last = at_or_before(saturating_add(due, slack));
    if (last == never_tick) --last;
    if (own == never_tick || last < first) return own;
    // Modulo 2^64, which keeps multiples of powers of two. The result has the highest bit in which `last` differs from
    // the tick before `first`, and zeros after it.
    const auto before = static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(start_) - 1;
    const auto end = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(start_);
    const int zeros = 63 - std::countl_zero(before ^ end);
    return static_cast<tick_number>((end >> zeros << zeros) + static_cast<std::uint64_t>(start_));
  }

  /// The time point at which tick `t` begins. Saturates at both ends of the clock.
  constexpr time_point begin_of(tick_number t) const noexcept {
    duration::rep count = 0;
    if (!multiply_add(t, count)) return t < 0 ? time_point::min() : time_point::max();
    return time_point(duration(count));
  }

 private:
  struct quotient {
    tick_number whole;
    duration::rep rest;
  };

  /// Rounds down: the rest is not negative.
  constexpr quotient divide(duration::rep count) const noexcept {
    const duration::rep rest = count % length_;
    return rest < 0 ? quotient{count / length_ - 1, rest + length_} : quotient{count / length_, rest};
  }
  /// When tick `t` begins. Returns false if that is beyond an end of the clock.
  constexpr bool multiply_add(tick_number t, duration::rep& count) const noexcept {
    // A negative tick is multiplied as `t + 1`, and one length is subtracted with the phase, so that no intermediate
    // result overflows unless the sum does.
    const tick_number whole = t < 0 ? t + 1 : t;
    const duration::rep rest = t < 0 ? phase_ - length_ : phase_;
    return !__builtin_mul_overflow(whole, length_, &count) && !__builtin_add_overflow(count, rest, &count);
  }

  duration::rep length_;
  duration::rep phase_;  // offset of the tick boundaries: 0 … length - 1
  tick_number start_;    // the tick that begins at the start
};

}  // namespace detail
}  // namespace rondo
