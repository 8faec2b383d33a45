// Small numbers for the threads of the process.
#pragma once

#include <cstddef>

#include "sync/thread_local.hpp"

namespace rondo::detail {

/// A number below `exclusive` belongs to one thread, from its first call until it ends; then another thread may get it,
/// and what the first one did happens before that. When all of these are taken, threads get any larger number, and so do
/// those that call while their thread_local variables are destroyed.
class thread_numbers {
 public:
  static constexpr std::size_t exclusive = 32;

  static std::size_t of_this_thread() noexcept {
    if (number_plus_one == 0) [[unlikely]]
      number_plus_one = get() + 1;
    return number_plus_one - 1;
  }

 private:
  class return_at_exit;

  static std::size_t get() noexcept;
  static std::size_t get_larger() noexcept;

  RONDO_THREAD_LOCAL static constinit std::size_t number_plus_one;  // 0: the thread has none yet
};

}  // namespace rondo::detail
