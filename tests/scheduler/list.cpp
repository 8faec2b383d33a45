// list(): all timers.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_list {

using namespace rondo;
using namespace rondo::test;

std::vector<timer_id> ids_of(const std::vector<timer_info>& list) {
  std::vector<timer_id> ids;
  for (const timer_info& t : list) ids.push_back(t.id);
  return ids;
}

TEST_CASE("list() of a scheduler without timers is empty") {
  manual_timer time;
  CHECK(time.list().empty());
  time.cancel(time.schedule_after(1s, doing_nothing()));
  time.schedule_after(1s, doing_nothing());
  time.advance(1s);
  CHECK(time.list().empty());
}

TEST_CASE("list() is in the order of due, then timers never due, then those that wait for no moment") {
  for (const std::size_t buckets : {1U, 8U, 512U}) {
    std::vector<job> jobs;
    manual_timer time({.buckets = buckets});
    const auto never = time.schedule_after(duration::max(), doing_nothing());
    const auto last = time.schedule_after(1000h, doing_nothing());
    const auto handed =
        time.schedule_after(0s, doing_nothing(), {.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
    const auto second = time.schedule_every(2s, doing_nothing());
    const auto first = time.schedule_after(1'999'999us, doing_nothing());
    time.advance(0s);
    CHECK(ids_of(time.list()) == std::vector{first, second, last, never, handed});
  }
}

TEST_CASE("list() shows timers in the clock's last tick, which never begins, as never due") {
  manual_timer time;
  const auto second = time.schedule_at(time_point::max() - 1ns, doing_nothing());
  const auto first = time.schedule_after(1h, doing_nothing());
  const auto list = time.list();
  REQUIRE(ids_of(list) == std::vector{first, second});
  CHECK(list[1].due == time_point::max());
}

TEST_CASE("list() has everything that is known about each timer") {
  std::vector<job> jobs;
  manual_timer time;
  const auto once = time.schedule_after(9s, doing_nothing());
  const auto often = time.schedule_every(2s, doing_nothing(), {.name = "often"});
  const auto both = time.schedule(every(3s).on_overlap(overlapping_runs::allow), doing_nothing(),
                                  {.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  time.advance(7s);
  REQUIRE(jobs.size() == 2);
  jobs[0]();
  const auto list = time.list();
  REQUIRE(list.size() == 3);
  CHECK(list[0].id == often);
  CHECK(list[0].name == "often");
  CHECK(list[0].due == at(8s));
  CHECK(list[0].runs == 3);
  CHECK(list[0].periodic);
  CHECK(list[0].running == 0);
  CHECK(list[1].id == std::min(once, both));
  const timer_info& single = list[once < both ? 1 : 2];
  const timer_info& twice = list[once < both ? 2 : 1];
  CHECK(single.name.empty());
  CHECK(single.due == at(9s));
  CHECK(single.runs == 0);
  CHECK_FALSE(single.periodic);
  CHECK(twice.due == at(9s));
  CHECK(twice.runs == 1);  // the other run has not begun
  CHECK(twice.periodic);
}

TEST_CASE("a running timer is listed, even if it is no longer pending") {
  manual_timer time;
  std::vector<timer_info> lists[3];
  time.schedule_after(1s, [&] { lists[0] = time.list(); }, {.name = "once"});
  time.advance(1s);
  time.schedule_every(1s, [&](const firing&) { lists[1] = time.list(); });
  time.advance(1s);
  time.stop();
  manual_timer other;
  other.schedule_every(1s, [&](const firing& f) {
    other.cancel(f.id);
    lists[2] = other.list();
  });
  other.advance(1s);
  for (const auto& list : lists) {
    REQUIRE(list.size() == 1);
    CHECK(list[0].running == 1);
    CHECK(list[0].runs == 1);
  }
  CHECK(lists[0][0].name == "once");
  CHECK(lists[0][0].due == std::nullopt);
  CHECK(lists[1][0].due == at(3s));
  CHECK(lists[2][0].due == std::nullopt);
  CHECK(lists[2][0].periodic);
}

TEST_CASE("a timer whose callable is being destroyed is not listed") {
  manual_timer time;
  std::size_t listed = 99;
  std::shared_ptr<void> at_its_end(nullptr, [&](void*) { listed = time.list().size(); });
  SUBCASE("after its run") {
    time.schedule_after(1s, [at_its_end] {});
    at_its_end.reset();
    time.advance(1s);
  }
  SUBCASE("by cancel()") {
    const auto id = time.schedule_after(1s, [at_its_end] {});
    at_its_end.reset();
    time.cancel(id);
  }
  CHECK(listed == 0);
}

/// A callable that counts the timers while it is being moved, if `asked` is set.
struct lists_when_moved {
  manual_timer& time;
  std::optional<std::size_t>& listed;
  bool& asked;

  lists_when_moved(manual_timer& t, std::optional<std::size_t>& l, bool& a) : time(t), listed(l), asked(a) {}
  lists_when_moved(lists_when_moved&& other) noexcept
      : time(other.time), listed(other.listed), asked(other.asked) {
    if (asked) listed = time.list().size();
  }
  void operator()() const {}
};

TEST_CASE("a timer that stop() is handing back is not listed") {
  manual_timer time;
  std::optional<std::size_t> listed;
  bool asked = false;
  time.schedule_after(1s, lists_when_moved(time, listed, asked));
  asked = true;
  time.stop();
  asked = false;
  CHECK(listed == 0U);
}

TEST_CASE("timers that the pass in progress has taken are listed") {
  manual_timer time;
  std::vector<timer_id> expected;
  std::vector<timer_info> list;
  expected.push_back(time.schedule_after(1s, [&] { list = time.list(); }));
  for (int i = 0; i != 5; ++i) expected.push_back(time.schedule_after(1s, doing_nothing()));
  time.advance(1s);
  std::vector<timer_id> found = ids_of(list);
  REQUIRE(found.size() == 6);
  CHECK(found.back() == expected.front());  // it is running, and waits for no moment
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  CHECK(found == expected);
}

TEST_CASE("timers that the pass has taken are listed by due, whatever the order of scheduling") {
  manual_timer time;
  std::vector<timer_info> list;
  for (int i = 0; i != 9; ++i) time.schedule_after(20ms - i * 1ms, doing_nothing());
  time.schedule_after(1ms, [&] { list = time.list(); });
  time.elapse(1s);
  time.advance(0s);
  REQUIRE(list.size() == 10);
  for (int i = 0; i != 9; ++i) CHECK(list[static_cast<std::size_t>(i)].due == at(12ms + i * 1ms));
}

TEST_CASE("after stop() nothing is listed") {
  manual_timer time;
  time.schedule_after(1s, doing_nothing());
  time.schedule_every(1s, doing_nothing());
  time.stop();
  CHECK(time.list().empty());
}

TEST_CASE("without memory list() throws, and changes nothing" * doctest::skip(!failing_new::available)) {
  manual_timer time;
  time.schedule_after(1s, doing_nothing(), {.name = "a name that takes memory of its own, as it is so long"});
  time.schedule_after(2s, doing_nothing());
  std::vector<timer_info> list;
  int refusals = 0;
  for (std::size_t allocations = 0; list.empty(); ++allocations) {
    try {
      const failing_new failing(allocations);
      list = time.list();
    } catch (const std::bad_alloc&) {
      ++refusals;
    }
  }
  CHECK(refusals >= 3);
  CHECK(list.size() == 2);
  CHECK(time.advance(2s) == 2);
}

TEST_CASE("list() has each of many timers once") {
  manual_timer time({.buckets = 8});
  std::map<timer_id, time_point> made;
  for (int i = 0; i != 3000; ++i) {
    const duration d = i * 7919 % 100'000 * 1ms;
    made[time.schedule_after(d, doing_nothing())] = at(d);
  }
  const auto list = time.list();
  REQUIRE(list.size() == made.size());
  bool right = true;
  for (std::size_t i = 0; i != list.size(); ++i) {
    right = right && list[i].due == made.at(list[i].id) && (i == 0 || list[i - 1].due <= list[i].due);
    made.erase(list[i].id);
  }
  CHECK(right);
  CHECK(made.empty());
}

}  // namespace scheduler_list
