// While the callable of an ended timer is being destroyed, the timer is already counted as cancelled, completed etc.
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_counted_before_destroyed {

using namespace rondo;
using namespace rondo::test;

/// What a scheduler reports inside the destructor of a callable.
struct witness {
  manual_timer& time;
  std::optional<statistics> seen;
  std::size_t pending = 99;
  bool has_room = false;  // under max_pending

  explicit witness(manual_timer& t) : time(t) {}

  /// A task that records this when it is destroyed.
  auto task() {
    const auto look = [this](int*) {
      pending = time.pending();
      seen = time.stats();
      try {
        time.cancel(time.schedule_after(1h, doing_nothing()));
        has_room = true;
      } catch (const rondo::capacity_error&) {
      } catch (const rondo::stopped_error&) {
        has_room = true;  // (after drain() and stop() this cannot be observed)
      }
    };
    return [owned = std::shared_ptr<int>(nullptr, look)] {};
  }
};

void check(const witness& w, std::uint64_t statistics::*became) {
  CHECK(w.pending == 0);
  REQUIRE(w.seen);
  CHECK(w.seen->pending == 0);
  CHECK(adds_up(*w.seen));
  if (became != nullptr) CHECK((*w.seen).*became == 1);
  CHECK(w.has_room);
}

TEST_CASE("a timer that ends is counted before its callable is destroyed") {
  std::vector<job> jobs;
  const rondo::on shelf([&](job j) { jobs.push_back(std::move(j)); });
  manual_timer time(options{.max_pending = 1});
  witness w(time);
  SUBCASE("cancelled") {
    time.cancel(time.schedule_after(1h, w.task()));
    check(w, &statistics::cancelled);
  }
  SUBCASE("cancelled, periodic") {
    time.cancel(time.schedule_every(1h, w.task()));
    check(w, &statistics::cancelled);
  }
  SUBCASE("cancelled inside its run") {
    timer_id id;
    id = time.schedule_every(1ms, [&, task = w.task()] { time.cancel(id); });
    time.advance(1ms);
    check(w, &statistics::cancelled);
  }
  SUBCASE("after its run") {
    time.schedule_after(1ms, w.task());
    time.advance(1ms);
    check(w, &statistics::completed);
  }
  SUBCASE("after its last run") {
    time.schedule(every(1ms).times(2), w.task());
    time.advance(2ms);
    check(w, &statistics::completed);
  }
  SUBCASE("after its run in a job") {
    time.schedule_after(1ms, w.task(), shelf);
    time.advance(1ms);
    jobs.at(0)();
    check(w, &statistics::completed);
  }
  SUBCASE("its job is dropped") {
    time.schedule_after(1ms, w.task(), shelf);
    time.advance(1ms);
    jobs.clear();
    check(w, &statistics::completed);
    CHECK(w.seen->rejected == 1);
  }
  SUBCASE("ended by drain") {
    time.schedule_every(1ms, w.task());
    time.drain(0s);
    check(w, &statistics::completed);
  }
}

TEST_CASE("a timer that finds no memory is no longer counted when its callable is destroyed" *
          doctest::skip(!failing_new::available)) {
  bool done = false;
  for (std::size_t k = 0; !done; ++k) {
    CAPTURE(k);
    manual_timer time(options{.max_pending = 1});
    witness w(time);
    std::optional task(w.task());
    {
      const failing_new failing(k, 1);
      try {
        time.schedule_after(1h, std::move(*task));
        done = !failing.struck();
      } catch (const std::bad_alloc&) {
        task.reset();  // not moved from if there was no memory for a record
        check(w, nullptr);
        CHECK(w.seen->scheduled == 0);
      }
    }
    time.stop();  // as long as the witness lives
  }
}

TEST_CASE("a timer that stop() hands back is counted before its executor is destroyed") {
  manual_timer time;
  witness w(time);
  time.schedule_after(1h, doing_nothing(), rondo::on([task = w.task()](const job&) {}));
  CHECK(time.stop().size() == 1);
  check(w, &statistics::returned);
}

}  // namespace scheduler_counted_before_destroyed
