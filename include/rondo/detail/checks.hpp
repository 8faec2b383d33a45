// Checked builds (Meson's option `checks`): what is looked at, how often, and what happens if it is wrong.
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

/// Dies unless `right`: in checked builds, and wherever assert() would.
inline void require([[maybe_unused]] bool right, [[maybe_unused]] const char* what) noexcept {
#if defined(RONDO_CHECKS) || !defined(NDEBUG)
  if (!right) [[unlikely]]
    die(what);
#endif
}

/// A room of the library says with fault() what of it is not as it must be: in words, or an empty string if
/// all is well. To look at everything after each call would take time in proportion to what there is. So each
/// call pays for some steps, and as soon as these are as many as the buckets and the timers it is looked: in
/// small wheels after every call or two, in one of 512 buckets after every 65th or so. (With four times as many,
/// the tests take five minutes a suite.)
inline constexpr std::size_t check_steps_per_call = 8;

}  // namespace rondo::detail
