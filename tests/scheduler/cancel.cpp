// What cancel() returns and does.
#include <vector>

#include "scheduler/virtual_time.hpp"

namespace scheduler_cancel {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a pending timer is cancelled once, and then it is gone") {
  manual_timer time;
  int runs = 0;
  const auto id = time.schedule_after(1ms, counting(runs));
  CHECK(time.cancel(id) == cancel_result::cancelled);
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.cancel_and_wait(id) == cancel_result::gone);
  CHECK(time.advance(1s) == 0);
  CHECK(runs == 0);
  CHECK(time.stats().cancelled == 1);
}

TEST_CASE("a timer that ran is gone") {
  manual_timer time;
  const auto id = time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.stats().cancelled == 0);
}

TEST_CASE("cancelling the default id, which names no timer, returns gone") {
  manual_timer time;
  CHECK(time.cancel(timer_id{}) == cancel_result::gone);
  CHECK(time.cancel_and_wait(timer_id{}) == cancel_result::gone);
}

TEST_CASE("a timer that is due and has not run can be cancelled") {
  manual_timer time;
  int runs = 0;
  const auto id = time.schedule_after(1ms, counting(runs));
  time.elapse(1h);
  CHECK(time.cancel(id) == cancel_result::cancelled);
  CHECK(time.advance(0s) == 0);
  CHECK(runs == 0);
}

TEST_CASE("while a one-shot runs, every cancel() returns running") {
  manual_timer time;
  std::vector<cancel_result> results;
  timer_id id;
  id = time.schedule_after(1ms, [&] {
    results.push_back(time.cancel(id));
    results.push_back(time.cancel(id));
    results.push_back(time.cancel_and_wait(id));
  });
  time.advance(1ms);
  CHECK(results == std::vector(3, cancel_result::running));
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.stats().cancelled == 0);
  CHECK(time.stats().completed == 1);
}

TEST_CASE("a periodic task that cancels itself finishes its run, and no other run follows") {
  manual_timer time;
  std::vector<cancel_result> results;
  timer_id id;
  id = time.schedule_every(1ms, [&](const firing& f) {
    if (f.run < 3) return;
    results.push_back(time.cancel(id));
    results.push_back(time.cancel(id));
    results.push_back(time.cancel_and_wait(id));
    CHECK_FALSE(time.pending(id));
    CHECK(time.pending() == 0);
    CHECK_FALSE(time.next_due().has_value());
  });
  CHECK(time.advance(1s) == 3);
  CHECK(results == std::vector(3, cancel_result::running));
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.stats().cancelled == 1);
  CHECK(time.stats().completed == 0);
}

TEST_CASE("a periodic task that is slower than its period and cancels itself does not run again") {
  manual_timer time;
  int runs = 0;
  timer_id id;
  id = time.schedule_every(1ms, [&] {
    ++runs;
    time.elapse(10ms);
    time.cancel(id);
  });
  time.advance(1s);
  CHECK(runs == 1);
}

TEST_CASE("a task may cancel others of its own tick and of later ticks") {
  manual_timer time;
  journal ran;
  std::vector<timer_id> ids(5);
  timer_id later;
  ids[0] = time.schedule_after(1ms, [&] {
    ran.add("1");
    CHECK(time.cancel(ids[1]) == cancel_result::cancelled);
    CHECK(time.cancel(ids[3]) == cancel_result::cancelled);
    CHECK(time.cancel(ids[3]) == cancel_result::gone);
  });
  ids[1] = time.schedule_after(1ms, ran.noting("2"));
  ids[2] = time.schedule_after(1ms, [&] {
    ran.add("3");
    CHECK(time.cancel(ids[0]) == cancel_result::gone);
    CHECK(time.cancel(ids[4]) == cancel_result::cancelled);
    CHECK(time.cancel(later) == cancel_result::cancelled);
  });
  ids[3] = time.schedule_after(1ms, ran.noting("4"));
  ids[4] = time.schedule_after(1ms, ran.noting("5"));
  later = time.schedule_after(2ms, ran.noting("later"));
  CHECK(time.advance(1s) == 2);
  CHECK(ran.take() == "1 3");
  CHECK(time.pending() == 0);
}

TEST_CASE("cancelling timers of the tick in progress keeps the counts right") {
  manual_timer time;
  std::vector<timer_id> ids;
  time.schedule_after(200ms, [&] {
    for (const auto id : ids) time.cancel(id);
    CHECK(time.pending() == 0);
  });
  for (int i = 0; i != 10; ++i) ids.push_back(time.schedule_after(200ms, doing_nothing()));
  CHECK(time.advance(1s) == 1);
  CHECK(time.pending() == 0);
  CHECK(time.stats().cancelled == 10);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("after the earliest timer is cancelled, next_due() is that of the next one") {
  manual_timer time;
  const auto a = time.schedule_after(1ms, doing_nothing());
  const auto b = time.schedule_after(2ms, doing_nothing());
  CHECK(time.next_due() == at(1ms));
  time.cancel(a);
  CHECK(time.next_due() == at(2ms));
  time.cancel(b);
  CHECK_FALSE(time.next_due().has_value());
}

TEST_CASE("cancelled timers in every round of a bucket do not come back") {
  manual_timer time(rondo::options{.buckets = 4});
  int runs = 0;
  std::vector<timer_id> ids;
  for (int tick = 1; tick != 400; ++tick) ids.push_back(time.schedule_after(tick * 1ms, counting(runs)));
  for (std::size_t i = 0; i != ids.size(); ++i)
    if (i % 3 != 0) time.cancel(ids[i]);
  time.advance(1s);
  CHECK(runs == 133);
}

}  // namespace scheduler_cancel
