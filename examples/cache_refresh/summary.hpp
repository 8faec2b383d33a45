// The summary: how well the cache kept up with the origin.
#pragma once

#include <cstdint>
#include <vector>

#include "ledger.hpp"
#include "origin.hpp"
#include "snapshot.hpp"

namespace cache_refresh {

// Compares the whole cache with the whole origin, key by key, after all changes have ended.
struct comparison {
  std::uint64_t equal = 0;        // the cache holds the origin's newest version, and the same text
  std::uint64_t older = 0;        // it holds an earlier one
  std::uint64_t empty = 0;        // it holds none
  std::uint64_t wrong = 0;        // the same version, but another text: must stay 0
  std::uint64_t unread = 0;       // the origin cannot be read now
  std::uint64_t unannounced = 0;  // changes that the writer of this program did not make
};
comparison compare(const std::vector<row>& rows, const cache&, const ledger&, origin_reader&);

void print_summary(const snapshot& end, const comparison&);

}  // namespace cache_refresh
