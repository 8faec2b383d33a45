// Virtual time for libraries that read the clock themselves.
#pragma once

#include <cstdint>

/// While an object of this type lives, clock_gettime() returns its time everywhere in the program, for CLOCK_MONOTONIC
/// and CLOCK_REALTIME, coarse or not. measure::now() reads another clock. At most one object at a time, and one thread.
class virtual_clock {
 public:
  virtual_clock() noexcept { move_to(0); }
  ~virtual_clock();
  virtual_clock(const virtual_clock&) = delete;
  virtual_clock& operator=(const virtual_clock&) = delete;

  /// `tick` is in milliseconds.
  void move_to(std::int64_t tick) noexcept;
};
