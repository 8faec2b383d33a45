// Without memory, a call either succeeds or changes nothing.
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>

#include "scheduler/out_of_memory.hpp"

namespace scheduler_out_of_memory_calls {

using namespace rondo;
using namespace rondo::test;

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

TEST_CASE("scheduling without memory changes nothing") {
  CHECK(fail_everywhere([](world& w) { w.time.schedule_after(1ms, doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_after(1000h, doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_at(at(-1h), doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_every(123ms, doing_nothing()); }) > 0);
  CHECK(fail_everywhere([](world& w) { w.time.schedule_after(std::chrono::hours::max(), doing_nothing()); }) >
        0);
}

TEST_CASE("scheduling a recurrence without memory changes nothing") {
  const auto r = rondo::cycle({1ms, 1000h}).jitter(0.5);
  CHECK(fail_everywhere([&](world& w) { w.time.schedule(r, doing_nothing()); }) > 0);
  const rondo::on where([](job j) { j(); });
  CHECK(fail_everywhere([&](world& w) { w.time.schedule(r, doing_nothing(), where); }) > 0);
  CHECK(fail_everywhere([&](world& w) { w.time.schedule_after(1000h, doing_nothing(), where); }) > 0);
}

TEST_CASE("scheduling without memory frees the place that it took") {
  manual_timer time(options{.max_pending = 1});
  for (int i = 0; i != 3; ++i) {
    const failing_new failing;
    CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), std::bad_alloc);
  }
  CHECK_NOTHROW(time.schedule_after(1ms, doing_nothing()));
  CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), rondo::capacity_error);
}

TEST_CASE("without memory, a refused callable is destroyed") {
  const auto token = std::make_shared<int>(0);
  fail_everywhere([&](world& w) { w.time.cancel(w.time.schedule_after(1000h, [token] {})); });
  CHECK(token.use_count() == 1);
}

TEST_CASE("rescheduling without memory leaves the timer where it was") {
  const auto move_remote = [](std::size_t i) {
    return fail_everywhere<full_world>(
        [i](world& w) { w.time.reschedule_after(w.ids[full_world::remote + i], 1000h); });
  };
  CHECK(move_remote(17) > 0);
  fail_everywhere([](world& w) { w.time.reschedule_after(w.ids[17], 1ms); });
  fail_everywhere([](world& w) { w.time.reschedule_at(w.ids[0], time_point::min()); });
  fail_everywhere([](world& w) { w.time.reschedule_after(w.ids[0], duration::max()); });
  // Of two timers in one tick, the first one stays first.
  CHECK(move_remote(40) > 0);
  CHECK(move_remote(57) > 0);
}

TEST_CASE("rescheduling without memory leaves the timer in the pass in progress") {
  manual_timer time;
  journal ran;
  timer_id second;
  bool refused = false;
  time.schedule_after(1ms, [&] {
    const failing_new failing;
    try {
      time.reschedule_at(second, at(5000ms));  // the first far timer
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  });
  second = time.schedule_after(1ms, ran.noting("second"));
  time.schedule_after(1ms, ran.noting("third"));
  CHECK(time.advance(1ms) == 3);
  CHECK(refused);
  CHECK(ran.take() == "second third");
}

TEST_CASE("rescheduling a periodic timer without memory leaves its grid where it was") {
  const auto runs_after = [](auto&& reschedule) {
    manual_timer time(options{.buckets = 4});
    std::vector<firing> runs;
    const timer_id id = time.schedule_every(10ms, recording(runs));
    time.advance(10ms);
    use_up_chunks([&](duration after) { time.schedule_after(after, doing_nothing()); });
    reschedule(time, id);
    time.advance(40ms);
    std::string dues;
    for (const firing& f : runs)
      dues += std::to_string(f.due.time_since_epoch() / 1ms) + '/' + std::to_string(f.missed) + ' ';
    return dues;
  };
  int refusals = 0;
  for (std::size_t k = 0;; ++k) {
    bool struck = false, refused = false;
    const std::string dues = runs_after([&](manual_timer& time, timer_id id) {
      const failing_new failing(k);
      try {
        time.reschedule_after(id, 5ms);
      } catch (const std::bad_alloc&) {
        refused = true;
      }
      struck = failing.struck();
    });
    CHECK(dues == (refused ? "10/0 20/0 30/0 40/0 50/0 " : "10/0 15/0 25/0 35/0 45/0 "));
    refusals += refused;
    if (!struck) break;
  }
  CHECK(refusals > 0);
}

TEST_CASE("rescheduling without memory leaves a submitted run with its executor") {
  std::optional<job> kept;
  manual_timer time(options{.run_on = [&](job j) { kept = std::move(j); }});
  int runs = 0;
  const timer_id id = time.schedule_after(1ms, counting(runs));
  time.advance(1ms);
  std::vector<timer_id> others;
  others.reserve(200);
  use_up_chunks([&](duration after) { others.push_back(time.schedule_after(after, doing_nothing())); });
  const auto before = time.next_due();
  bool refused = false;
  {
    const failing_new failing;
    try {
      time.reschedule_after(id, 1000h);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  }
  CHECK(refused);
  CHECK(time.next_due() == before);
  for (const timer_id other : others) time.cancel(other);
  CHECK_FALSE(time.next_due().has_value());
  (*kept)();
  CHECK(runs == 1);
  CHECK(time.pending() == 0);
}

/// Discards everything that is written to it.
class nowhere : public std::streambuf {
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }
};

TEST_CASE("drawing the wheel without memory changes nothing") {
  CHECK(fail_everywhere([](world& w) {
          nowhere buffer;
          std::ostream out(&buffer);
          out.exceptions(std::ios::badbit);
          w.time.dump(out);
        }) > 0);
}

TEST_CASE("cancelling and queries need no memory") {
  world w;
  const failing_new failing;
  for (std::size_t i = 0; i != w.ids.size(); i += 2) {
    const bool right = w.time.pending(w.ids[i]) && w.time.cancel(w.ids[i]) == cancel_result::cancelled &&
                       w.time.stats().cancelled == i / 2 + 1;
    if (!right) FAIL("cancel() failed without memory");
  }
  const bool right = w.time.cancel_and_wait(w.ids[0]) == cancel_result::gone &&
                     w.time.cancel_and_wait(w.ids[1]) == cancel_result::cancelled &&
                     w.time.pending() == w.ids.size() / 2 - 1 && adds_up(w.time.stats());
  if (!right) FAIL("cancel_and_wait() failed without memory");
  w.time.elapse(1h);
}

TEST_SUITE_END();

}  // namespace scheduler_out_of_memory_calls
