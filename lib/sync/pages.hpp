// Gives memory back while its addresses stay in use.
#pragma once

#include <cstddef>

namespace rondo::detail {

/// The size of the pages that drop_pages() takes, or 0 if this system has no such call. (On systems other than Linux,
/// memory that is given back does not reliably read as zero.)
std::size_t page_size() noexcept;

/// Gives back the memory of whole pages, which lie in one block of operator new. From now on they read as zero, and
/// they take memory again when they are written. Returns false if nothing has changed, for example because the memory
/// is locked. On a system that emulates Linux, it may return true although nothing has changed. Precondition:
/// page_size() != 0.
bool drop_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace rondo::detail
