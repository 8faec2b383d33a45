// Chance, repeatable from a seed, for one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>

#include <rondo/time.hpp>

namespace soak {

/// splitmix64.
class dice {
 public:
  explicit dice(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t operator()() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// 0 … n - 1
  std::uint64_t below(std::uint64_t n) noexcept { return (*this)() % n; }
  bool percent(std::uint64_t share) noexcept { return below(100) < share; }
  rondo::duration up_to(rondo::duration most) noexcept {
    return rondo::duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.count()) + 1)));
  }
  /// Dice of their own for another thread.
  dice split() noexcept { return dice((*this)()); }

 private:
  std::uint64_t state_;
};

}  // namespace soak
