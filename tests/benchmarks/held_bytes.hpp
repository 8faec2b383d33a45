// How much of the heap is in use.
#pragma once

#include <malloc.h>

#include <cstddef>

/// Counts all users of the heap, C libraries included, and what malloc adds to each block.
inline std::size_t held_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
