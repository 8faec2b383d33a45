// Random numbers, repeatable from a seed, for one thread at a time.
#pragma once

#include <cstdint>

#include <rondo/time.hpp>

#include "splitmix64.hpp"

namespace soak {

class dice : public splitmix64 {
 public:
  using splitmix64::splitmix64;

  /// 0 … n - 1
  std::uint64_t below(std::uint64_t n) noexcept { return (*this)() % n; }
  bool percent(std::uint64_t share) noexcept { return below(100) < share; }
  rondo::duration up_to(rondo::duration most) noexcept {
    return rondo::duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.count()) + 1)));
  }
  /// Independent dice for another thread.
  dice split() noexcept { return dice((*this)()); }
};

}  // namespace soak
