// Random numbers that do not depend on the standard library, and their seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include <rondo/detail/ticks.hpp>

namespace model {

using rondo::tick_number;

inline constexpr tick_number first_tick = std::numeric_limits<tick_number>::min();
inline constexpr tick_number last_tick = std::numeric_limits<tick_number>::max();

/// To replay a failure: RONDO_TEST_SEED=<the base seed it printed> model_tests -tc="<name of the test case>"
inline std::uint64_t base_seed() {
  const char* const given = std::getenv("RONDO_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 0);
}

/// The distributions of <random> differ between standard libraries; its engines do not.
class random_numbers {
 public:
  /// `stream` distinguishes the trials of one run.
  random_numbers(std::uint64_t seed, std::uint64_t stream) : engine_(seed * 0x9e3779b97f4a7c15ULL + stream) {}

  std::uint64_t any() { return engine_(); }
  std::uint64_t below(std::uint64_t end) { return engine_() % end; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  std::size_t index(std::size_t size) { return static_cast<std::size_t>(below(size)); }

  /// 0 … 2^bits - 1, as likely between 2^3 and 2^4 as between 2^33 and 2^34.
  tick_number of_any_magnitude(std::uint64_t bits) {
    const std::uint64_t magnitude = below(bits + 1);
    return static_cast<tick_number>(any() & ((std::uint64_t{1} << magnitude) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

/// `tick + delay`, saturated.
inline tick_number later_by(tick_number tick, tick_number delay) {
  tick_number sum = 0;
  if (__builtin_add_overflow(tick, delay, &sum)) return delay < 0 ? first_tick : last_tick;
  return sum;
}

}  // namespace model
