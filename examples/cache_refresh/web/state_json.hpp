// The figures and the wheel for the page.
#pragma once

#include <string>

#include "../snapshot.hpp"

namespace cache_refresh {

struct health {
  bool good = true;
  std::string line;  // "ok", or what is wrong
};

// Healthy if the share of keys that are stale or have no value does not exceed the limit. A cache without keys is
// healthy, because nobody has asked it for anything.
health judge(const key_counts&, double stale_limit);

// Returns JSON. The names are those of the structures; durations are in seconds.
std::string state_json(const snapshot&, const wheel_picture&, double stale_limit);

}  // namespace cache_refresh
