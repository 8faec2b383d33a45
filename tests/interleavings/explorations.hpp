// Shared by the tests of interleavings.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "interleavings/explorer.hpp"

namespace rondo::test {

/// The bound on preemptions if there are too many schedules of three threads.
inline constexpr std::size_t few = 1;

/// Explores, and prints the number of schedules on a separate line.
inline exploration explore_and_tell(const std::function<scenario()>& make,
                                    std::optional<std::size_t> preemptions = {}, std::size_t stale = 0) {
  const exploration e = explore(make, preemptions, stale);
  std::cout << doctest::getContextOptions()->currentTest->m_name << ": " << e.schedules << " schedules";
  if (preemptions) std::cout << " of at most " << *preemptions << " preemptions";
  if (stale != 0) std::cout << ", and " << stale << " stale values";
  if (e.repeated != 0) std::cout << ", and " << e.repeated << " cut off";
  std::cout << std::endl;
  return e;
}

/// A number in the environment, or else `otherwise`.
inline std::size_t number_in_environment(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoul(text);
}

/// Explores all schedules with sequentially consistent memory, and then those with few preemptions and stale values.
inline void check_every_schedule(const std::function<scenario()>& make,
                                 std::optional<std::size_t> preemptions = {}) {
  static const std::size_t stale = number_in_environment("RONDO_TEST_STALE", 1);
  static const std::size_t weak_preemptions = number_in_environment("RONDO_TEST_PREEMPTIONS", 0);
  static const bool weak_only = number_in_environment("RONDO_TEST_WEAK_ONLY", 0) != 0;
  if (!weak_only) {
    const exploration e = explore_and_tell(make, preemptions);
    CHECK(e.schedules > 1);
    CHECK_MESSAGE(e.failure.empty(), e.failure);
  }
  const exploration weak = explore_and_tell(make, weak_preemptions, stale);
  CHECK_MESSAGE(weak.failure.empty(), weak.failure);
}

/// For scenes that are small enough for wider bounds than others have.
inline void check_small(const std::function<scenario()>& make, std::size_t preemptions = 1,
                        std::size_t stale = 2) {
  check_every_schedule(make);
  const exploration weak = explore_and_tell(make, preemptions, stale);
  CHECK_MESSAGE(weak.failure.empty(), weak.failure);
}

}  // namespace rondo::test
