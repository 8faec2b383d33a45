// What the scheduling calls throw, apart from std::invalid_argument, std::logic_error and std::bad_alloc.
#pragma once

#include <stdexcept>

#include <rondo/export.hpp>

namespace rondo {

/// A timer cannot be scheduled: after stop() or drain(), through an object that is being destroyed, or in a forked
/// child. Also thrown into a coroutine that waits for a timer which will not fire.
struct RONDO_EXPORT stopped_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A timer cannot be scheduled: `options::max_pending` timers are pending.
struct RONDO_EXPORT capacity_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

/// Throws std::system_error. Out of line, so that the headers compile under -fno-exceptions.
[[noreturn]] RONDO_EXPORT void refuse_system(int error, const char* what);

}  // namespace detail

}  // namespace rondo
