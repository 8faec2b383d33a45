// Which keys fail, why, and since when: what the person on duty asks first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "loader.hpp"
#include "snapshot.hpp"

namespace cache_refresh {

// The error of the latest failure among the keys that fail now. None if no key fails. Visits every key twice.
std::optional<current_error> latest_error(const record_cache&, rondo::time_point now);

// The keys that fail now and whose name or error contains `find`; the case of ASCII letters does not matter. Keys that
// have nothing to serve come first, then those whose values end first. At most `most` of them are listed. Visits every
// key. `names`: of the keys.
failing_keys find_failing(const record_cache&, const std::vector<std::string>& names, const std::string& find,
                          rondo::time_point now, std::size_t most = 100);

}  // namespace cache_refresh
