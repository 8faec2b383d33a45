// Seeds for timers with jitter that have none.
#pragma once

#include <cstdint>

namespace rondo::detail {

/// A different seed in each call and each process. Thread-safe.
std::uint64_t fresh_seed() noexcept;

}  // namespace rondo::detail
