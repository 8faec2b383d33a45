// Memory that is given back while its addresses stay in use.
#pragma once

#include <cstddef>

namespace rondo::detail {

/// The size of the pages that drop_pages() takes; 0: this system has no such call. (Elsewhere than on Linux what is given
/// back does not read as zero for certain.)
std::size_t page_size() noexcept;

/// Gives back the memory of whole pages, which lie in one block of operator new: they read as zero from now on, and take
/// memory again when they are written. False: nothing has changed, as with memory that is locked. A system that emulates
/// Linux may return true although nothing has changed. Precondition: page_size() != 0.
bool drop_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace rondo::detail
