// What an answer of a web server says of how long it may be used: RFC 9111, and RFC 5861 for stale ones.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "../origin.hpp"

namespace cache_refresh {

struct http_caching {
  std::string_view cache_control;  // all such lines, joined with commas
  std::chrono::seconds age{0};     // Age: how long other caches have had it
  // Expires, counted from Date. Does not count if there is a max-age.
  std::optional<std::chrono::seconds> expires;
};

// Fresh for max-age less Age, and served while stale for the longer one of stale-while-revalidate and stale-if-error.
// - What is stale at once (no-cache, no-store, max-age=0) counts as fresh for shortest_ttl, one second: a cache that
//   loads ahead would otherwise load it without a pause.
// - must-revalidate, no-cache and no-store: not served when stale.
// - Neither max-age nor Expires nor one of these: says nothing.
time_to_live ttl_of(const http_caching&);

}  // namespace cache_refresh
