// For tests that repeat something thousands of times: fewer repetitions where it takes too long.
#pragma once

#include <cstddef>

namespace rondo::test {

#if defined(__has_feature)
#define RONDO_TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define RONDO_TEST_HAS_FEATURE(name) 0
#endif

/// The least factor by which tests are slower with sanitizers, with checks, without optimisation, and in an emulator
/// (which tests/portability/run defines).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(RONDO_CHECKS) || \
    !defined(__OPTIMIZE__) || RONDO_TEST_HAS_FEATURE(address_sanitizer) ||                    \
    RONDO_TEST_HAS_FEATURE(thread_sanitizer) || defined(RONDO_TEST_EMULATED)
inline constexpr std::size_t times_slower = 10;
#else
inline constexpr std::size_t times_slower = 1;
#endif

#if defined(RONDO_TEST_EMULATED)
inline constexpr bool emulated = true;
#else
inline constexpr bool emulated = false;
#endif

inline constexpr int a_million = 1'000'000 / static_cast<int>(times_slower);

}  // namespace rondo::test
