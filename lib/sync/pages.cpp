#include "sync/pages.hpp"

#include "platform.hpp"

#if RONDO_HAS_DROPPED_PAGES
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace rondo::detail {

#if RONDO_HAS_DROPPED_PAGES

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

bool drop_pages(void* begin, std::size_t bytes) noexcept {
  return ::madvise(begin, bytes, MADV_DONTNEED) == 0;
}

#else

std::size_t page_size() noexcept { return 0; }
bool drop_pages(void* /*begin*/, std::size_t /*bytes*/) noexcept { return false; }

#endif

}  // namespace rondo::detail
