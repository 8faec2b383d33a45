// A value that counts how often it is copied, moved, called and destroyed.
#pragma once

#include <cstddef>

namespace values_test {

struct counts {
  int alive = 0;
  int made = 0;
  int copied = 0;
  int moved = 0;
  int destroyed = 0;
  int called = 0;
};

/// Has at least `Size` bytes. NoexceptMove says whether its move constructor is noexcept.
template <std::size_t Size = 1, bool NoexceptMove = true>
class counted {
 public:
  explicit counted(counts& c) : counts_(&c) {
    ++counts_->made;
    ++counts_->alive;
  }
  counted(const counted& other) : counts_(other.counts_) {
    ++counts_->copied;
    ++counts_->alive;
  }
  counted(counted&& other) noexcept(NoexceptMove) : counts_(other.counts_) {
    ++counts_->moved;
    ++counts_->alive;
  }
  counted& operator=(const counted&) = delete;
  ~counted() {
    --counts_->alive;
    ++counts_->destroyed;
  }

  void operator()() const { ++counts_->called; }

 private:
  counts* counts_;
  unsigned char bulk_[Size] = {};
};

using small = counted<>;
using large = counted<1000>;
using throwing_move = counted<1, false>;

}  // namespace values_test
