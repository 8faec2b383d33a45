#include "values/fresh_seed.hpp"

#include <atomic>
#include <exception>
#include <random>

namespace rondo::detail {
namespace {

std::uint64_t random_start() noexcept {
  try {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
  } catch (const std::exception&) {  // the system has no source, so all processes draw the same numbers
    return 0;
  }
}

}  // namespace

std::uint64_t fresh_seed() noexcept {
  static std::atomic<std::uint64_t> seeds{random_start()};
  return seeds.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace rondo::detail
