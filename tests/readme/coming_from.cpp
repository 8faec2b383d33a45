// The calls in the tables of event_loops.md for readers who come from another library, each as it is written there.
// listings.py checks that none is missing; those that need Asio are in asio.cpp.
#include <chrono>
#include <optional>
#include <utility>

#include <doctest/doctest.h>
#include <rondo/rondo.hpp>

namespace readme_coming_from {

using namespace std::chrono_literals;

TEST_CASE("the calls for steady_timer and uv_timer_t schedule, move and cancel a timer") {
  const rondo::duration d = 1h;
  rondo::manual_timer timer;
  rondo::timer_id id;
  int runs = 0;
  const auto f = [&runs] { ++runs; };

  id = timer.schedule_after(d, f);
  CHECK(timer.due(id) == timer.now() + d);
  timer.advance(40min);
  CHECK(*timer.due(id) - timer.now() == 20min);
  CHECK(timer.reschedule_after(id, d));
  timer.advance(40min);
  CHECK(runs == 0);
  CHECK(timer.cancel(id) == rondo::cancel_result::cancelled);
  CHECK(timer.cancel(id) == rondo::cancel_result::gone);
  timer.advance(d);
  CHECK(runs == 0);
}

TEST_CASE("a repeating timer does not drift, whatever its runs and the loop take") {
  const rondo::duration d = 10ms;
  rondo::manual_timer timer;
  const rondo::time_point start = timer.now();
  rondo::time_point last;
  const auto f = [&](const rondo::firing& run) {
    last = run.due;
    timer.elapse(3ms);  // each run takes as long
  };
  timer.schedule_every(d, f);
  timer.advance(1s);
  CHECK(last == start + 1s);
}

TEST_CASE("the calls for callbacks of HHWheelTimer schedule, show and cancel a node") {
  struct Node : rondo::wheel_node {};
  const rondo::tick_number ticks = 500;
  rondo::wheel<Node> wheel;
  Node node;
  const auto now = wheel.now();

  wheel.schedule(node, now + ticks);
  CHECK(node.scheduled());
  wheel.advance(200, [](Node&) {});
  CHECK(node.due() - wheel.now() == 300);
  CHECK(wheel.size() == 1);
  CHECK(wheel.cancel(node));
  CHECK_FALSE(node.scheduled());
}

TEST_CASE("the calls for HHWheelTimer count, ask about and cancel timers of a scheduler") {
  const rondo::duration tick = 10ms;
  CHECK(rondo::polled_timer({.tick = tick}).pending() == 0);

  rondo::manual_timer timer;
  const rondo::timer_id id = timer.schedule_after(1h, [] {});
  CHECK(timer.pending(id));
  CHECK(timer.pending() == 1);
  rondo::timer_scope scope(timer);
  scope.schedule_after(1h, [] {});
  scope.cancel_all();
  CHECK(timer.pending() == 1);
  CHECK(timer.stop().size() == 1);
  CHECK_FALSE(timer.pending(id));
}

TEST_CASE("the callable of a cancelled timer is destroyed, where folly calls callbackCanceled()") {
  bool is_destroyed = false;
  struct on_destruction {
    bool* flag;
    explicit on_destruction(bool& f) : flag(&f) {}
    on_destruction(on_destruction&& other) noexcept : flag(std::exchange(other.flag, nullptr)) {}
    on_destruction& operator=(on_destruction&&) = delete;
    ~on_destruction() {
      if (flag != nullptr) *flag = true;
    }
    void operator()() const {}
  };
  rondo::manual_timer timer;
  const rondo::timer_id id = timer.schedule_after(1h, on_destruction(is_destroyed));
  CHECK_FALSE(is_destroyed);
  timer.cancel(id);
  CHECK(is_destroyed);
}

TEST_CASE("the calls for a multimap of deadlines return the next deadline and run due timers") {
  rondo::polled_timer timer;
  bool has_run = false;
  timer.schedule_after(0s, [&] { has_run = true; });
  const std::optional<rondo::time_point> next = timer.next_due();
  REQUIRE(next);
  CHECK(*next <= timer.now());
  CHECK(timer.poll() == 1);
  CHECK(has_run);
  CHECK(timer.pending() == 0);
}

}  // namespace readme_coming_from
