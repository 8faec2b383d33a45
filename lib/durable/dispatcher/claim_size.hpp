// How large the next claim is.
#pragma once

#include <algorithm>
#include <cstddef>

namespace rondo::durable::detail {

/// How much a claim asks for: less after each claim that failed or took long, as it may have been too large; more after
/// each other one.
class claim_size {
 public:
  /// What to ask for if this much is wanted. At least 1.
  std::size_t of(std::size_t wanted) const noexcept { return std::max<std::size_t>(wanted / divisor_, 1); }
  bool is_reduced() const noexcept { return divisor_ != 1; }

  void halve() noexcept { divisor_ = std::min(divisor_ * 2, largest_divisor); }
  /// Not beyond the original size.
  void redouble() noexcept { divisor_ = std::max<std::size_t>(divisor_ / 2, 1); }

 private:
  // The default limits then become one task and a kilobyte.
  static constexpr std::size_t largest_divisor = 1U << 16U;

  std::size_t divisor_ = 1;
};

}  // namespace rondo::durable::detail
