// For tests that repeat something thousands of times: fewer repetitions where it takes too long.
//
// The slowest cases do a tenth of their work, unless RONDO_TEST_WHOLE is set in the environment, as in tests/run_long.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace rondo::test {

#if defined(__has_feature)
#define RONDO_TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define RONDO_TEST_HAS_FEATURE(name) 0
#endif

#if defined(RONDO_TEST_EMULATED)
inline constexpr bool emulated = true;  // defined by tests/portability/run
#else
inline constexpr bool emulated = false;
#endif

/// Whether each access to memory is slow: with sanitizers, and in an emulator.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    RONDO_TEST_HAS_FEATURE(address_sanitizer) || RONDO_TEST_HAS_FEATURE(thread_sanitizer)
inline constexpr bool memory_is_slow = true;
#else
inline constexpr bool memory_is_slow = emulated;
#endif

/// The least factor by which tests are slower if memory is, with checks, and without optimisation.
#if defined(RONDO_CHECKS) || !defined(__OPTIMIZE__)
inline constexpr std::size_t times_slower = 10;
#else
inline constexpr std::size_t times_slower = memory_is_slow ? 10 : 1;
#endif

/// How often one of the slowest cases repeats what it would otherwise do `times` times.
inline std::size_t shortened(std::size_t times) {
  static const bool whole = std::getenv("RONDO_TEST_WHOLE") != nullptr;
  return whole ? times : (times + 9) / 10;
}

inline constexpr int a_million = 1'000'000 / static_cast<int>(times_slower);

}  // namespace rondo::test
