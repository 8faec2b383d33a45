// Wheels with the interface of rondo::wheel, for tests that try the same on all of them: one that redistributes few
// nodes at a time, and the wheel of a shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>
#include <rondo/wheel.hpp>

namespace rondo::detail {

struct wheel_access {
  template <class Node>
  static wheel_core& core(wheel<Node>& w) {
    return w.core_;
  }
};

}  // namespace rondo::detail

namespace rondo::test {

/// Parts so small that even short lists are redistributed in several steps.
inline constexpr std::uint32_t few_nodes = 3;

/// The number of nodes that are in no bucket.
template <class Wheel>
std::size_t far_nodes(const Wheel& w) {
  std::size_t found = 0;
  w.for_each_entry([&](std::optional<std::size_t> bucket, tick_number, auto&& each) {
    if (!bucket) each([&](const detail::node&) { ++found; });
  });
  return found;
}

struct public_wheel {
  static constexpr bool in_order = true;
  using node = wheel_node;
  template <class Node>
  using wheel = rondo::wheel<Node>;
};

/// A rondo::wheel that redistributes few nodes at a time.
struct small_parts : public_wheel {
  template <class Node>
  struct wheel : rondo::wheel<Node> {
    explicit wheel(std::size_t buckets = 512, tick_number now = 0) : rondo::wheel<Node>(buckets, now) {
      core().part = few_nodes;
    }
    detail::wheel_core& core() { return detail::wheel_access::core(*this); }
    std::string fault() { return core().fault(); }
  };
};

/// The wheel of a shard: it takes the nodes of a tick in any order.
struct any_order : public_wheel {
  static constexpr bool in_order = false;
  template <class Node>
  struct wheel : small_parts::wheel<Node> {
    explicit wheel(std::size_t buckets = 512, tick_number now = 0) : small_parts::wheel<Node>(buckets, now) {
      this->core().in_order = false;
    }
  };
};

}  // namespace rondo::test
