// Small numbers for the threads of the process.
#pragma once

#include <cstddef>

#include "sync/thread_local.hpp"

namespace rondo::detail {

/// A number below `exclusive` belongs to one thread, from its first call of of_this_thread() until it ends. Then another
/// thread may get the number, and everything the first thread did happens before that. When all of these numbers are taken,
/// threads get larger ones, and keep them. So does a thread that calls of_this_thread() while its thread_local variables are
/// being destroyed, except with MinGW, where it still gets its number.
class thread_numbers {
 public:
  static constexpr std::size_t exclusive = 32;

  static std::size_t of_this_thread() noexcept {
    if (number_plus_one == 0) [[unlikely]]
      number_plus_one = get() + 1;
    return number_plus_one - 1;
  }
  /// The number that the calling thread already has, or what is no thread's number: if it has none, or if that was forgotten
  /// because its thread_local variables are being destroyed.
  static std::size_t known() noexcept { return number_plus_one - 1; }

 private:
  class return_at_exit;

  static std::size_t get() noexcept;
  static std::size_t get_larger() noexcept;

  RONDO_THREAD_LOCAL static constinit std::size_t number_plus_one;  // 0 if the thread has no number yet
};

}  // namespace rondo::detail
