// What a wheel keeps in each timer.
#pragma once

#include <cstdint>

#include <rondo/detail/ticks.hpp>

namespace rondo::detail {

/// Lets a node name its wheel without knowing of which kind it is.
class wheel_base {};

/// 20 bytes, so that a four-byte payload of the derived type makes 24. (The constructor is written out
/// because the tail of a type without one is not given to derived types.)
struct node {
  node() noexcept {}  // NOLINT(modernize-use-equals-default)

  wheel_base* wheel = nullptr;  // null: not scheduled
  tick_number due = 0;
  std::uint32_t position = 0;  // the number of its slot in the chunk_pool
};

}  // namespace rondo::detail
