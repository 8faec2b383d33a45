// What an array of nodes holds, in order.
#pragma once

#include <vector>

#include <rondo/detail/node_array.hpp>

namespace model {

inline std::vector<const rondo::detail::node*> nodes_of(const rondo::detail::node_array& array) {
  std::vector<const rondo::detail::node*> found;
  array.for_each([&](const rondo::detail::node& n) { found.push_back(&n); });
  return found;
}

}  // namespace model
