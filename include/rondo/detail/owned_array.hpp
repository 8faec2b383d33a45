// An array with one owner.
#pragma once

#include <cstddef>
#include <utility>

namespace rondo::detail {

/// The part of std::unique_ptr<T[]> that the wheel needs. std::unique_ptr would cost the compiler about 7 ms for each T
/// in every file that includes the wheel.
template <class T>
class owned_array {
 public:
  owned_array() noexcept = default;
  /// Creates `size` default-initialised elements. Throws std::bad_alloc.
  explicit owned_array(std::size_t size) : first_(new T[size]) {}
  owned_array(owned_array&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
  owned_array& operator=(owned_array&& other) noexcept {
    std::swap(first_, other.first_);
    return *this;
  }
  ~owned_array() { delete[] first_; }

  /// The first element, or null if there is no array.
  T* get() const noexcept { return first_; }
  T& operator[](std::size_t i) const noexcept { return first_[i]; }

 private:
  T* first_ = nullptr;
};

}  // namespace rondo::detail
