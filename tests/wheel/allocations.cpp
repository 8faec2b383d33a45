#include "allocations.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>

namespace allocations {
namespace {

constexpr std::size_t never = static_cast<std::size_t>(-1);

// The tests of this program use one thread.
std::size_t allocated = 0;
std::ptrdiff_t held = 0;
std::size_t successes_left = never;

// In front of each block, to know its size when it is given back.
struct header {
  std::size_t size;
  void* block;
};

void* allocate(std::size_t size, std::size_t alignment) {
  if (successes_left == 0) throw std::bad_alloc();
  if (successes_left != never) --successes_left;
  void* const block = std::malloc(size + sizeof(header) + alignment);
  if (block == nullptr) throw std::bad_alloc();
  const auto unaligned = reinterpret_cast<std::uintptr_t>(block) + sizeof(header) + alignment - 1;
  const auto begin = reinterpret_cast<char*>(unaligned - unaligned % alignment);
  ::new (begin - sizeof(header)) header{size, block};
  ++allocated;
  held += static_cast<std::ptrdiff_t>(size);
  return begin;
}

void release(void* p) noexcept {
  if (p == nullptr) return;
  const header& h = *reinterpret_cast<header*>(static_cast<char*>(p) - sizeof(header));
  held -= static_cast<std::ptrdiff_t>(h.size);
  std::free(h.block);
}

}  // namespace

std::size_t count() noexcept { return allocated; }
std::ptrdiff_t bytes_held() noexcept { return held; }

failing::failing(std::size_t successes) noexcept { successes_left = successes; }
failing::~failing() { successes_left = never; }

}  // namespace allocations

// All forms, also those whose defaults would call these: a sanitizer brings defaults of its own.
void* operator new(std::size_t size) { return allocations::allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocations::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return operator new(size, alignment); }
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept { return operator new(size, tag); }

void operator delete(void* p) noexcept { allocations::release(p); }
void operator delete(void* p, std::size_t) noexcept { allocations::release(p); }
void operator delete(void* p, std::align_val_t) noexcept { allocations::release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { allocations::release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { allocations::release(p); }
void operator delete[](void* p) noexcept { allocations::release(p); }
void operator delete[](void* p, std::size_t) noexcept { allocations::release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { allocations::release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { allocations::release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { allocations::release(p); }
