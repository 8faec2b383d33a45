// shrink_to_fit() gives back the memory of ended timers, and has no visible effect.
#include <cstddef>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "failing_new.hpp"
#include "platform.hpp"
#include "scheduler/record.hpp"
#include "scheduler/virtual_time.hpp"
#include "times_slower.hpp"

namespace scheduler_shrink {

using namespace rondo;
using namespace rondo::test;

constexpr std::ptrdiff_t record_bytes = sizeof(detail::record);

/// The resident memory of this process, in bytes. In an emulator this includes the emulator's own, so it is useless.
std::size_t resident_memory() {
  std::ifstream file("/proc/self/status");
  std::size_t kibibytes = 0;
  for (std::string word; file >> word;)
    if (word == "VmRSS:") file >> kibibytes;
  return kibibytes * 1024;
}

void check_names_nothing(manual_timer& time, timer_id id) {
  CHECK_FALSE(time.pending(id));
  CHECK(time.cancel(id) == cancel_result::gone);
  CHECK(time.cancel_and_wait(id) == cancel_result::gone);
  CHECK_FALSE(time.reschedule_after(id, 1ms));
}

TEST_CASE("the memory of a burst goes back to the system, whether its timers fired or were cancelled" *
          doctest::skip(memory_is_slow || RONDO_HAS_MALLOC_TRIM == 0)) {
  constexpr std::size_t count = a_million;
  constexpr auto bytes = count * static_cast<std::size_t>(record_bytes);
  for (const bool fires : {true, false}) {
    CAPTURE(fires);
    manual_timer time;
    int runs = 0;
    std::vector<timer_id> ids;
    ids.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
      ids.push_back(time.schedule_after(static_cast<int>(i % 5000) * 1ms, counting(runs)));
    if (fires)
      time.advance(1h);
    else
      for (const timer_id id : ids) time.cancel(id);
    const std::size_t kept = resident_memory();
    time.shrink_to_fit();
    CHECK(resident_memory() + bytes / 100 * 98 <= kept);
    // Calls that visit all timers do not take the memory again.
    std::ostringstream drawing;
    time.dump(drawing);
    CHECK(time.next_due() == std::nullopt);
    CHECK(resident_memory() + bytes / 100 * 98 <= kept);
    std::size_t pending = 0;
    for (const timer_id id : ids) pending += time.pending(id) ? 1U : 0U;
    CHECK(pending == 0);
    CHECK(adds_up(time.stats()));
  }
}

TEST_CASE("shrink_to_fit() makes a scheduler's wheel as small as a new one" *
          doctest::skip(!failing_new::available)) {
  manual_timer time;
  time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  time.shrink_to_fit();
  const std::ptrdiff_t before = bytes_held();
  std::vector<timer_id> ids(20'000);
  for (int i = 0; i != 20'000; ++i)
    ids[static_cast<std::size_t>(i)] = time.schedule_after(i * 1s, doing_nothing());
  CHECK(bytes_held() >= before + 20'000 * (record_bytes + std::ptrdiff_t{sizeof(void*)}));
  for (const timer_id id : ids) time.cancel(id);
  time.shrink_to_fit();
  CHECK(bytes_held() <= before + static_cast<std::ptrdiff_t>(20'000 * sizeof(timer_id)) + 100);
}

TEST_CASE("after shrink_to_fit() old ids name nothing, even when other timers use their records") {
  manual_timer time;
  std::vector<timer_id> old;
  for (int round = 0; round != 4; ++round) {
    for (int i = 0; i != 500; ++i) {
      old.push_back(time.schedule_after(1ms, doing_nothing()));
      old.push_back(time.schedule_after(1ms, [kept = std::make_shared<int>(0)] {}));
      old.push_back(time.schedule_every(1ms, doing_nothing()));
      time.cancel(old.back());
    }
    time.advance(1ms);
    CHECK(time.pending() == 0);
    time.shrink_to_fit();
    for (const timer_id id : old) check_names_nothing(time, id);
  }
  std::vector<timer_id> alive;
  for (int i = 0; i != 2000; ++i) alive.push_back(time.schedule_after(1h, doing_nothing()));
  for (const timer_id id : old) check_names_nothing(time, id);
  CHECK(time.pending() == 2000);
  std::unordered_set<timer_id> all(old.begin(), old.end());
  all.insert(alive.begin(), alive.end());
  CHECK(all.size() == old.size() + alive.size());
  for (const timer_id id : alive) CHECK(time.cancel(id) == cancel_result::cancelled);
}

TEST_CASE("after shrink_to_fit() timers of all kinds continue in order") {
  journal seen;
  std::vector<job> jobs;
  manual_timer time;
  const on executor([&](job j) { jobs.push_back(std::move(j)); });
  time.schedule_after(3s, seen.noting("c"));
  time.schedule_after(1ms, seen.noting("job"), executor);
  const timer_id periodic = time.schedule_every(2s, seen.noting("every"));
  const timer_id never = time.schedule_after(duration::max(), seen.noting("never"));
  time.schedule_after(24h, seen.noting("far"));
  time.advance(1ms);
  for (int i = 0; i != 5000; ++i) time.cancel(time.schedule_after(i * 1ms, doing_nothing()));
  for (int i = 0; i != 5000; ++i) time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  time.schedule_after(2998ms, seen.noting("d"));
  time.shrink_to_fit();
  CHECK(time.pending() == 6);
  CHECK(time.pending(never));
  CHECK(time.next_due() == at(2s));
  jobs.at(0)();
  CHECK(seen.take() == "job");
  time.advance(1998ms);
  CHECK(seen.take() == "every");
  time.advance(1s);
  CHECK(seen.take() == "c d");
  CHECK(time.cancel(periodic) == cancel_result::cancelled);
  time.shrink_to_fit();
  time.advance(24h);
  CHECK(seen.take() == "far");
  const auto left = time.stop();
  REQUIRE(left.size() == 1);
  CHECK(left[0].id == never);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a timer cancelled in the pass in progress is not mistaken for the new one in its record") {
  manual_timer time;
  int stale = 0, fresh = 0;
  std::vector<timer_id> others;
  time.schedule_after(1ms, [&] {
    for (const timer_id id : others) CHECK(time.cancel(id) == cancel_result::cancelled);
    time.shrink_to_fit();
  });
  SUBCASE("no timer has it yet") {}
  SUBCASE("new timers have it") {
    time.schedule_after(1ms, [&] {
      for (int i = 0; i != 2000; ++i) time.schedule_after(1h, counting(fresh));
    });
  }
  for (int i = 0; i != 1000; ++i) others.push_back(time.schedule_after(1ms, counting(stale)));
  time.advance(1ms);
  CHECK(stale == 0);
  CHECK(fresh == 0);
  const std::size_t left = time.pending();
  time.shrink_to_fit();
  CHECK(time.advance(1h) == left);
  CHECK(stale == 0);
  CHECK(static_cast<std::size_t>(fresh) == left);
}

TEST_CASE("a task, and the destructor of its callable, may call shrink_to_fit()") {
  manual_timer time;
  const auto shrinking = [&] {
    return std::shared_ptr<manual_timer>(&time, [](manual_timer* t) { t->shrink_to_fit(); });
  };
  int runs = 0;
  for (int i = 0; i != 300; ++i)
    time.schedule_after(1ms, [&, at_end = shrinking()] {
      ++runs;
      time.shrink_to_fit();
    });
  CHECK(time.advance(1ms) == 300);
  CHECK(runs == 300);
  const timer_id cancelled = time.schedule_after(1ms, [at_end = shrinking()] {});
  CHECK(time.cancel(cancelled) == cancel_result::cancelled);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("without memory shrink_to_fit() does less, and nothing is lost" *
          doctest::skip(!failing_new::available)) {
  manual_timer time;
  int runs = 0;
  for (int i = 0; i != 10'000; ++i) time.schedule_after(i % 100 * 1ms, counting(runs));
  time.advance(49ms);
  {
    const failing_new no_memory;
    time.shrink_to_fit();
    CHECK(no_memory.struck());
  }
  CHECK(runs == 5000);
  time.advance(1s);
  CHECK(runs == 10'000);
  const timer_id again = time.schedule_after(1ms, counting(runs));
  time.shrink_to_fit();
  CHECK(time.pending(again));
  CHECK(time.advance(1ms) == 1);
}

TEST_CASE("scheduling without memory changes nothing, even after shrink_to_fit()") {
  manual_timer time;
  for (int i = 0; i != 1000; ++i) time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  time.shrink_to_fit();
  if (failing_new::available) {
    const failing_new no_memory;
    CHECK_THROWS_AS(time.schedule_after(1ms, doing_nothing()), std::bad_alloc);
  }
  CHECK(time.pending() == 0);
  time.schedule_after(1ms, doing_nothing());
  CHECK(time.advance(1ms) == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("stop() and drain() find all timers after shrink_to_fit(), which may also be called after them") {
  manual_timer time;
  std::vector<timer_id> ids;
  for (int round = 0; round != 3; ++round) {
    for (int i = 0; i != 1000; ++i) time.schedule_after(1ms, doing_nothing());
    time.advance(1ms);
    time.shrink_to_fit();
    ids.push_back(time.schedule_after(1h + round * 1s, doing_nothing()));
    ids.push_back(time.schedule_after(duration::max(), doing_nothing()));
  }
  SUBCASE("stop") {
    const auto left = time.stop();
    CHECK(left.size() == ids.size());
  }
  SUBCASE("drain") {
    time.schedule_every(1s, doing_nothing());
    CHECK(time.drain(2h));
    CHECK(time.stop().size() == 3);
  }
  time.shrink_to_fit();
  CHECK(time.pending() == 0);
  for (const timer_id id : ids) check_names_nothing(time, id);
}

}  // namespace scheduler_shrink
