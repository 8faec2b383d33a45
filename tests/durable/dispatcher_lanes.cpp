// How dispatchers run tasks that are in lanes.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "durable/workplace.hpp"

namespace durable_dispatcher_lanes {

using namespace durable_test;

/// What ran in each lane, whose name is the payload's first word.
class lanes {
 public:
  /// Fails the test if a run of the lane is in progress.
  void begin(const task& t) {
    const std::lock_guard hold(mutex_);
    const std::string lane = lane_of(t);
    CHECK_FALSE(running_[lane]);
    running_[lane] = true;
    ran_[lane].push_back(t.id);
  }
  void end(const task& t) {
    const std::lock_guard hold(mutex_);
    running_[lane_of(t)] = false;
  }
  std::vector<std::int64_t> ran(const std::string& lane) {
    const std::lock_guard hold(mutex_);
    return ran_[lane];
  }

 private:
  static std::string lane_of(const task& t) { return t.payload.substr(0, t.payload.find(' ')); }

  std::mutex mutex_;
  std::map<std::string, bool> running_;
  std::map<std::string, std::vector<std::int64_t>> ran_;
};

TEST_CASE(
    "tasks of a lane run one at a time and in order, one right after the other, on several dispatchers") {
  workplace w;
  lanes ran;
  const auto handler = [&](const task& t) {
    ran.begin(t);
    std::this_thread::yield();
    ran.end(t);
  };
  std::map<std::string, std::vector<std::int64_t>> submitted;
  std::vector<planned> all;
  for (int i = 0; i != 60; ++i) {
    const std::string lane = "lane" + std::to_string(i % 4);
    all.push_back({.what = {.payload = lane + " " + std::to_string(i), .lane = lane}, .when = 1s});
  }
  const auto ids = w.tasks->submit_all(all);
  for (std::size_t i = 0; i != ids.size(); ++i) submitted[all[i].what.lane].push_back(ids[i]);
  dispatcher a(w.time, *w.tasks, handler, w.options()), b(w.time, *w.tasks, handler, w.options());
  w.pass(2s, {&a, &b});
  // What one dispatcher has passed over just before the other one ended what was in its way.
  for (std::size_t d = 0; d != 2; ++d) w.rest(d).notify();
  w.pass(5s, {&a, &b});
  for (const auto& [lane, in_order] : submitted) CHECK(ran.ran(lane) == in_order);
  CHECK(a.stats().completed + b.stats().completed == 60);
}

TEST_CASE("the next task of a lane runs as soon as the one before has ended, however it ends") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.max_attempts = 1;
  std::vector<std::int64_t> ids;
  for (const char* how : {"done", "throw", "dead", "cancel", "done"})
    ids.push_back(w.tasks->submit_after(1s, {.payload = how, .lane = "a"}));
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        if (t.payload == "throw") throw std::runtime_error("x");
        if (t.payload == "cancel") w.tasks->cancel(t.id);
        return t.payload == "dead" ? outcome::dead("x") : outcome::done();
      },
      o);
  w.pass(1100ms, {&runs});
  CHECK(d.ids() == ids);
}

TEST_CASE("a lane waits for a task that is tried again, or that snoozes, and other lanes do not") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.first_retry = o.longest_retry = 10s;
  const auto first = w.tasks->submit_after(1s, {.payload = "twice", .lane = "a"});
  const auto second = w.tasks->submit_after(2s, {.lane = "a"});
  const auto other = w.tasks->submit_after(3s, {.lane = "b"});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        if (t.payload == "twice" && d.size() == 1) return outcome::snooze(10s);
        if (t.payload == "twice" && t.attempt == 1) throw std::runtime_error("x");
        return outcome::done();
      },
      o);
  w.pass(9s, {&runs});
  CHECK(d.ids() == std::vector{first, other});
  w.pass(15s, {&runs});
  CHECK(d.ids() == std::vector{first, other, first, first, second});
}

TEST_CASE("a task that is submitted before one that a dispatcher holds runs first, and both are in time") {
  const auto at = [](rondo::duration d) { return workplace::beginning + d; };
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  const auto later = w.tasks->submit_after(3s, {.lane = "a"});
  w.rest().notify();
  w.pass(1s, {&runs});
  CHECK(runs.stats().held == 1);
  const auto earlier = w.tasks->submit_after(1s, {.lane = "a"});
  w.rest().notify();
  w.pass(3s, {&runs});
  CHECK(d.ids() == std::vector{earlier, later});
  REQUIRE(d.size() == 2);
  CHECK(d.entries()[0].at <= at(2200ms));
  CHECK(d.entries()[1].at <= at(3200ms));
  CHECK(runs.stats().completed == 2);
}

TEST_CASE("a dispatcher that is full of tasks behind others still runs what it can") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.max_held = 3;
  std::vector<planned> all;
  for (int i = 0; i != 40; ++i) all.push_back({.what = {.lane = "a"}, .when = 1s});
  all.push_back({.what = {.payload = "b", .lane = "b"}, .when = 1500ms});
  w.tasks->submit_all(all);
  gate open;
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        if (t.payload.empty()) open.wait();
      },
      o);
  REQUIRE(w.rests());
  CHECK(runs.stats().held == 2);
  w.time.advance(2s);
  CHECK(eventually([&] { return d.size() == 2; }));
  std::vector<std::string> ran;  // in either order, as each has a thread of its own
  for (const auto& e : d.entries()) ran.push_back(e.what.payload);
  CHECK(std::ranges::is_permutation(ran, std::vector<std::string>{"", "b"}));
  open.open();
  w.pass(1s, {&runs});
  CHECK(d.size() == 41);
}

}  // namespace durable_dispatcher_lanes
