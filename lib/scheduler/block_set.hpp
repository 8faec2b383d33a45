// A set of block numbers, as bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/counters.hpp"

namespace rondo::detail {

/// A set of small numbers. Only one thread at a time may use it, except for size().
class block_set {
 public:
  /// May be called at any time.
  std::uint64_t size() const noexcept { return size_; }
  bool contains(std::size_t block) const noexcept {
    return block / bits < words_.size() && (words_[block / bits] >> block % bits & 1U) != 0;
  }

  /// Makes it legal to insert() all numbers below `end`. Strong guarantee.
  void reserve(std::size_t end) {
    if (words_.size() * bits < end) words_.resize((end + bits - 1) / bits);
  }
  /// Precondition: it does not contain `block`.
  void insert(std::size_t block) noexcept {
    words_[block / bits] |= std::uint64_t{1} << block % bits;
    if (block / bits < first_) first_ = block / bits;
    ++size_;
  }
  /// Removes and returns the smallest number. Precondition: the set is not empty.
  std::size_t take_first() noexcept {
    while (words_[first_] == 0) ++first_;
    const std::size_t block = first_ * bits + static_cast<std::size_t>(std::countr_zero(words_[first_]));
    words_[first_] &= words_[first_] - 1;
    --size_;
    return block;
  }

 private:
  static constexpr std::size_t bits = 64;

  std::vector<std::uint64_t> words_;
  std::size_t first_ = 0;  // no word before it has a bit set
  counter size_;
};

}  // namespace rondo::detail
