// How much of the heap is in use.
#pragma once

#include <malloc.h>

#include <cstddef>

/// By whomever, C libraries included; with what malloc adds to each block.
inline std::size_t held_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
