// What a dispatcher requires of its scheduler and options; its end, and that of its scheduler and database.
#include <doctest/doctest.h>

#include <stdexcept>

#include "durable/workplace.hpp"

namespace durable_dispatcher_lifetime {

using namespace durable_test;
using fault = line_to_the_database::fault;

std::string waiting(const workplace& w) {
  return w.ask("SELECT count(*) FROM rondo_task WHERE state = 0 AND attempt = 0 AND owner IS NULL");
}

// Also a scheduler that is stopped before its dispatcher.

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

// The end of a dispatcher, and of its scheduler and database.

TEST_CASE("stop() hands back waiting tasks, so that another dispatcher gets them at once") {
  workplace w;
  diary a(w), b(w);
  w.submit_many(10, 3s);
  dispatcher one(w.time, *w.tasks, a.handler(), w.options());
  REQUIRE(w.settle({&one}));
  REQUIRE(one.stats().held == 10);
  one.stop();
  CHECK(waiting(w) == "10");
  CHECK(one.stats().handed_back == 10);
  CHECK(one.stats().held == 0);
  dispatcher two(w.time, *w.tasks, b.handler(), w.options());
  w.watched->rests.erase(w.watched->rests.begin());
  w.pass(4s, {&two});
  CHECK(a.size() == 0);
  CHECK(b.size() == 10);
}

TEST_CASE(
    "stop() waits for and reports runs in progress; tasks that have begun but have no thread yet wait "
    "again") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.threads = 2;
  w.submit_many(60, 0s);
  std::atomic<int> quick{20};
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        if (quick-- > 0) return;
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait(2));
  std::atomic<bool> is_over{false};
  std::thread stopper([&] {
    runs.stop();
    is_over = true;
  });
  // All tasks except these two are given back before the two have ended.
  CHECK(eventually([&] { return waiting(w) == "38"; }));
  CHECK_FALSE(is_over);
  may_end.open();
  stopper.join();
  CHECK(runs.stats().completed == 22);
  CHECK(runs.stats().handed_back == 38);
  CHECK(w.ask("SELECT count(*) FROM rondo_task") == "38");
  CHECK(w.errors().empty());
}

TEST_CASE("stop() during a claim hands back what that finds, and reports no error") {
  workplace w;
  dispatcher runs(
      w.time, *w.tasks, [](const task&) {}, w.options());
  w.pass(0s, {&runs});
  std::thread stopper;
  w.line().after_turn([&](const detail::turn& t) {
    if (t.claim_up_to == 0 || stopper.joinable()) return;
    const std::size_t timers = w.time.pending();
    stopper = std::thread([&] { runs.stop(); });
    CHECK(eventually([&] { return w.time.pending() < timers; }));  // it claims no more
  });
  w.submit_many(10, 4s);
  CHECK(eventually([&] {
    w.time.advance(100ms);
    return runs.stats().claimed == 10;
  }));
  stopper.join();
  CHECK(w.errors().empty());
  CHECK(waiting(w) == "10");
  CHECK(runs.stats().handed_back == 10);
}

TEST_CASE("while stop() waits for runs, their leases are renewed") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.lease = 3s;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait());
  std::thread stopper([&] { runs.stop(); });
  for (int i = 0; i != 30; ++i) {
    w.time.advance(1s);
    REQUIRE(w.rests());
  }
  may_end.open();
  stopper.join();
  CHECK(runs.stats().completed == 1);
  const auto turns = w.line().turns();
  CHECK(std::ranges::count_if(turns, [](const turn& t) { return !t.renewed.empty(); }) >= 29);
}

TEST_CASE(
    "after stop() nothing is claimed and nothing runs; stop() may be called again, and from several "
    "threads") {
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  std::vector<std::thread> callers;
  for (int i = 0; i != 4; ++i) callers.emplace_back([&] { runs.stop(); });
  for (std::thread& t : callers) t.join();
  runs.stop();
  w.tasks->submit_after(0s, {});
  const auto turns = w.line().count();
  w.time.advance(1min);
  CHECK(w.line().count() == turns);
  CHECK(d.size() == 0);
  CHECK(w.time.pending() == 0);
}

TEST_CASE("stop() from inside the handler, or on_error, is a logic error") {
  workplace w;
  dispatcher* self = nullptr;
  gate made;
  std::atomic<int> refused{0};
  const auto try_it = [&] {
    made.wait();
    try {
      self->stop();
    } catch (const std::logic_error&) {
      ++refused;
    }
  };
  auto o = w.options();
  o.on_error = [&](const std::string&) { try_it(); };
  o.max_attempts = 1;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        try_it();
        throw std::runtime_error("x");
      },
      o);
  self = &runs;
  made.open();
  REQUIRE(eventually([&] { return runs.stats().dead == 1 && refused == 3; }));
}

TEST_CASE("the handler of one dispatcher may stop another dispatcher") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.queues = {"other"};
  dispatcher other(w.time, *w.tasks, d.handler(), o);
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks, [&](const task&) { other.stop(); }, w.options());
  CHECK(eventually([&] { return runs.stats().completed == 1; }));
}

