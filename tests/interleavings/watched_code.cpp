// What the compiler calls before each access to memory, if it instruments code for the thread sanitizer. That sanitizer's
// own library is not linked: accesses by a scenario's threads go to the explorer instead, and all others are only made.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dlfcn.h>

#include "interleavings/explorer.hpp"

namespace {

using namespace rondo::test;

/// The orders of the interface are those of std::memory_order.
std::memory_order order_of(int o) noexcept { return static_cast<std::memory_order>(o); }

template <class T>
T load(const volatile T* at, int o) {
  const T latest = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  const void* const object = const_cast<const T*>(at);
  if (!is_watched()) return latest;
  watch_atomic(object, sizeof(T), false, __builtin_return_address(0));
  return static_cast<T>(step_in_memory::load(object, latest, order_of(o)));
}

template <class T>
void store(volatile T* at, T value, int o) {
  if (!is_watched()) return __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
  const void* const object = const_cast<const T*>(at);
  watch_atomic(object, sizeof(T), true, __builtin_return_address(0));
  step_in_memory::word latest = *at;
  step_in_memory::store(object, latest, value, order_of(o));
  *at = static_cast<T>(latest);
}

template <class T, class Change>
T update(volatile T* at, int o, Change&& change) {
  if (!is_watched()) {
    T found = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (
        !__atomic_compare_exchange_n(at, &found, change(found), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return found;
  }
  const void* const object = const_cast<const T*>(at);
  if (updates_are_steps) await_turn({"update", "atomic", {rondo::test::access{object, true}}});
  watch_atomic(object, sizeof(T), true, __builtin_return_address(0));
  step_in_memory::word latest = *at;
  const auto found = step_in_memory::update(
      object, latest, [&](step_in_memory::word w) { return step_in_memory::word{change(static_cast<T>(w))}; },
      order_of(o));
  *at = static_cast<T>(latest);
  return static_cast<T>(found);
}

template <class T>
int compare_exchange(volatile T* at, T* expected, T value, int success, int failure) {
  if (!is_watched())
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1
                                                                                                       : 0;
  const void* const object = const_cast<const T*>(at);
  watch_atomic(object, sizeof(T), true, __builtin_return_address(0));
  step_in_memory::word latest = *at;
  step_in_memory::word found = *expected;
  const bool equal =
      step_in_memory::compare_exchange(object, latest, found, value, order_of(success), order_of(failure));
  *at = static_cast<T>(latest);
  *expected = static_cast<T>(found);
  return equal ? 1 : 0;
}

void plain(const volatile void* at, std::size_t bytes, bool writes, const void* code) {
  if (is_watched()) watch_plain(const_cast<const void*>(at), bytes, writes, code);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define PLAIN(bytes)                                                                                       \
  void __tsan_read##bytes(void* p) { plain(p, bytes, false, __builtin_return_address(0)); }                \
  void __tsan_write##bytes(void* p) { plain(p, bytes, true, __builtin_return_address(0)); }                \
  void __tsan_read_write##bytes(void* p) { plain(p, bytes, true, __builtin_return_address(0)); }           \
  void __tsan_unaligned_read##bytes(void* p) { plain(p, bytes, false, __builtin_return_address(0)); }      \
  void __tsan_unaligned_write##bytes(void* p) { plain(p, bytes, true, __builtin_return_address(0)); }      \
  void __tsan_unaligned_read_write##bytes(void* p) { plain(p, bytes, true, __builtin_return_address(0)); } \
  void __tsan_volatile_read##bytes(void* p) { plain(p, bytes, false, __builtin_return_address(0)); }       \
  void __tsan_volatile_write##bytes(void* p) { plain(p, bytes, true, __builtin_return_address(0)); }       \
  void __tsan_unaligned_volatile_read##bytes(void* p) {                                                    \
    plain(p, bytes, false, __builtin_return_address(0));                                                   \
  }                                                                                                        \
  void __tsan_unaligned_volatile_write##bytes(void* p) { plain(p, bytes, true, __builtin_return_address(0)); }

#define ATOMIC(bits, type)                                                                             \
  type __tsan_atomic##bits##_load(const volatile type* p, int o) { return load(p, o); }                \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int o) { store(p, v, o); }                \
  type __tsan_atomic##bits##_exchange(volatile type* p, type v, int o) {                               \
    return update(p, o, [=](type) { return v; });                                                      \
  }                                                                                                    \
  type __tsan_atomic##bits##_fetch_add(volatile type* p, type v, int o) {                              \
    return update(p, o, [=](type found) { return static_cast<type>(found + v); });                     \
  }                                                                                                    \
  type __tsan_atomic##bits##_fetch_sub(volatile type* p, type v, int o) {                              \
    return update(p, o, [=](type found) { return static_cast<type>(found - v); });                     \
  }                                                                                                    \
  type __tsan_atomic##bits##_fetch_and(volatile type* p, type v, int o) {                              \
    return update(p, o, [=](type found) { return static_cast<type>(found & v); });                     \
  }                                                                                                    \
  type __tsan_atomic##bits##_fetch_or(volatile type* p, type v, int o) {                               \
    return update(p, o, [=](type found) { return static_cast<type>(found | v); });                     \
  }                                                                                                    \
  type __tsan_atomic##bits##_fetch_xor(volatile type* p, type v, int o) {                              \
    return update(p, o, [=](type found) { return static_cast<type>(found ^ v); });                     \
  }                                                                                                    \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* e, type v, int s, int f) { \
    return compare_exchange(p, e, v, s, f);                                                            \
  }                                                                                                    \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* e, type v, int s, int f) {   \
    return compare_exchange(p, e, v, s, f);                                                            \
  }                                                                                                    \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type e, type v, int s, int f) {    \
    compare_exchange(p, &e, v, s, f);                                                                  \
    return e;                                                                                          \
  }

