// Virtual time for libraries that read the clock themselves.
#pragma once

#include <cstdint>

/// While one of these lives, clock_gettime() says what it is told to, to everybody in the program: CLOCK_MONOTONIC
/// and CLOCK_REALTIME, coarse or not. measure::now() reads another clock. One at a time, one thread.
class virtual_clock {
 public:
  virtual_clock() noexcept { move_to(0); }
  ~virtual_clock();
  virtual_clock(const virtual_clock&) = delete;
  virtual_clock& operator=(const virtual_clock&) = delete;

  /// `tick` is in milliseconds.
  void move_to(std::int64_t tick) noexcept;
};
