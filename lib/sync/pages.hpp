// Gives memory back while its addresses stay in use.
#pragma once

#include <cstddef>
#include <new>

#include "platform.hpp"

#if RONDO_HAS_DROPPED_PAGES
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace rondo::detail {

/// The size of the pages that drop_pages() takes, or 0 if this system has no such call. (On systems other than Linux,
/// memory that is given back does not reliably read as zero.)
inline std::size_t page_size() noexcept {
#if RONDO_HAS_DROPPED_PAGES
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
#else
  return 0;
#endif
}

/// Gives back the memory of whole pages, which lie in one block of operator new. From now on they read as zero, and
/// they take memory again when they are written. Returns false if nothing has changed, for example because the memory
/// is locked. Precondition: page_size() != 0.
inline bool drop_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#if RONDO_HAS_DROPPED_PAGES
  return ::madvise(begin, bytes, MADV_DONTNEED) == 0;
#else
  return false;
#endif
}

/// Whether drop_pages() does what it says: an emulator of Linux may return true although nothing has changed. Tried out
/// once, and not with each page that is given back, because reading such a page can take memory again.
inline bool drops_pages() noexcept {
  static const bool result = [] {
    const std::size_t size = page_size();
    if (size == 0) return false;
    const std::align_val_t alignment{size};
    auto* const page = static_cast<volatile unsigned char*>(::operator new(size, alignment, std::nothrow));
    if (page == nullptr) return false;
    page[0] = 1;
    page[size - 1] = 1;
    auto* const begin = const_cast<unsigned char*>(page);
    const bool is_zero = drop_pages(begin, size) && page[0] == 0 && page[size - 1] == 0;
    ::operator delete(begin, alignment);
    return is_zero;
  }();
  return result;
}

}  // namespace rondo::detail
