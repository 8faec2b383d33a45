// One step of a thread, as the explorer of interleavings sees it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rondo::test {

/// An object that threads share, and whether a step changes it.
struct access {
  const void* object = nullptr;
  bool writes = false;
};

struct operation {
  const char* what = "";                // "lock"
  const char* of = "";                  // "record": the sort of the first object
  std::array<access, 3> accesses = {};  // entries without an object are unused

  const void* object() const noexcept { return accesses[0].object; }
};

/// Whether the order of these steps matters. (Anything that neither lists as an access must not depend on the order.)
inline bool dependent(const operation& a, const operation& b) noexcept {
  return std::any_of(a.accesses.begin(), a.accesses.end(), [&](const access& x) {
    return x.object != nullptr && std::any_of(b.accesses.begin(), b.accesses.end(), [&](const access& y) {
             return x.object == y.object && (x.writes || y.writes);
           });
  });
}

inline constexpr std::size_t most_threads = 4;
inline constexpr std::size_t nobody = most_threads;

/// Bit i is set if thread i is in the set.
using thread_set = std::uint32_t;

constexpr thread_set only(std::size_t thread) noexcept { return thread_set{1} << thread; }
constexpr bool has(thread_set set, std::size_t thread) noexcept { return (set & only(thread)) != 0; }

}  // namespace rondo::test
