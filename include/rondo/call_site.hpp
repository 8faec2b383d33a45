// A place in the user's code.
#pragma once

#include <rondo/export.hpp>

namespace rondo {

/// A line of a file, in a function. Without a file, the place is unknown.
struct call_site {
  const char* file = nullptr;      ///< as given to the compiler; null if the place is unknown
  const char* function = nullptr;  ///< without its arguments
  unsigned line = 0;               ///< counted from 1

  /// Whether the place is known.
  explicit constexpr operator bool() const noexcept { return file != nullptr; }

  /// The place of this call. As a default argument, the place where the function with that argument is called.
  static constexpr call_site here(const char* file = __builtin_FILE(),
                                  const char* function = __builtin_FUNCTION(),
                                  unsigned line = __builtin_LINE()) noexcept {
    return {file, function, line};
  }
};

namespace detail {

/// The place where a task was created: recorded in checked builds, empty otherwise. (It is only created by name, so
/// that no argument of a user's call, `{}` for example, converts to it.)
class RONDO_CHECKED_ABI kept_call_site {
 public:
#if defined(RONDO_CHECKS)
  static constexpr kept_call_site here(const char* file = __builtin_FILE(),
                                       const char* function = __builtin_FUNCTION(),
                                       unsigned line = __builtin_LINE()) noexcept {
    return kept_call_site({file, function, line});
  }
  /// No place in the user's code.
  static constexpr kept_call_site none() noexcept { return kept_call_site({}); }
  constexpr operator call_site() const noexcept { return place_; }

 private:
  explicit constexpr kept_call_site(const call_site& place) noexcept : place_(place) {}
  call_site place_;
#else
  static constexpr kept_call_site here() noexcept { return kept_call_site(0); }
  static constexpr kept_call_site none() noexcept { return kept_call_site(0); }
  constexpr operator call_site() const noexcept { return {}; }

 private:
  explicit constexpr kept_call_site(int) noexcept {}
#endif
};

}  // namespace detail
}  // namespace rondo
