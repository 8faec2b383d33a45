// An origin that misbehaves on purpose.
#pragma once

#include <cstdint>
#include <memory>

#include "origin.hpp"

namespace cache_refresh {

enum class chaos {
  none,
  slow,  // every other load takes 0.1 to 3 s longer
  down,  // for 15 s, then well for 15 s, and so on
  flap,  // the same with 2 s
  wrong  // every third answer cannot be true: no text, or a time to live of nothing
};

struct chaos_options {
  chaos kind = chaos::none;
  unsigned fail_percent = 0;                       // of the loads, whatever the kind
  rondo::duration calm = std::chrono::seconds(5);  // so long after the start all is well
  std::uint64_t seed = 0;
};

// Loads through what it returns misbehave; all else is passed on to the real one, which outlives it.
std::unique_ptr<origin> with_chaos(origin& real, const chaos_options&);

}  // namespace cache_refresh
