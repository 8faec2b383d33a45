// Runs the same work with a cache in each mode.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "common/interrupt.hpp"
#include "options.hpp"
#include "origin.hpp"
#include "snapshot.hpp"

namespace cache_refresh {

struct comparison {
  std::vector<snapshot> modes;  // refresh-ahead last
  rondo::duration seconds{};    // for each mode

  // The number of loads in the busiest second of an hour, on virtual time, for 10,000 keys with a TTL of one minute
  // that were loaded together.
  std::uint64_t peak_without_jitter = 0;
  std::uint64_t peak_with_jitter = 0;
  double mean_rate = 0;  // loads per second, with jitter
};

// Runs the modes one after another. If interrupted, returns fewer modes.
comparison compare_modes(const options&, origin&, const std::vector<std::string>& names,
                         const common::interrupt&);

void print(const comparison&);
void write_csv(const comparison&, std::ostream&);
void write_svg(const comparison&, std::ostream&);

}  // namespace cache_refresh
