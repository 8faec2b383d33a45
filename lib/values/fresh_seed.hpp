// Seeds for those who have none.
#pragma once

#include <cstdint>

namespace rondo::detail {

/// Another one with each call, and in each process. Any thread may call it.
std::uint64_t fresh_seed() noexcept;

}  // namespace rondo::detail
