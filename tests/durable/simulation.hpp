// Random programs of dispatchers, stores and faults over a simulated database.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "durable/simulated_world.hpp"

namespace durable_test {

struct simulation_result {
  std::string wrong;  // empty if nothing is
  simulation_counts counts;
  std::uint64_t runs = 0, checksum = 0;
};

/// One program. The same seed makes the same.
simulation_result simulate(std::uint64_t seed, const std::function<void(const std::string&)>& trace = {});

}  // namespace durable_test
