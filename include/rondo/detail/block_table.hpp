// Elements with numbers, in blocks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rondo::detail {

/// Elements with numbers from 1. They do not move. The first block has four elements, so a small table is small; each further one
/// has twice as many, up to 1,024, so no call takes long.
template <class T>
class block_table {
 public:
  using number = std::uint32_t;

  /// Precondition: 0 < n < end().
  T& at(number n) const noexcept {
    const position p = position_of(n - 1);
    return blocks_[p.block][p.index];
  }
  /// No element has this number or a greater one.
  number end() const noexcept { return last_ + 1; }
  /// Adds an element and returns its number, which is end(). Throws std::bad_alloc; strong guarantee.
  number add() {
    if (const position p = position_of(last_); p.block == blocks_.size())
      blocks_.push_back(std::make_unique<T[]>(p.block < most_block ? smallest << p.block : largest));
    return ++last_;
  }

 private:
  static constexpr std::size_t smallest = 4;
  static constexpr std::size_t largest = 1024;
  static constexpr std::size_t most_block =
      std::bit_width(largest / smallest) - 1;  // the first of the largest ones

  struct position {
    std::size_t block;
    std::size_t index;
  };

  static position position_of(std::size_t elements_before) noexcept {
    const std::size_t i = elements_before + smallest;
    if (i >= 2 * largest) return {i / largest - 1 + most_block, i % largest};
    return {static_cast<std::size_t>(std::bit_width(i / smallest)) - 1, i - std::bit_floor(i)};
  }

  std::vector<std::unique_ptr<T[]>> blocks_;
  number last_ = 0;
};

}  // namespace rondo::detail
