// An id never names another timer later.
#include <memory>
#include <optional>
#include <unordered_set>

#include "scheduler/virtual_time.hpp"

namespace scheduler_stale_ids {

using namespace rondo;
using namespace rondo::test;

void check_names_nothing(manual_timer& time, timer_id id) {
  CHECK_FALSE(time.pending(id));
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.cancel_and_wait(id) == cancel_result::gone);
  CHECK_FALSE(time.reschedule_after(id, 1ms));
  CHECK_FALSE(time.reschedule_at(id, time.now()));
}

TEST_CASE("ids of timers that ran or were cancelled never equal those of later timers") {
  manual_timer time;
  std::vector<timer_id> old;
  for (int round = 0; round != 5; ++round) {
    old.push_back(time.schedule_after(0s, doing_nothing()));
    time.advance(0s);
    old.push_back(time.schedule_after(1s, doing_nothing()));
    time.cancel(old.back());
    old.push_back(time.schedule_every(1s, doing_nothing()));
    time.cancel(old.back());
  }
  std::vector<timer_id> alive;
  for (int i = 0; i != 1000; ++i) alive.push_back(time.schedule_after(1h, doing_nothing()));
  for (const timer_id id : old) check_names_nothing(time, id);
  CHECK(time.pending() == 1000);

  std::unordered_set<timer_id> all(old.begin(), old.end());
  all.insert(alive.begin(), alive.end());
  CHECK(all.size() == old.size() + alive.size());
}

TEST_CASE("the id of a timer that ran does not cancel the timer that its task scheduled") {
  manual_timer time;
  timer_id first, second;
  first = time.schedule_after(1ms, [&] { second = time.schedule_after(1ms, doing_nothing()); });
  time.advance(1ms);
  CHECK(first != second);
  check_names_nothing(time, first);
  CHECK(time.pending(second));
}

TEST_CASE("ids of another scheduler are gone, whether it still exists or not") {
  manual_timer time, other;
  const auto mine = time.schedule_after(1ms, doing_nothing());
  check_names_nothing(time, other.schedule_after(1ms, doing_nothing()));
  CHECK(other.pending() == 1);

  // A scheduler at the same address, with timers in the same slots.
  std::optional<manual_timer> place(std::in_place);
  const auto dead = place->schedule_after(1ms, doing_nothing());
  place.emplace();
  const auto reborn = place->schedule_after(1ms, doing_nothing());
  CHECK(dead != reborn);
  check_names_nothing(*place, dead);
  check_names_nothing(time, dead);
  CHECK(place->pending(reborn));
  CHECK(time.pending(mine));
}

TEST_CASE("the default id names no timer, whether there are none or many") {
  manual_timer time;
  check_names_nothing(time, timer_id{});
  for (int i = 0; i != 100; ++i) CHECK(time.schedule_after(1ms, doing_nothing()) != timer_id{});
  check_names_nothing(time, timer_id{});
  CHECK(time.pending() == 100);
}

TEST_CASE("ids that stop() hands back are gone") {
  manual_timer time;
  const auto once = time.schedule_after(1ms, doing_nothing());
  const auto often = time.schedule_every(1ms, doing_nothing());
  CHECK(time.stop().size() == 2);
  check_names_nothing(time, once);
  check_names_nothing(time, often);
}

}  // namespace scheduler_stale_ids
