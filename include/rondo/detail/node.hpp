// The part of a timer that belongs to the wheel.
#pragma once

#include <atomic>
#include <cstdint>

#include <rondo/detail/ticks.hpp>

namespace rondo::detail {

/// The base of all wheels, so that a node can point to its wheel whatever the type.
class wheel_base {};

/// A value that is read without the lock under which it is written: the reader takes a lock then and looks again. As cheap
/// as a plain variable.
template <class T>
class hint {
 public:
  constexpr hint(T value) noexcept : value_(value) {}
  hint(const hint& other) noexcept : value_(T(other)) {}
  hint& operator=(const hint& other) noexcept { return *this = T(other); }
  hint& operator=(T value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  operator T() const noexcept { return value_.load(std::memory_order_relaxed); }

  /// Who acquires this value sees what was done before.
  void release(T value) noexcept { value_.store(value, std::memory_order_release); }
  T acquire() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<T> value_;
};

/// 20 bytes, so that a derived type with a payload of four bytes has 24. The constructor is written out because a type
/// without one does not share its tail padding with derived types.
struct node {
  node() noexcept {}  // NOLINT(modernize-use-equals-default)

  hint<wheel_base*> wheel = nullptr;  // null: not scheduled
  hint<tick_number> due = 0;
  std::uint32_t position = 0;  // the number of its slot in the chunk_pool of its stripe
};

}  // namespace rondo::detail
