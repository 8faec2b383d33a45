// The part of a timer that belongs to the wheel.
#pragma once

#include <cstdint>

#include <rondo/detail/ticks.hpp>

namespace rondo::detail {

/// The base of all wheels, so that a node can point to its wheel whatever the wheel's type.
class wheel_base {};

/// A value that is written under a lock and read under that lock like a plain variable. It may also be read without the
/// lock, as a hint: the reader then takes a lock and checks again. (A std::atomic would cost 8 % more instructions per
/// firing in the wheel without locks, because no value stays in a register across an atomic access.)
template <class T>
class hint {
 public:
  constexpr hint(T value) noexcept : value_(value) {}
  hint(const hint&) = delete;
  hint& operator=(const hint&) = delete;

  // Under the lock.
  operator T() const noexcept { return value_; }
  void store(T value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }
  hint& operator=(T value) noexcept {
    store(value);
    return *this;
  }
  /// As store(), but a thread that acquires the value sees what was done before.
  void release(T value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  /// As store(), but only where nobody reads without the lock.
  void store_alone(T value) noexcept { value_ = value; }

  // Without the lock.
  T peek() const noexcept { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
  T acquire() const noexcept { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }

 private:
  T value_;
};

/// 20 bytes, so that a derived type with a payload of four bytes has 24. The constructor is written out because a type
/// without one does not share its tail padding with derived types.
struct node {
  node() noexcept {}  // NOLINT(modernize-use-equals-default)

  hint<wheel_base*> wheel = nullptr;  // null if not scheduled
  hint<tick_number> due = 0;
  std::uint32_t position = 0;  // the number of its slot in the chunk_pool of its stripe
};

}  // namespace rondo::detail
