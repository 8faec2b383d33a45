#include "failing_new.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__clang__)
#if __has_feature(thread_sanitizer)
#define RONDO_TEST_KEEPS_OPERATOR_NEW  // clang's thread sanitizer does not let it be replaced; that of g++ does
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
thread_local std::ptrdiff_t held_here = 0;
std::atomic<std::size_t> reused_size{rondo::test::failing_new::all};
std::atomic<void*> to_reuse{nullptr};  // the last block of this size that was released

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

void* new_block(std::size_t size, std::size_t alignment) {
  void* const block = std::malloc(size + sizeof(header) + alignment);
  if (block == nullptr) throw std::bad_alloc();
  const auto unaligned = reinterpret_cast<std::uintptr_t>(block) + sizeof(header) + alignment - 1;
  const auto begin = reinterpret_cast<char*>(unaligned - unaligned % alignment);
  ::new (begin - sizeof(header)) header{size, block};
  return begin;
}

void add_to_held(std::ptrdiff_t bytes) noexcept {
  held.fetch_add(bytes, std::memory_order_relaxed);
  held_here += bytes;
}

constexpr std::align_val_t usual{alignof(std::max_align_t)};

void* allocate(std::size_t size, std::align_val_t alignment = usual) {
  if (fails_now()) throw std::bad_alloc();
  void* begin = nullptr;
  if (size == reused_size && alignment == usual) begin = to_reuse.exchange(nullptr);
  if (begin == nullptr) begin = new_block(size, static_cast<std::size_t>(alignment));
  allocated.fetch_add(1, std::memory_order_relaxed);
  add_to_held(static_cast<std::ptrdiff_t>(size));
  if (const auto watch = rondo::test::watch_blocks.load()) watch(begin, size, false);
  return begin;
}

const header& header_of(const void* begin) noexcept { return static_cast<const header*>(begin)[-1]; }

void free_block(const void* begin) noexcept {
  if (begin != nullptr) std::free(header_of(begin).block);
}

void release_block(void* begin) noexcept {
  if (begin == nullptr) return;
  const std::size_t size = header_of(begin).size;
  if (const auto watch = rondo::test::watch_blocks.load()) watch(begin, size, true);
  add_to_held(-static_cast<std::ptrdiff_t>(size));
  free_block(size == reused_size ? to_reuse.exchange(begin) : begin);
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

#else
namespace {
void free_block(const void*) noexcept {}
}  // namespace
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

reusing_blocks::reusing_blocks(std::size_t size) noexcept { reused_size = size; }

reusing_blocks::~reusing_blocks() {
  reused_size = failing_new::all;
  free_block(to_reuse.exchange(nullptr));
}

bool failing_new::struck() const { return the_plan.struck; }

std::size_t allocations() noexcept { return allocated.load(std::memory_order_relaxed); }
std::ptrdiff_t bytes_held() noexcept { return held.load(std::memory_order_relaxed); }

std::ptrdiff_t bytes_held_by_this_thread() noexcept { return held_here; }

}  // namespace rondo::test
