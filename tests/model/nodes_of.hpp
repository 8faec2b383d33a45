// The nodes of a chain, in order; the earliest tick of far lists.
#pragma once

#include <optional>
#include <vector>

#include <rondo/detail/chunks.hpp>
#include <rondo/detail/far_lists.hpp>

namespace model {

inline std::vector<const rondo::detail::node*> nodes_of(const rondo::detail::chain& nodes,
                                                        const rondo::detail::chunk_pool& pool) {
  std::vector<const rondo::detail::node*> found;
  nodes.for_each(pool, [&](const rondo::detail::node& n) { found.push_back(&n); });
  return found;
}

inline std::optional<rondo::tick_number> earliest_of(rondo::detail::far_lists& store) {
  const auto key = store.earliest();
  return key ? std::optional(key->due) : std::nullopt;
}

}  // namespace model
