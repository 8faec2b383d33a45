// More threads than can have their own shards, and threads that come and go.
#include <algorithm>
#include <cstddef>
#include <set>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/timer.hpp>

#include "sync/thread_numbers.hpp"
#include "threads/patience.hpp"

namespace threads_many_threads {

using namespace rondo;
using namespace rondo::test;

using rondo::detail::thread_numbers;

/// Calls f(i) on a separate thread for each i, all at the same time: no thread ends before all have called f.
template <class F>
void on_threads(std::size_t count, F f) {
  gate called;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i != count; ++i)
    threads.emplace_back([&, i] {
      f(i);
      called.open();
      called.wait(static_cast<long>(count));
    });
  for (std::thread& t : threads) t.join();
}

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

TEST_CASE("a thread may use a scheduler until the last of its thread_local variables is destroyed") {
  timer t;
  struct late_user {
    timer* used = nullptr;
    ~late_user() {
      if (used != nullptr) used->cancel(used->schedule_after(1h, [] {}));
    }
  };
  for (int i = 0; i != 3; ++i) {
    std::thread([&] {
      thread_local late_user late;  // constructed first, so destroyed after what the call creates
      late.used = &t;
      t.cancel(t.schedule_after(1h, [] {}));
    }).join();
  }
  CHECK(t.stats().cancelled == 6);
  CHECK(t.pending() == 0);
}

TEST_CASE("no timer and no count is lost between a hundred threads and those that reuse their numbers") {
  timer t;
  constexpr std::size_t each = 200;
  for (int round = 0; round != 3; ++round) {
    on_threads(100, [&](std::size_t) {
      std::vector<timer_id> ids;
      for (std::size_t i = 0; i != each; ++i) ids.push_back(t.schedule_after(1h, [] {}));
      for (std::size_t i = 0; i != each; i += 2) t.cancel(ids[i]);
    });
  }
  const statistics s = t.stats();
  CHECK(s.scheduled == 3 * 100 * each);
  CHECK(s.cancelled == s.scheduled / 2);
  CHECK(s.pending == s.scheduled / 2);
  CHECK(t.stop().size() == s.pending);
}

}  // namespace threads_many_threads
