// Replacing a key's timer at max_pending, on real threads.
#include <rondo/keyed_timers.hpp>

#include <memory>
#include <thread>

#include <rondo/polled_timer.hpp>

#include "threads/patience.hpp"

namespace on_top_keyed_timers_limits_threads {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("at the limit, a task that begins inside the call that sets it is not destroyed by that call") {
  polled_timer time(options{.max_pending = 1});
  keyed_timers<int> timers(time);
  gate begun, may_end;
  std::thread driver;
  const auto old_one = std::make_shared<int>(0), new_one = std::make_shared<int>(0);
  timers.set_after(1, 1h, [old_one] { FAIL("the old one ran"); });
  time.on_earlier([&] {
    if (driver.joinable()) return;
    driver = std::thread([&] { time.poll(); });
    begun.wait();
  });
  timers.set_after(1, 0s, [&, new_one] {
    begun.open();
    may_end.wait();
  });
  CHECK(begun.count() == 1);
  CHECK(old_one.use_count() == 1);
  CHECK(new_one.use_count() == 2);  // the test's copy, and that of the task in progress
  may_end.open();
  driver.join();
  CHECK(new_one.use_count() == 1);
  CHECK(timers.size() == 0);
}

}  // namespace on_top_keyed_timers_limits_threads