// NOLINTEND(bugprone-macro-parentheses)
// NOLINTBEGIN(bugprone-reserved-identifier): the compiler's names
extern "C" {

void __tsan_init();
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void __tsan_read_range(void* p, std::size_t n) { plain(p, n, false, __builtin_return_address(0)); }
void __tsan_write_range(void* p, std::size_t n) { plain(p, n, true, __builtin_return_address(0)); }
// An object's type changes while it is constructed or destroyed.
void __tsan_vptr_update(void** p, void* to) {
  if (*p != to) plain(p, sizeof *p, true, __builtin_return_address(0));
}
void __tsan_vptr_read(void** p) { plain(p, sizeof *p, false, __builtin_return_address(0)); }

ATOMIC(8, std::uint8_t)
ATOMIC(16, std::uint16_t)
ATOMIC(32, std::uint32_t)
ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int o) {
  if (is_watched()) step_in_memory::fence(order_of(o));
}
void __tsan_atomic_signal_fence(int) {}

// clang calls these from version 15 on; others call those of the C library.
void* __tsan_memset(void* to, int byte, std::size_t n) {
  plain(to, n, true, __builtin_return_address(0));
  return std::memset(to, byte, n);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t n) {
  plain(from, n, false, __builtin_return_address(0));
  plain(to, n, true, __builtin_return_address(0));
  return std::memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, std::size_t n) {
  plain(from, n, false, __builtin_return_address(0));
  plain(to, n, true, __builtin_return_address(0));
  return std::memmove(to, from, n);
}

// The C++ library allocates what is thrown, and not with operator new.
void* __cxa_allocate_exception(std::size_t size) noexcept {
  using function = void* (*)(std::size_t);
  static const auto allocate = reinterpret_cast<function>(dlsym(RTLD_NEXT, "__cxa_allocate_exception"));
  void* const object = allocate(size);
  watch_block(object, size, false);
  return object;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
