// stop() runs out of memory because others schedule more timers than it has made room for.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "schedule_on.hpp"
#include "scheduler/core_members.hpp"
#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"
#include "sync/threads.hpp"

namespace scheduler_out_of_memory_stop {

using namespace rondo;
using namespace rondo::test;

/// Called once, before the next store. In stop() that is the store that makes it refuse later timers.
std::function<void()> before_store;

template <class T>
struct interrupted_atomic : std::atomic<T> {
  using std::atomic<T>::atomic;
  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    if (const auto act = std::exchange(before_store, nullptr)) act();
    std::atomic<T>::store(value, order);
  }
};

struct interrupted : detail::threads {
  template <class T>
  using atomic = interrupted_atomic<T>;
};

class interrupted_core final : public detail::basic_core<interrupted> {
 public:
  using basic_core::basic_core;
  time_point now() const noexcept override { return at(0s); }
};

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE(
    "stop() without memory for timers that others schedule meanwhile leaves everything to the next call") {
  const auto core = std::make_shared<interrupted_core>(options{}, at(0s));
  std::optional<failing_new> failing;
  before_store = [&] {
    for (int i = 0; i != 1000; ++i) schedule_on(*core, at(1ms), at(0s), doing_nothing());
    failing.emplace();
  };
  CHECK_THROWS_AS(core->stop(), std::bad_alloc);
  failing.reset();
  CHECK(core->stop().size() == 1000);
  CHECK(core->pending() == 0);
  CHECK(adds_up(core->stats()));
  core->retire();
}

TEST_SUITE_END();

}  // namespace scheduler_out_of_memory_stop
