// Makes a call fail at each of its allocations in turn.
#pragma once

#include <cstddef>
#include <new>

#include "failing_new.hpp"

namespace wheel_test {

/// Calls `act` again and again, with its first allocation failing, then its second, and so on until it succeeds. Calls
/// `check` after each failure. Returns the number of failures.
template <class Act, class Check>
std::size_t fail_at_each_allocation(Act&& act, Check&& check) {
  for (std::size_t successes = 0;; ++successes) {
    bool failed = false;
    try {
      const rondo::test::failing_new memory(successes);
      act();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    if (!failed) return successes;
    check();
  }
}

}  // namespace wheel_test
