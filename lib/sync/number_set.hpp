// Numbers that threads share out.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rondo::detail {

/// The numbers 0 … 31. Each belongs to one owner at a time, and all that one owner has done before give_back() happens before
/// what the next one does after take().
template <class Atomic>
class number_set {
 public:
  static constexpr std::size_t size = 32;

  /// Returns the smallest number that is free, or `size` if none is.
  std::size_t take() noexcept {
    std::uint32_t before = taken_.load(std::memory_order_relaxed);
    for (;;) {
      const auto number = static_cast<std::size_t>(std::countr_one(before));
      if (number == size ||
          taken_.compare_exchange_weak(before, before | std::uint32_t{1} << number, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        return number;
    }
  }
  void give_back(std::size_t number) noexcept {
    taken_.fetch_and(~(std::uint32_t{1} << number), std::memory_order_release);
  }

 private:
  Atomic taken_{0};  // a bit for each
};

}  // namespace rondo::detail
