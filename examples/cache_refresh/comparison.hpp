// The same work with a cache of each mode.
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
  rondo::duration seconds{};    // of each

  // How many loads 10,000 keys with a TTL of a minute, loaded together, make in the busiest second of the next hour. On
  // virtual time.
  std::uint64_t peak_without_jitter = 0;
  std::uint64_t peak_with_jitter = 0;
  double mean_rate = 0;  // with jitter
};

// Runs them one after another. If it is interrupted what it returns has fewer modes.
comparison compare_modes(const options&, origin&, const std::vector<std::string>& names,
                         const common::interrupt&);

void print(const comparison&);
void write_csv(const comparison&, std::ostream&);
void write_svg(const comparison&, std::ostream&);

}  // namespace cache_refresh
