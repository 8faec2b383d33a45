#include "environment.hpp"

#include <fstream>
#include <thread>

namespace measure {

namespace {

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

environment this_environment() {
  return {
      .machine = processor() + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores",
#ifdef __clang__
      .compiler = "clang++ " __clang_version__,
#else
      .compiler = "g++ " __VERSION__,
#endif
      .optimisation = RONDO_BENCHMARK_OPTIMISATION,
  };
}

}  // namespace measure
