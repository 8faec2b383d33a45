// Shared by the tests of interleavings.
#pragma once

#include <cstddef>
#include <functional>
#include <iostream>
#include <optional>

#include <doctest/doctest.h>

#include "interleavings/explorer.hpp"

namespace rondo::test {

/// The bound on preemptions if there are too many schedules of three threads.
inline constexpr std::size_t few = 1;

/// Explores, and prints the number of schedules on a separate line.
inline exploration explore_and_tell(const std::function<scenario()>& make,
                                    std::optional<std::size_t> preemptions = {}) {
  const exploration e = explore(make, preemptions);
  std::cout << doctest::getContextOptions()->currentTest->m_name << ": " << e.schedules << " schedules";
  if (preemptions) std::cout << " of at most " << *preemptions << " preemptions";
  if (e.repeated != 0) std::cout << ", and " << e.repeated << " cut off";
  std::cout << std::endl;
  return e;
}

inline void check_every_schedule(const std::function<scenario()>& make,
                                 std::optional<std::size_t> preemptions = {}) {
  const exploration e = explore_and_tell(make, preemptions);
  CHECK(e.schedules > 1);
  CHECK_MESSAGE(e.failure.empty(), e.failure);
}

}  // namespace rondo::test
