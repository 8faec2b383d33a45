// The part of a timer that belongs to the wheel.
#pragma once

#include <cstdint>

#include <rondo/detail/ticks.hpp>

namespace rondo::detail {

/// The base of all wheels, so that a node can point to its wheel whatever the type.
class wheel_base {};

/// 20 bytes, so that a derived type with a payload of four bytes has 24. The constructor is written out because a type
/// without one does not share its tail padding with derived types.
struct node {
  node() noexcept {}  // NOLINT(modernize-use-equals-default)

  wheel_base* wheel = nullptr;  // null: not scheduled
  tick_number due = 0;
  std::uint32_t position = 0;  // the number of its slot in the chunk_pool of its stripe
};

}  // namespace rondo::detail
