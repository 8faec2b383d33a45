#include "sync/thread_numbers.hpp"

#include <atomic>
#include <bit>

namespace rondo::detail {
namespace {

static_assert(thread_numbers::exclusive == 32, "a bit for each");
constinit std::atomic<std::uint32_t> taken{0};
constinit std::atomic<std::size_t> larger_given{0};

}  // namespace

RONDO_THREAD_LOCAL constinit std::size_t thread_numbers::number_plus_one = 0;

class thread_numbers::return_at_exit {
 public:
  explicit return_at_exit(std::size_t number) noexcept : number_(number) {}
  ~return_at_exit() {
    number_plus_one = get_larger() + 1;
    taken.fetch_and(~(std::uint32_t{1} << number_), std::memory_order_release);
  }
  return_at_exit(const return_at_exit&) = delete;
  return_at_exit& operator=(const return_at_exit&) = delete;

 private:
  const std::size_t number_;
};

std::size_t thread_numbers::get() noexcept {
  std::uint32_t before = taken.load(std::memory_order_relaxed);
  for (;;) {
    const auto number = static_cast<std::size_t>(std::countr_one(before));
    if (number == exclusive) return get_larger();
    if (!taken.compare_exchange_weak(before, before | std::uint32_t{1} << number, std::memory_order_acquire,
                                     std::memory_order_relaxed))
      continue;
    thread_local const return_at_exit returned(number);
    return number;
  }
}

std::size_t thread_numbers::get_larger() noexcept {
  return exclusive + larger_given.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace rondo::detail