TEST_CASE(
    "a database that does not answer delays stop() for two seconds, and unreported tasks are left to their "
    "leases") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  w.submit_many(2, 0s);
  w.submit_many(3, 4s);
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait(2));
  REQUIRE(eventually([&] { return runs.stats().held == 3; }));
  w.line().fail(-1);
  may_end.open();
  const auto begin = std::chrono::steady_clock::now();
  runs.stop();
  CHECK(std::chrono::steady_clock::now() - begin >= 2s);
  CHECK(w.was_told("5 tasks stay claimed until their leases run out"));
  CHECK(runs.stats().handed_back == 0);
  CHECK(w.ask("SELECT count(*) FROM rondo_task WHERE state IN (1, 2)") == "5");
}

TEST_CASE("if stop() is called while the database fails, everything is reported as soon as it answers") {
  for (const auto how : {fault::before, fault::after}) {
    workplace w;
    gate begun, may_end;
    w.submit_many(2, 0s);
    w.submit_many(3, 4s);
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task&) {
          begun.open();
          may_end.wait();
        },
        w.options());
    REQUIRE(begun.wait(2));
    REQUIRE(eventually([&] { return runs.stats().held == 3; }));
    w.line().fail(3, how);
    may_end.open();
    runs.stop();
    CHECK(runs.stats().completed == 2);
    CHECK(runs.stats().handed_back == 3);
    CHECK(runs.stats().leases_lost == 0);
    CHECK(waiting(w) == "3");
  }
}

TEST_CASE("stop() hands back tasks that were begun or claimed by a turn whose answer was lost") {
  for (const bool begins : {false, true}) {
    workplace w;
    diary d(w);
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    REQUIRE(w.settle({&runs}));
    w.submit_many(5, begins ? 1s : 3s);
    if (begins) {
      w.rest().notify();
      REQUIRE(eventually([&] { return runs.stats().held == 5; }));
      REQUIRE(w.settle({&runs}));
    }
    w.line().fail(1, fault::after);
    if (begins)
      w.time.advance(1s);
    else
      w.rest().notify();
    REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
    REQUIRE(w.rests());
    runs.stop();
    CHECK(d.size() == 0);
    CHECK(waiting(w) == "5");
  }
}

TEST_CASE(
    "a database that fails when the scheduler is stopped is tried again at the next occasion, and by "
    "stop()") {
  workplace w;
  gate begun, may_end;
  w.submit_many(2, 0s);
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        begun.open();
        may_end.wait(t.id);
      },
      w.options());
  REQUIRE(begun.wait(2));
  w.time.stop();
  w.line().fail(1);
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
  REQUIRE(w.rests());
  CHECK(runs.stats().completed == 0);
  may_end.open();
  CHECK(eventually([&] { return runs.stats().completed == 2; }));
  runs.stop();
}

TEST_CASE(
    "a scheduler that is stopped while a failed turn waits for its alarm does not silence the dispatcher") {
  workplace w;
  gate begun, may_end;
  w.submit_many(2, 0s);
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        begun.open();
        may_end.wait(t.id);
      },
      w.options());
  REQUIRE(begun.wait(2));
  w.line().fail(1);
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().failures == 1 && w.rest().at_rest().has_value(); }));
  w.time.stop();
  CHECK(runs.stats().completed == 0);
  may_end.open();
  CHECK(eventually([&] { return runs.stats().completed == 2; }));
}

TEST_CASE("stop() hands back tasks that have begun and have no thread, however long their lease is") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.threads = 1;
  o.lease = duration::max();
  w.submit_many(60, 0s);
  std::atomic<int> quick{20};
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        if (quick-- > 0) return;
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait());
  REQUIRE(eventually([&] { return w.rest().at_rest().has_value(); }));
  REQUIRE(runs.stats().running > 1);  // begun ahead
  std::thread stopper([&] { runs.stop(); });
  CHECK(eventually([&] { return waiting(w) == "39"; }));
  may_end.open();
  stopper.join();
  CHECK(runs.stats().completed == 21);
  CHECK(w.ask("SELECT count(*) FROM rondo_task") == "39");
}

TEST_CASE("what stop() cannot report to the database gives one line for the fault and one for what is left") {
  for (const bool answer_was_lost : {false, true}) {
    workplace w;
    diary d(w);
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    REQUIRE(w.settle({&runs}));
    w.submit_many(3, 4s);
    if (answer_was_lost) {
      w.line().fail(1, fault::after);
      w.rest().notify();
      REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
    } else {
      w.rest().notify();
      REQUIRE(eventually([&] { return runs.stats().held == 3; }));
    }
    REQUIRE(w.settle({&runs}));
    const auto lines = w.errors().size();
    w.line().fail(-1);
    runs.stop();
    CHECK(w.ask("SELECT count(*) FROM rondo_task WHERE state = 1") == "3");
    CHECK(w.errors().size() <= lines + 3);  // stop() attempts another turn before its last ones
    CHECK(w.was_told(answer_was_lost ? "the tasks claimed last may stay claimed until their leases run out"
                                     : "3 tasks stay claimed until their leases run out"));
  }
}

}  // namespace durable_dispatcher_lifetime
