// Whether memory that is given back to the system reads as zero on this machine.
#pragma once

#include <cstddef>
#include <new>

#include "sync/pages.hpp"

namespace rondo::test {

/// Tries it out, because emulators of Linux may claim to do so when they do not.
inline bool system_drops_pages() {
  const std::size_t size = detail::page_size();
  if (size == 0) return false;
  const std::align_val_t alignment{size};
  auto* const page = static_cast<volatile unsigned char*>(::operator new(size, alignment));
  page[0] = 1;
  page[size - 1] = 1;
  const bool dropped =
      detail::drop_pages(const_cast<unsigned char*>(page), size) && page[0] == 0 && page[size - 1] == 0;
  ::operator delete(const_cast<unsigned char*>(page), alignment);
  return dropped;
}

}  // namespace rondo::test
