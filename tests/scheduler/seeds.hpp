// Seeds of random tests: new ones each time, which are printed. RONDO_TEST_SEED=n repeats one of them,
// RONDO_TEST_SEEDS=n runs n seeds of each test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "times_slower.hpp"

namespace rondo::test {

/// Returns `count` seeds, or those that the environment asks for.
inline std::vector<std::uint64_t> seeds(const char* what, std::size_t count) {
  if (const char* const asked = std::getenv("RONDO_TEST_SEED")) return {std::stoull(asked)};
  if (const char* const asked = std::getenv("RONDO_TEST_SEEDS")) count = std::stoull(asked);
  const std::uint64_t first = std::random_device{}();
  std::cout << what << ": seeds " << first << " to " << first + count - 1
            << " (RONDO_TEST_SEED=n runs one again)\n";
  std::vector<std::uint64_t> result(count);
  for (std::size_t i = 0; i != count; ++i) result[i] = first + i;
  return result;
}

/// Random numbers that do not depend on the standard library.
class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15U + 1) {}
  /// 0 … sides - 1
  std::uint64_t roll(std::uint64_t sides) { return engine_() % sides; }
  bool one_in(std::uint64_t n) { return roll(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rondo::test
