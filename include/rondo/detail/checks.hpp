// Checked builds (Meson's option `checks`): how invariants are verified, how often, and what happens if one is broken.
#pragma once

#include <cstddef>
#include <string>

#include <rondo/export.hpp>

namespace rondo::detail {

#if defined(RONDO_CHECKS)
inline constexpr bool checks = true;
#else
inline constexpr bool checks = false;
#endif

/// One line on stderr, "rondo: <what>", then std::abort().
[[noreturn]] RONDO_EXPORT void die(const std::string& what) noexcept;

/// Whether calls that are not allowed are found, even if that takes time.
#if defined(RONDO_CHECKS) || !defined(NDEBUG)
inline constexpr bool finds_misuse = true;
#else
inline constexpr bool finds_misuse = false;
#endif

/// A component's fault() verifies its invariants. It returns a description of the first one that is broken, or an empty
/// string. Verifying all of them after each call would take time proportional to the number of buckets and timers.
/// Instead, each call pays for some steps. Once there are as many steps as buckets and timers, the invariants are
/// verified: in small wheels after every call or two, in a wheel of 512 buckets after about every 65th. (With four
/// times as many steps per call, the tests take five minutes per suite.)
inline constexpr std::size_t check_steps_per_call = 8;

}  // namespace rondo::detail
