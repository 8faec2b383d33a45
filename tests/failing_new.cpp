#include "failing_new.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RONDO_TEST_KEEPS_OPERATOR_NEW  // clang's thread sanitizer does not let it be replaced
#endif
#endif

namespace {

struct plan {
  std::size_t until_first;
  std::size_t left;
  bool struck;
};
thread_local plan* current = nullptr;
thread_local plan the_plan{};
std::atomic<std::size_t> allocated{0};
std::atomic<std::ptrdiff_t> held{0};

}  // namespace

#if !defined(RONDO_TEST_KEEPS_OPERATOR_NEW)
namespace {

bool fails_now() {
  if (current == nullptr) return false;
  if (current->until_first != 0) {
    --current->until_first;
    return false;
  }
  if (current->left == 0) return false;
  if (current->left != rondo::test::failing_new::all) --current->left;
  current->struck = true;
  return true;
}

// Precedes each block, so that its size is known when it is released.
struct header {
  std::size_t size;
  void* block;
};

void* allocate(std::size_t size, std::align_val_t aligned = std::align_val_t{alignof(std::max_align_t)}) {
  if (fails_now()) throw std::bad_alloc();
  const auto alignment = static_cast<std::size_t>(aligned);
  void* const block = std::malloc(size + sizeof(header) + alignment);
  if (block == nullptr) throw std::bad_alloc();
  const auto unaligned = reinterpret_cast<std::uintptr_t>(block) + sizeof(header) + alignment - 1;
  const auto begin = reinterpret_cast<char*>(unaligned - unaligned % alignment);
  ::new (begin - sizeof(header)) header{size, block};
  allocated.fetch_add(1, std::memory_order_relaxed);
  held.fetch_add(static_cast<std::ptrdiff_t>(size), std::memory_order_relaxed);
  if (const auto watch = rondo::test::watch_blocks.load())
    watch(begin - sizeof(header), size + sizeof(header), false);
  return begin;
}

void release_block(void* p) noexcept {
  if (p == nullptr) return;
  const void* const begin = static_cast<char*>(p) - sizeof(header);
  const header h = *static_cast<const header*>(begin);
  if (const auto watch = rondo::test::watch_blocks.load()) watch(begin, h.size + sizeof(header), true);
  held.fetch_sub(static_cast<std::ptrdiff_t>(h.size), std::memory_order_relaxed);
  std::free(h.block);
}

}  // namespace

// All forms, even those whose defaults would call these: sanitizers have their own defaults.
void* operator new(std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return allocate(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return allocate(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return operator new(size, alignment); }
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept { return operator new(size, tag); }
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
  return operator new(size, alignment, tag);
}
void operator delete(void* p) noexcept { release_block(p); }
void operator delete(void* p, std::size_t) noexcept { release_block(p); }
void operator delete(void* p, std::align_val_t) noexcept { release_block(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release_block(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release_block(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { release_block(p); }
void operator delete[](void* p) noexcept { release_block(p); }
void operator delete[](void* p, std::size_t) noexcept { release_block(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release_block(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release_block(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release_block(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { release_block(p); }

#endif

namespace rondo::test {

#if defined(RONDO_TEST_KEEPS_OPERATOR_NEW)
const bool failing_new::available = false;
#else
const bool failing_new::available = true;
#endif

failing_new::failing_new(std::size_t after, std::size_t count) {
  the_plan = {after, count, false};
  current = &the_plan;
}

failing_new::~failing_new() { current = nullptr; }

bool failing_new::struck() const { return the_plan.struck; }

std::size_t allocations() noexcept { return allocated.load(std::memory_order_relaxed); }
std::ptrdiff_t bytes_held() noexcept { return held.load(std::memory_order_relaxed); }

}  // namespace rondo::test
