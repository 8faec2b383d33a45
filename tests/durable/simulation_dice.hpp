// The choices of a simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>

#include <rondo/time.hpp>

#include "splitmix64.hpp"

namespace durable_test {

class simulation_dice {
 public:
  explicit simulation_dice(std::uint64_t seed) noexcept : next_(seed) {}

  std::uint64_t operator()() noexcept { return next_(); }
  /// Precondition: n > 0.
  std::uint64_t below(std::uint64_t n) noexcept { return next_() % n; }
  /// `n` times in 1,000 on average.
  bool in_1000(unsigned n) noexcept { return n != 0 && below(1000) < n; }
  rondo::duration evenly_up_to(rondo::duration most) noexcept {
    return rondo::duration(
        static_cast<rondo::duration::rep>(below(static_cast<std::uint64_t>(most.count()) + 1)));
  }
  /// Mostly short ones: each half of the range is as likely as all that is shorter.
  rondo::duration up_to(rondo::duration most) noexcept {
    return evenly_up_to(rondo::duration(most.count() >> below(8)));
  }
  template <class T>
  T one_of(std::initializer_list<T> choices) noexcept {
    return *std::next(choices.begin(), static_cast<std::ptrdiff_t>(below(choices.size())));
  }

 private:
  splitmix64 next_;
};

}  // namespace durable_test
