// What the scheduling calls throw, apart from std::invalid_argument, std::logic_error and std::bad_alloc.
#pragma once

#include <stdexcept>

#include <rondo/export.hpp>

namespace rondo {

/// A timer cannot be scheduled because stop() or drain() has begun, because the object through which it is scheduled is
/// closed or being destroyed, or because this is a forked child. Also thrown into a coroutine whose timer will not
/// fire.
struct RONDO_EXPORT stopped_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A timer cannot be scheduled because `options::max_pending` timers are already pending.
struct RONDO_EXPORT capacity_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

/// Throws std::system_error. Out of line, so that the headers compile under -fno-exceptions.
[[noreturn]] RONDO_EXPORT void refuse_system(int error, const char* what);

}  // namespace detail

}  // namespace rondo
