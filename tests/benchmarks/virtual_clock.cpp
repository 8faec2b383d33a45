#include "virtual_clock.hpp"

#include <dlfcn.h>
#include <time.h>

namespace {

bool is_virtual = false;
timespec virtual_time{};

/// The time of tick 0. It is not 0, which some library may take for "unknown".
constexpr std::int64_t start_seconds = 1000;

}  // namespace

virtual_clock::~virtual_clock() { is_virtual = false; }

void virtual_clock::move_to(std::int64_t tick) noexcept {
  is_virtual = true;
  virtual_time.tv_sec = static_cast<time_t>(start_seconds + tick / 1000);
  virtual_time.tv_nsec = static_cast<long>(tick % 1000 * 1'000'000);
}

/// Replaces libc's function, also for shared libraries, because the program's symbols take precedence.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = reinterpret_cast<decltype(&clock_gettime)>(dlsym(RTLD_NEXT, "clock_gettime"));
  const bool can_be_virtual = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
                              clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (!is_virtual || !can_be_virtual) return real(clock, time);
  *time = virtual_time;
  return 0;
}
