// The operator new of this program: it counts, and can be made to fail.
#pragma once

#include <cstddef>

namespace rondo::test {

/// While it lives, the allocations of this thread fail from the `after`-th on (0: all of them), `count` of
/// them.
class failing_new {
 public:
  static constexpr std::size_t all = static_cast<std::size_t>(-1);
  /// False where the compiler insists on an operator new of its own.
  static const bool available;

  explicit failing_new(std::size_t after = 0, std::size_t count = all);
  ~failing_new();
  failing_new(const failing_new&) = delete;
  failing_new& operator=(const failing_new&) = delete;

  /// Whether one has failed so far.
  bool struck() const;
};

/// Of all threads; both always 0 if failing_new is not available: how often memory was given so far, and what they
/// hold at the moment, as it was asked for.
std::size_t allocations() noexcept;
std::ptrdiff_t bytes_held() noexcept;

}  // namespace rondo::test
