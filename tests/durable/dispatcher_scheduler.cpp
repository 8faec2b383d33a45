// What a dispatcher asks of its scheduler and its options; and a scheduler that is stopped first.
#include <doctest/doctest.h>

#include <stdexcept>

#include "durable/workplace.hpp"

namespace {

using namespace durable_test;

std::string waiting(const workplace& w) {
  return w.ask("SELECT count(*) FROM rondo_task WHERE state = 0 AND attempt = 0 AND owner IS NULL");
}

TEST_CASE("a scheduler that is stopped first leaves the dispatcher idle, to be stopped as ever") {
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
  CHECK(eventually([&] { return runs.stats().completed == 1; }));  // a run in progress is told
  // What it claims it could not wait for: that and what it has goes back.
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

TEST_CASE("what a stopped scheduler handed back may be called, before and after the end of the dispatcher") {
  workplace w;
  diary d(w);
  w.submit_many(3, 4s);
  std::vector<rondo::unfired> unfired;
  {
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    REQUIRE(w.settle({&runs}));
    unfired = w.time.stop();
    for (int twice = 0; twice != 2; ++twice)
      for (auto& u : unfired) u.work();
    REQUIRE(eventually([&] { return d.size() == 3; }));
  }
  for (auto& u : unfired) u.work();
  CHECK(d.size() == 3);
}

TEST_CASE("what a stopped scheduler handed back does nothing once the dispatcher is stopped") {
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

TEST_CASE("a scheduler without room for a claim's timer makes it go back, not round in circles") {
  workplace w;
  diary d(w);
  manual_timer small({.max_pending = 4});
  w.submit_many(10, 3s);
  auto o = w.options();
  o.max_held = 10;  // so that there may be more
  dispatcher runs(small, *w.tasks, d.handler(), o);
  REQUIRE(w.settle({&runs}));
  CHECK(runs.stats().held == 2);  // beside the feeder and the renewal
  CHECK(waiting(w) == "8");
  CHECK(w.line().count() <= 3);
}

TEST_CASE("dispatchers without room on their schedulers do not wake each other without end") {
  workplace w;
  diary d(w);
  manual_timer small({.max_pending = 4});
  w.submit_many(10, 3s);
  dispatcher runs(small, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  const auto turns = w.line().count();
  w.rest().notify();  // another one gives back what it has no room for
  REQUIRE(w.settle({&runs}));
  CHECK(w.line().count() == turns);
  small.advance(3s);  // a periodic look
  REQUIRE(w.settle({&runs}));
  CHECK(w.line().count() > turns);
}

TEST_CASE("options out of their ranges are refused, in words") {
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
  CHECK(refusal([](auto& o) { o.max_held = 0; }) == "rondo: max_held must be positive, not 0");
  CHECK(refusal([](auto& o) { o.max_attempts = -3; }) == "rondo: max_attempts must be positive, not -3");
  CHECK(refusal([](auto& o) { o.max_attempts = 0; }) == "rondo: max_attempts must be positive, not 0");
  CHECK(refusal([](auto& o) { o.first_retry = -1ns; }) == "rondo: first_retry must not be negative: -1ns");
  CHECK(refusal([](auto& o) { o.longest_retry = -1ns; }) ==
        "rondo: longest_retry must not be negative: -1ns");
  CHECK(refusal([](auto& o) { o.threads = 0; }) == "rondo: threads must be positive, not 0");
  CHECK_THROWS_AS(dispatcher(w.time, *w.tasks, nullptr, w.options()), std::invalid_argument);
}

TEST_CASE("a dispatcher on a stopped scheduler is not made") {
  workplace w;
  w.time.stop();
  CHECK_THROWS_AS(dispatcher(
                      w.time, *w.tasks, [](const task&) {}, w.options()),
                  rondo::stopped_error);
}

}  // namespace
