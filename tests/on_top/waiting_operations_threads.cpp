// The pattern waiting_operations, used from several threads.
#include "waiting_operations.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include <rondo/manual_timer.hpp>
#include <rondo/timer.hpp>

#include "threads/patience.hpp"

namespace on_top_waiting_operations_threads {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a change that meets the registration is not overlooked") {
  manual_timer time;
  waiting_operations<int> all(time);
  for (unsigned i = 0; i != 500; ++i) {
    std::atomic<bool> may{false};
    std::atomic<int> completed{0};
    on_threads(2, [&](std::size_t n) {
      if (n == 0) {
        all.submit(
            {1, 2}, 1h, [&] { return may.load(); }, [&](outcome) { ++completed; });
      } else {
        spin(i);
        may = true;
        all.changed(2);
      }
    });
    REQUIRE(completed == 1);
    REQUIRE(all.registrations() == 0);
  }
  CHECK(time.pending() == 0);
}

TEST_CASE("operations of several threads, whose changes meet their timeouts, end once each") {
  timer t({.tick = 10us});
  waiting_operations<std::size_t> all(t);
  constexpr std::size_t count = 3'000;
  std::vector<std::atomic<bool>> may(count);
  std::vector<std::atomic<int>> ended(count);
  on_threads(3, [&](std::size_t n) {
    for (std::size_t i = n; i < count; i += 3) {
      const std::size_t one = i % 8, other = (i + 3) % 8;
      all.submit(
          {one, other}, 20us * (i % 4), [&may, i] { return may[i].load(); },
          [&ended, i](outcome) { ++ended[i]; });
      spin(static_cast<unsigned>(i % 500));
      may[i] = true;
      all.changed(i % 2 == 0 ? one : other);
    }
  });
  CHECK(t.drain(1min));
  CHECK(all.registrations() == 0);
  CHECK(std::all_of(ended.begin(), ended.end(), [](const auto& times) { return times == 1; }));
}

}  // namespace on_top_waiting_operations_threads
