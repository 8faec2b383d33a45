// stop() runs out of memory because others schedule more timers than it has made room for.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "failing_new.hpp"
#include "interleavings/explored.hpp"
#include "schedule_on.hpp"
#include "scheduler/core.hpp"
#include "scheduler/virtual_time.hpp"

namespace interleavings_out_of_memory_stop {

using namespace rondo;
using namespace rondo::test;

class interrupted_core final : public detail::core {
 public:
  using core::core;
  time_point now() const noexcept override { return at(0s); }
};

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE(
    "stop() without memory for timers that others schedule meanwhile leaves everything to the next call") {
  const auto core = std::make_shared<interrupted_core>(options{}, at(0s));
  std::optional<failing_new> failing;
  before_store = [&] {  // the next store is the one that makes it refuse later timers
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

}  // namespace interleavings_out_of_memory_stop
