// How long an answer of a web server may be used: RFC 9111, and RFC 5861 for stale answers.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "../origin.hpp"

namespace cache_refresh {

struct http_caching {
  std::string_view cache_control;  // all Cache-Control lines, joined with commas
  std::chrono::seconds age{0};     // Age: how long other caches have held it
  // Expires, counted from Date. Ignored if there is a max-age.
  std::optional<std::chrono::seconds> expires;
};

// Fresh for max-age minus Age, and served while stale for the longer of stale-while-revalidate and stale-if-error.
// - An answer that is stale at once (no-cache, no-store, max-age=0) counts as fresh for shortest_ttl, one second.
//   Otherwise a cache that loads ahead would load it without a pause.
// - With must-revalidate, proxy-revalidate, no-cache or no-store, an answer is not served when stale.
// - The result is empty if there is no max-age, Expires, no-cache or no-store.
time_to_live ttl_of(const http_caching&);

}  // namespace cache_refresh
