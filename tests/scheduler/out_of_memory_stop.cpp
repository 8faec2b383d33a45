// stop() runs out of memory, as others schedule more than it has made room for.
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

namespace {

using namespace rondo;
using namespace rondo::test;

/// Called once, before the next store: for stop() that is the one that refuses what is scheduled later.
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

// Where there is no such operator new, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE("a stop() without memory for what others schedule meanwhile leaves all to the next one") {
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

}  // namespace
