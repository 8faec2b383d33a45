// An origin that misbehaves on purpose.
#pragma once

#include <cstdint>
#include <memory>

#include "origin.hpp"

namespace cache_refresh {

enum class chaos {
  none,
  slow,  // about half of the loads, at random, take 0.1 to 3 s longer
  down,  // for 15 s, then up for 15 s, and so on
  flap,  // as down, but for 2 s at a time
  wrong  // about a third of the answers, at random, are impossible: no text, or a time to live of 0
};

struct chaos_options {
  chaos kind = chaos::none;
  unsigned fail_percent = 0;                       // percentage of failing loads, whatever the kind
  rondo::duration calm = std::chrono::seconds(5);  // how long after the start `kind` has no effect yet
  std::uint64_t seed = 0;
};

// Loads through the returned origin misbehave. Everything else goes to the real origin, which must outlive it.
std::unique_ptr<origin> with_chaos(origin& real, const chaos_options&);

}  // namespace cache_refresh
