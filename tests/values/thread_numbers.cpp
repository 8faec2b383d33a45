// The numbers of threads, as threads come and go.
#include "sync/thread_numbers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "threads/patience.hpp"

namespace values_thread_numbers {

using rondo::detail::thread_numbers;
using rondo::test::on_threads;

TEST_CASE("each thread has its own number while there are enough") {
  for (int round = 0; round != 3; ++round) {  // the numbers of the previous round are free again
    constexpr std::size_t count = thread_numbers::exclusive + 10;
    std::vector<std::size_t> numbers(count);
    on_threads(count, [&](std::size_t i) {
      numbers[i] = thread_numbers::of_this_thread();
      numbers[i] = numbers[i] == thread_numbers::of_this_thread() ? numbers[i] : 0;
    });
    CHECK(std::set(numbers.begin(), numbers.end()).size() == count);
    const auto own = std::count_if(numbers.begin(), numbers.end(),
                                   [](std::size_t n) { return n < thread_numbers::exclusive; });
    // Other threads of this program may have some of the numbers.
    CHECK(own >= static_cast<std::ptrdiff_t>(thread_numbers::exclusive) - 5);
  }
}

}  // namespace values_thread_numbers
