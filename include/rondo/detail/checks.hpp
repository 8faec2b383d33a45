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

/// Calls die() unless `right`, in checked builds and in builds without NDEBUG.
inline void require([[maybe_unused]] bool right, [[maybe_unused]] const char* what) noexcept {
#if defined(RONDO_CHECKS) || !defined(NDEBUG)
  if (!right) [[unlikely]]
    die(what);
#endif
}

/// A component's fault() verifies its invariants. It returns a description of the first one that is broken, or an
/// empty string. To verify all after each call would take time in proportion to the buckets and timers. So each call
/// pays for some steps, and when these are as many as the buckets and timers, the invariants are verified: in small
/// wheels after every call or two, in a wheel of 512 buckets after every 65th or so. (With four times as many steps a
/// call, the tests take five minutes a suite.)
inline constexpr std::size_t check_steps_per_call = 8;

}  // namespace rondo::detail
