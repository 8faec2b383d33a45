// Counts what this test program allocates, and makes allocations fail.
#pragma once

#include <cstddef>

namespace allocations {

/// So far, in this program.
std::size_t count() noexcept;
/// Held at the moment, as asked for.
std::ptrdiff_t bytes_held() noexcept;

/// While it lives, the allocations after the first `successes` ones fail with std::bad_alloc.
class failing {
 public:
  explicit failing(std::size_t successes) noexcept;
  ~failing();
  failing(const failing&) = delete;
  failing& operator=(const failing&) = delete;
};

}  // namespace allocations
