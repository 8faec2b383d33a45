#include "sync/thread_numbers.hpp"

#include <atomic>
#include <cstdint>

#include "sync/number_set.hpp"

#ifdef __MINGW32__
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#endif

namespace rondo::detail {
namespace {

constinit number_set<std::atomic<std::uint32_t>> numbers;
static_assert(thread_numbers::exclusive == decltype(numbers)::size);
constinit std::atomic<std::size_t> larger_given{0};

#ifdef __MINGW32__

// With MinGW, thread_local variables are on the heap, and may be freed before they are destroyed. So Windows holds the
// number of each thread, and tells when the thread ends. Then all thread_local variables are gone.
class numbers_held {
 public:
  ~numbers_held() { FlsFree(index_); }  // does nothing if there is none

  /// 0 if there is none.
  std::size_t number_plus_one() const noexcept { return reinterpret_cast<std::size_t>(FlsGetValue(index_)); }
  /// Whether the number of this thread will be given back.
  bool hold(std::size_t number) const noexcept {
    return FlsSetValue(index_, reinterpret_cast<void*>(number + 1)) != 0;
  }

 private:
  static void WINAPI at_exit(void* number_plus_one) noexcept {
    numbers.give_back(reinterpret_cast<std::size_t>(number_plus_one) - 1);
  }

  const DWORD index_ = FlsAlloc(at_exit);  // fails if the process has too many
};

const numbers_held& held() noexcept {
  static const numbers_held all;
  return all;
}

#endif

}  // namespace

RONDO_THREAD_LOCAL constinit std::size_t thread_numbers::number_plus_one = 0;

#ifndef __MINGW32__

class thread_numbers::return_at_exit {
 public:
  explicit return_at_exit(std::size_t number) noexcept : number_(number) {}
  ~return_at_exit() {
    number_plus_one = get_larger() + 1;
    numbers.give_back(number_);
  }
  return_at_exit(const return_at_exit&) = delete;
  return_at_exit& operator=(const return_at_exit&) = delete;

 private:
  const std::size_t number_;
};

#endif

std::size_t thread_numbers::get() noexcept {
#ifdef __MINGW32__
  if (const std::size_t known = held().number_plus_one(); known != 0) return known - 1;
#endif
  const std::size_t number = numbers.take();
  if (number == exclusive) return get_larger();
#ifdef __MINGW32__
  if (!held().hold(number)) {
    numbers.give_back(number);
    return get_larger();
  }
#else
  thread_local const return_at_exit returned(number);
#endif
  return number;
}

std::size_t thread_numbers::get_larger() noexcept {
  return exclusive + larger_given.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace rondo::detail
