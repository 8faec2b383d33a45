// Seeds for timers with jitter but without a seed.
#pragma once

#include <cstdint>

namespace rondo::detail {

/// Returns a different seed in each call and each process. Thread-safe.
std::uint64_t fresh_seed() noexcept;

}  // namespace rondo::detail
