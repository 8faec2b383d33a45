// The nodes of a chain, in order.
#pragma once

#include <vector>

#include <rondo/detail/chunks.hpp>

namespace model {

inline std::vector<const rondo::detail::node*> nodes_of(const rondo::detail::chain& nodes,
                                                        const rondo::detail::chunk_pool& pool) {
  std::vector<const rondo::detail::node*> found;
  nodes.for_each(pool, [&](const rondo::detail::node& n) { found.push_back(&n); });
  return found;
}

}  // namespace model
