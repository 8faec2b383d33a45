// As include/rondo/detail/sync.hpp, but each use of a lock or an atomic is a step of the explorer: see
// tests/instrumented/sync/sync.hpp.
#pragma once

#include "interleavings/explored.hpp"

namespace rondo::detail::header_sync {

using mutex = test::ranked_mutex<test::lock_rank::keys>;

template <class T>
struct atomic : test::explored_atomic<T> {
  using test::explored_atomic<T>::explored_atomic;

  operator T() const { return this->load(); }
};

}  // namespace rondo::detail::header_sync
