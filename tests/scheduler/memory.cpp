// The memory that a scheduler keeps: in the long run, as much as it needed at its busiest moment.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"
#include "times_slower.hpp"

namespace scheduler_memory {

using namespace rondo;
using namespace rondo::test;

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("memory" * doctest::skip(!failing_new::available));

TEST_CASE("in the long run, scheduling, running and cancelling allocate nothing") {
  manual_timer time;
  int runs = 0;
  const auto work = [&] {
    for (int i = 0; i != 100; ++i) time.schedule_after((i % 10) * 1ms, counting(runs));
    for (int i = 0; i != 100; ++i) time.cancel(time.schedule_after(5ms, counting(runs)));
    time.advance(20ms);
  };
  for (int i = 0; i != 200; ++i) work();
  const failing_new failing;
  bool refused = false;
  try {
    for (int i = 0; i != 20; ++i) work();
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  CHECK_FALSE(refused);
  CHECK(runs == 22'000);
}

/// Checks that doing something a million times leaves nothing behind, after a warm-up in which it gets all the memory
/// it needs.
template <class Do>
void check_flat(int warm_up, Do&& do_it) {
  int i = 0;
  for (; i != warm_up; ++i) do_it(i);
  const auto before = bytes_held();
  const int often = memory_is_slow ? a_million / 10 : a_million;
  for (; i != warm_up + often; ++i) do_it(i);
  CHECK(bytes_held() == before);
}

TEST_CASE("a million timers that are set and cancelled leave nothing behind") {
  manual_timer time;
  std::vector<timer_id> staying;  // so that no bucket and no round becomes empty and is freed
  for (int i = 0; i != 1024; ++i) staying.push_back(time.schedule_after(i * 1ms + 1h, doing_nothing()));
  constexpr int warm_up = 200'000;  // until each bucket has had more than two chunks of nodes
  const auto set_and_cancel = [&](duration first, int ticks) {
    check_flat(warm_up,
               [&](int i) { time.cancel(time.schedule_after(first + i % ticks * 1ms, doing_nothing())); });
  };
  SUBCASE("in one tick") { set_and_cancel(5ms, 1); }
  SUBCASE("in the past") { set_and_cancel(-5ms, 1); }
  SUBCASE("all around the wheel, and beyond its window") { set_and_cancel(0ms, 1024); }
  SUBCASE("far away") { set_and_cancel(1000h, 10'000); }
  SUBCASE("never due") { set_and_cancel(duration::max(), 1); }
  SUBCASE("many at a time") {
    std::vector<timer_id> ids(1000);
    check_flat(warm_up, [&](int i) {
      timer_id& id = ids[static_cast<std::size_t>(i) % ids.size()];
      time.cancel(id);
      id = time.schedule_after(i % 700 * 1ms, doing_nothing());
    });
    for (const timer_id id : ids) time.cancel(id);
  }
  SUBCASE("periodic timers with large callables") {
    check_flat(warm_up, [&](int i) {
      time.cancel(time.schedule_every(1ms + i % 100 * 1ms, [much = std::array<char, 100>{}] { (void)much; }));
    });
  }
  SUBCASE("moved in between") {
    check_flat(warm_up, [&](int i) {
      const timer_id id = time.schedule_after(i % 50 * 1ms, doing_nothing());
      time.reschedule_after(id, i % 3000 * 1ms);
      time.cancel(id);
    });
  }
  CHECK(time.pending() == staying.size());
}

TEST_CASE("a million timers that run, inline and on an executor, leave nothing behind") {
  options o;
  SUBCASE("inline") {}
  SUBCASE("on an executor, which drops some") {
    o.run_on = [n = 0](job j) mutable {
      if (++n % 3 != 0) j();
    };
  }
  manual_timer time(o);
  time.schedule(every(7ms).on_overlap(rondo::overlapping_runs::allow), doing_nothing());
  time.schedule(every(100us).on_missed(rondo::missed_runs::burst), doing_nothing());
  check_flat(a_million, [&](int i) {
    time.schedule_after(i % 10 * 1ms, doing_nothing());
    if (i % 10 == 0) time.advance(1ms);
  });
}

/// Makes a million timers pending at once, and then none.
void burst(manual_timer& time, bool cancelled) {
  std::vector<timer_id> ids;
  for (int i = 0; i != a_million; ++i) ids.push_back(time.schedule_after(i % 5000 * 1ms, doing_nothing()));
  if (cancelled)
    for (const timer_id id : ids) time.cancel(id);
  else
    time.advance(5s);
  CHECK(time.pending() == 0);
}

TEST_CASE("the records of a burst of a million timers are kept, and the next burst uses them") {
  for (const bool cancelled : {false, true}) {
    CAPTURE(cancelled);
    const auto before = bytes_held();
    {
      manual_timer time;
      burst(time, cancelled);
      const auto after_one = bytes_held();
      CHECK(after_one - before <= 400L * a_million);  // the pool grows in proportion to its size
      burst(time, cancelled);
      CHECK(bytes_held() - after_one <= 8L * a_million);  // swapped arrays of the wheel
    }
    CHECK(bytes_held() == before);
  }
}

TEST_CASE("an ended timer leaves the same memory, whether it was periodic or had a name") {
  const auto left_by = [](const auto& schedule) {
    const auto before = bytes_held();
    manual_timer time;
    std::vector<timer_id> ids;
    for (int i = 0; i != 10'000; ++i) ids.push_back(schedule(time));
    for (const timer_id id : ids) time.cancel(id);
    std::vector<timer_id>().swap(ids);
    return bytes_held() - before;
  };
  const auto periodic = left_by([](manual_timer& time) { return time.schedule_every(1s, doing_nothing()); });
  const auto named = left_by([](manual_timer& time) {
    return time.schedule_after(1s, doing_nothing(), {.name = "a name that needs an allocation of its own"});
  });
  CHECK(periodic == named);
}

TEST_SUITE_END();

}  // namespace scheduler_memory
