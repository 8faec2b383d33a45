// list() and due() while everything changes.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_list_races {

using namespace rondo;
using namespace rondo::test;

/// Schedules, names, moves and cancels timers of every kind until `ends` is set.
void churn(timer& t, pool& workers, unsigned state, const std::atomic<bool>& ends) {
  std::vector<timer_id> ids;
  const std::string long_name =
      "a name that no string keeps within itself, so that it takes memory of its own";
  while (!ends) {
    state = state * 1664525U + 1013904223U;
    const duration delay = (state >> 12) % 300 * 1us;
    switch (state >> 8 & 7U) {
      case 0:
        ids.push_back(t.schedule_after(delay, [] {}, {.name = long_name}));
        break;
      case 1:
        ids.push_back(
            t.schedule_after(delay, [held = long_name] {}, {.run_on = workers.executor(), .name = "job"}));
        break;
      case 2:
        ids.push_back(t.schedule(every(50us).times(3), [] {}, {.name = long_name}));
        break;
      case 3:
        ids.push_back(t.schedule_after(duration::max(), [] {}, {.name = "never"}));
        break;
      default:
        ids.push_back(t.schedule_after(delay, [] {}));
    }
    const timer_id any = ids[(state >> 4) % ids.size()];
    if (state % 3 == 0) t.cancel(any);
    if (state % 3 == 1) t.reschedule_after(any, delay);
    if (ids.size() > 100) {
      for (std::size_t i = 0; i != 50; ++i) t.cancel(ids[i]);
      ids.erase(ids.begin(), ids.begin() + 50);
    }
  }
  for (const timer_id id : ids) t.cancel(id);
}

TEST_CASE("list() and due() are right about timers that nobody touches, whatever happens to others") {
  pool workers(1);
  timer t(options{.tick = 10us});
  const std::string kept_name = "a name that is kept by a timer which stays where it is, for all of the test";
  std::map<timer_id, time_point> kept;
  for (int i = 0; i != 20; ++i) {
    const time_point due = t.now() + 1h * (i + 1);
    kept[i % 2 == 0 ? t.schedule_at(due, [] {}) : t.schedule_at(due, [] {}, {.name = kept_name})] = due;
  }
  std::atomic<bool> ends{false};
  std::vector<std::thread> others;
  for (unsigned i = 0; i != 2; ++i) others.emplace_back([&, i] { churn(t, workers, i, ends); });
  bool right = true;
  for (int round = 0; round != 300; ++round) {
    std::size_t found = 0;
    for (const timer_info& info : t.list()) {
      const auto at = kept.find(info.id);
      if (at == kept.end()) continue;
      ++found;
      right = right && info.due == at->second && (info.name.empty() || info.name == kept_name);
    }
    right = right && found == kept.size();
    for (const auto& [id, due] : kept) right = right && t.due(id) == due;
  }
  CHECK(right);
  ends = true;
  for (std::thread& other : others) other.join();
}

TEST_CASE("list() has every timer that stays pending exactly once, however it moves and runs") {
  pool workers(1);
  timer t(options{.tick = 10us, .buckets = 64});
  std::map<timer_id, int> kept;
  std::vector<timer_id> moving;
  for (int i = 0; i != 20; ++i) moving.push_back(t.schedule_after(1h, [] {}));
  for (const timer_id id : moving) kept[id] = 0;
  for (int i = 0; i != 10; ++i) kept[t.schedule_every(20us * (i + 1), [] {})] = 0;
  for (int i = 0; i != 10; ++i)
    kept[t.schedule_every(20us * (i + 1), [] {}, {.run_on = workers.executor()})] = 0;
  std::atomic<bool> ends{false};
  std::thread mover([&] {
    for (unsigned state = 1; !ends;) {
      state = state * 1664525U + 1013904223U;
      t.reschedule_after(moving[(state >> 8) % moving.size()], 1h + (state >> 16) % 1000 * 10us);
    }
  });
  bool right = true;
  for (int round = 0; round != 300; ++round) {
    for (auto& [id, times] : kept) times = 0;
    for (const timer_info& info : t.list()) {
      const auto at = kept.find(info.id);
      right = right && at != kept.end();
      if (at != kept.end()) ++at->second;
    }
    for (const auto& [id, times] : kept) right = right && times == 1;
  }
  CHECK(right);
  ends = true;
  mover.join();
}

}  // namespace threads_list_races
