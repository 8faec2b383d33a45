// What the benchmarks share: repeatable random numbers, the clock, and the types of contenders and samples. The rest is
// in report.hpp.
#pragma once

#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "splitmix64.hpp"

namespace measure {

/// The same seed gives every contender the same work.
class random : public splitmix64 {
 public:
  using splitmix64::splitmix64;
  /// 0 … n - 1, for n up to 2^32, without a division
  std::uint32_t below(std::uint64_t n) noexcept {
    return static_cast<std::uint32_t>(((*this)() >> 32) * n >> 32);
  }
  /// 1 … n, likewise
  std::int64_t up_to(std::uint64_t n) noexcept { return static_cast<std::int64_t>(below(n)) + 1; }
};

/// A clock that stays real when a benchmark makes CLOCK_MONOTONIC virtual. It is a separate type because its time
/// points are not those of steady_clock.
struct clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<clock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};

inline clock::time_point now() noexcept { return clock::now(); }

inline double per_operation(clock::time_point start, std::uint64_t operations) {
  return std::chrono::duration<double, std::nano>(now() - start).count() / static_cast<double>(operations);
}

/// 1000000: "1,000,000"
inline std::string readable(std::uint64_t number) {
  std::string result = std::to_string(number);
  for (std::size_t digits = 3; digits < result.size(); digits += 4)
    result.insert(result.size() - digits, 1, ',');
  return result;
}

struct sample {
  double value;            // in the workload's unit, mostly nanoseconds per operation; less is better
  std::uint64_t checksum;  // of the work done; must be the same for all contenders
};

struct contender {
  std::string name;
  std::function<sample()> run;  // one repetition
};

}  // namespace measure
