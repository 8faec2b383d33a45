// What a dispatcher requires of its scheduler and options, and a scheduler that is stopped before its dispatcher.
#include <doctest/doctest.h>

#include <stdexcept>

#include "durable/workplace.hpp"

namespace durable_dispatcher_scheduler {

using namespace durable_test;

std::string waiting(const workplace& w) {
  return w.ask("SELECT count(*) FROM rondo_task WHERE state = 0 AND attempt = 0 AND owner IS NULL");
}

TEST_CASE("if the scheduler is stopped first, the dispatcher is idle and can still be stopped as usual") {
  workplace w;
  gate begun, may_end;
  w.submit_many(1, 0s);
  w.submit_many(5, 4s);
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      w.options());
  REQUIRE(begun.wait());
  REQUIRE(eventually([&] { return runs.stats().held == 5; }));
  const auto unfired = w.time.stop();
  CHECK(unfired.size() >= 6);
  may_end.open();
  CHECK(eventually([&] { return runs.stats().completed == 1; }));  // a run in progress is reported
  // It could not wait for the tasks that it claims, so it gives back those and the held ones.
  w.submit_many(1, 3s);
  w.rest().notify();
  CHECK(eventually([&] { return waiting(w) == "6"; }));
  CHECK(w.was_told("is given back"));
  const auto turns = w.line().count();
  w.rest().notify();
  REQUIRE(w.settle({&runs}));
  CHECK(w.line().count() == turns);
  runs.stop();
}

TEST_CASE(
    "tasks that a stopped scheduler handed back may be called, before and after the end of the dispatcher") {
  workplace w;
  diary d(w);
  w.submit_many(3, 4s);
  std::vector<rondo::unfired> unfired;
  {
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    REQUIRE(w.settle({&runs}));
    w.time.elapse(4s);
    unfired = w.time.stop();
    for (int twice = 0; twice != 2; ++twice)
      for (auto& u : unfired) u.work();
    REQUIRE(eventually([&] { return d.size() == 3; }));
  }
  for (auto& u : unfired) u.work();
  CHECK(d.size() == 3);
}

TEST_CASE("tasks that a stopped scheduler handed back do nothing once the dispatcher is stopped") {
  workplace w;
  diary d(w);
  w.submit_many(3, 4s);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  auto unfired = w.time.stop();
  runs.stop();
  for (auto& u : unfired) u.work();
  CHECK(runs.stats().held == 0);
  CHECK(waiting(w) == "3");
}

TEST_CASE(
    "if the scheduler has no room for a claim's timer, the claim is given back, and not taken again at "
    "once") {
  workplace w;
  diary d(w);
  manual_timer small({.max_pending = 4});
  w.submit_many(10, 3s);
  auto o = w.options();
  o.max_held = 10;  // so that the database may have more tasks
  dispatcher runs(small, *w.tasks, d.handler(), o);
  REQUIRE(w.settle({&runs}));
  CHECK(runs.stats().held == 2);  // the periodic check and the renewal take the other two timers
  CHECK(waiting(w) == "8");
  CHECK(w.line().count() <= 3);
}

TEST_CASE("dispatchers without room on their schedulers do not wake each other endlessly") {
  workplace w;
  diary d(w);
  manual_timer small({.max_pending = 4});
  w.submit_many(10, 3s);
  dispatcher runs(small, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  const auto turns = w.line().count();
  w.rest().notify();  // another dispatcher gives back what it has no room for
  REQUIRE(w.settle({&runs}));
  CHECK(w.line().count() == turns);
  small.advance(3s);  // a periodic check
  REQUIRE(w.settle({&runs}));
  CHECK(w.line().count() > turns);
}

TEST_CASE("options out of range are refused with a message") {
  workplace w;
  const auto refusal = [&](auto change) -> std::string {
    dispatcher_options o = w.options();
    change(o);
    try {
      dispatcher runs(
          w.time, *w.tasks, [](const task&) {}, o);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal([](auto&) {}) == "");
  CHECK(refusal([](auto& o) { o.queues.clear(); }) == "rondo: a dispatcher needs a queue");
  CHECK(refusal([](auto& o) { o.queues = {""}; }) == "rondo: the queue \"\" is empty");
  CHECK(refusal([](auto& o) { o.window = -1500us; }) == "rondo: window must be positive, not -1500000ns");
  CHECK(refusal([](auto& o) { o.window = 0s; }) == "rondo: window must be positive, not 0ns");
  CHECK(refusal([](auto& o) { o.lease = 99ms; }) == "rondo: lease must be at least 100ms, not 99000000ns");
  CHECK(refusal([](auto& o) { o.lease = 100ms; }) == "");
  CHECK(refusal([](auto& o) { o.max_held_bytes = 0; }) == "rondo: max_held_bytes must be positive, not 0");
  CHECK(refusal([](auto& o) { o.max_held = 0; }) == "rondo: max_held must be positive, not 0");
  CHECK(refusal([](auto& o) { o.max_attempts = -3; }) == "rondo: max_attempts must be positive, not -3");
  CHECK(refusal([](auto& o) { o.max_attempts = 0; }) == "rondo: max_attempts must be positive, not 0");
  CHECK(refusal([](auto& o) { o.first_retry = -1ns; }) == "rondo: first_retry must not be negative: -1ns");
  CHECK(refusal([](auto& o) { o.longest_retry = -1ns; }) ==
        "rondo: longest_retry must not be negative: -1ns");
  CHECK(refusal([](auto& o) { o.threads = 0; }) == "rondo: threads must be positive, not 0");
  CHECK_THROWS_AS(dispatcher(w.time, *w.tasks, nullptr, w.options()), std::invalid_argument);
}

TEST_CASE("a dispatcher cannot be created on a stopped scheduler") {
  workplace w;
  w.time.stop();
  CHECK_THROWS_AS(dispatcher(
                      w.time, *w.tasks, [](const task&) {}, w.options()),
                  rondo::stopped_error);
}

}  // namespace durable_dispatcher_scheduler
