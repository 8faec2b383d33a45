// A database that fails, does not answer, or answers too late.
#include <doctest/doctest.h>

#include <set>

#include "durable/workplace.hpp"

namespace durable_dispatcher_faults {

using namespace durable_test;
using fault = line_to_the_database::fault;

TEST_CASE("a turn that failed is repeated after at least 100 ms; nothing is lost and nothing runs twice") {
  for (const auto how : {fault::before, fault::after}) {
    for (int turns = 1; turns != 6; ++turns) {
      CAPTURE(turns);
      workplace w;
      diary d(w);
      dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
      REQUIRE(w.settle({&runs}));
      const auto ids = w.submit_many(20, 1s);
      w.line().fail(turns, how);
      w.rest().notify();
      w.pass(30s, {&runs});
      auto ran = d.ids();
      std::ranges::sort(ran);
      CHECK(ran == ids);
      const auto s = runs.stats();
      CHECK(s.failures == static_cast<std::uint64_t>(turns));
      CHECK(s.completed == 20);
      CHECK(s.leases_lost == 0);
      CHECK(s.withdrawn == 0);
      CHECK(s.held == 0);
      CHECK(w.was_told(how == fault::before ? "the line is cut" : "the answer is lost"));
    }
  }
}

TEST_CASE("whichever turn fails, nothing is lost") {
  for (const auto how : {fault::before, fault::after}) {
    for (std::size_t n = 0; n != 12; ++n) {
      CAPTURE(n);
      workplace w;
      diary d(w);
      auto o = w.options();
      o.first_retry = 200ms;
      std::size_t made = 0;
      w.line().on_turn([&](const turn&) {
        if (made++ == n) w.line().fail(1, how);
      });
      for (int i = 0; i != 6; ++i) w.tasks->submit_after(i * 300ms, {.payload = i % 2 == 0 ? "fails" : ""});
      dispatcher runs(
          w.time, *w.tasks,
          [&](const task& t) {
            d.write(t);
            if (t.payload == "fails" && t.attempt == 1) throw std::runtime_error("x");
          },
          o);
      w.pass(30s, {&runs});
      const auto s = runs.stats();
      CHECK(s.completed == 6);
      CHECK(s.retried == 3);
      CHECK(d.size() == 9);
      CHECK(s.leases_lost == 0);
      CHECK(w.ask("SELECT count(*) FROM rondo_task") == "0");
    }
  }
}

TEST_CASE("while the database does not answer, it is tried less and less often, finally every 5 s") {
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  w.line().fail(-1);
  w.rest().notify();
  w.pass(1min, {&runs});
  const auto begin = w.line().count();
  w.pass(1min, {&runs});
  const auto in_a_minute = w.line().count() - begin;
  CHECK(in_a_minute >= 11);  // at most 5 s each
  CHECK(in_a_minute <= 60);  // on average 2.5 s
  w.line().mend();
  w.tasks->submit_after(0s, {});
  w.pass(5100ms, {&runs});
  CHECK(d.size() == 1);
}

TEST_CASE("a locked task is asked for again after at most 4 ms, then less often, but at least every 50 ms") {
  workplace w;
  diary d(w);
  std::vector<duration> asked;
  w.tasks->submit_after(1s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(990ms, {&runs});
  w.line().fail(-1, fault::locked);
  w.line().on_turn([&](const turn& t) {
    if (!t.begun.empty()) asked.push_back(w.time.now().time_since_epoch());
  });
  w.pass(2s, {&runs}, 1ms);
  REQUIRE(asked.size() > 20);
  CHECK(asked[1] - asked[0] <= 5ms);  // a tick more
  CHECK(asked.size() < 120);
  for (std::size_t i = 1; i != asked.size(); ++i) {
    CHECK(asked[i] - asked[i - 1] >= 2ms);
    CHECK(asked[i] - asked[i - 1] <= 51ms);
  }
  CHECK(d.size() == 0);
  w.line().mend();
  w.pass(51ms, {&runs}, 1ms);
  CHECK(d.size() == 1);
}

TEST_CASE("handlers continue while the database fails, and their ends are reported afterwards") {
  workplace w;
  gate begun, may_end;
  w.submit_many(3, 0s);
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      w.options());
  REQUIRE(begun.wait(3));
  w.line().fail(3, fault::after);
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().failures >= 1; }));
  REQUIRE(w.rests());
  w.line().mend();
  w.time.advance(10s);
  REQUIRE(eventually([&] { return runs.stats().completed == 3; }));
  CHECK(runs.stats().leases_lost == 0);
}

TEST_CASE(
    "after the database has failed for longer than the lease, runs in progress keep their tasks if nobody "
    "took them") {
  workplace w;
  gate begun, may_end;
  diary d(w);
  auto o = w.options();
  o.lease = 3s;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait());
  w.line().fail(-1);
  w.rest().notify();
  for (int i = 0; i != 100; ++i) {
    w.time.advance(100ms);
    REQUIRE(w.rests());
  }
  w.line().mend();
  const auto failures = runs.stats().failures;
  CHECK(failures >= 2);
  for (int i = 0; i != 50; ++i) {  // the database is back: the dispatcher first renews, and then claims
    w.time.advance(100ms);
    REQUIRE(w.rests());
  }
  CHECK(runs.stats().failures == failures);
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().completed == 1; }));
  CHECK(d.size() == 1);
  CHECK(runs.stats().leases_lost == 0);
}

TEST_CASE("if the answer to the end of a run is lost, that does not count as a lost lease") {
  workplace w;
  gate begun, may_end;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      w.options());
  REQUIRE(begun.wait());
  w.line().fail(1, fault::after);
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
  REQUIRE(w.rests());
  CHECK(w.ask("SELECT count(*) FROM rondo_task") == "0");  // it was done
  w.pass(5s, {&runs});
  CHECK(runs.stats().completed == 1);
  CHECK(runs.stats().leases_lost == 0);
}

TEST_CASE(
    "a task that was cancelled after the answer to its beginning was lost is gone, and its lane goes on") {
  workplace w;
  diary d(w);
  const auto cancelled = w.tasks->submit_after(1s, {.lane = "lane"});
  const auto next = w.tasks->submit_after(1s, {.lane = "lane"});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  w.line().fail(1, fault::after);
  w.time.advance(1s);
  REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
  REQUIRE(w.rests());
  CHECK_FALSE(w.tasks->cancel(cancelled));  // its run has begun, as far as the database knows
  w.pass(5s, {&runs});
  CHECK(d.ids() == std::vector{next});
  CHECK(runs.stats().withdrawn == 1);
  CHECK(w.ask("SELECT count(*) FROM rondo_task") == "0");
}

TEST_CASE("a claim that failed is repeated, and not only at the next periodic look") {
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  w.tasks->submit_after(0s, {});
  w.line().fail(1);
  w.rest().notify();
  w.pass(1s, {&runs}, 50ms);
  CHECK(d.size() == 1);
}

TEST_CASE("claims whose answer was lost are found again, and run in time") {
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  w.tasks->submit_after(4s, {});
  w.line().fail(1, fault::after);
  w.rest().notify();
  REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
  REQUIRE(w.rests());
  CHECK(w.ask("SELECT state FROM rondo_task") == "1");
  CHECK(runs.stats().held == 0);
  w.pass(1s, {&runs});
  CHECK(runs.stats().held == 1);
  CHECK(runs.stats().claimed == 1);
  w.pass(4s, {&runs});
  REQUIRE(d.size() == 1);
  CHECK(d.entries()[0].at <= workplace::beginning + 4100ms);
}

TEST_CASE("claims that are known are not held twice when they are found again") {
  workplace w;
  diary d(w);
  w.submit_many(10, 3s);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  REQUIRE(runs.stats().held == 10);
  w.line().fail(1, fault::after);
  w.rest().notify();
  REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
  REQUIRE(w.rests());
  w.pass(1s, {&runs});
  CHECK(runs.stats().held == 10);
  CHECK(runs.stats().claimed == 10);
  w.pass(5s, {&runs});
  CHECK(d.size() == 10);
  CHECK(runs.stats().withdrawn == 0);
}

TEST_CASE(
    "if a server lost the beginning of a run in a crash, it is reported again; the task does not run twice") {
  for (const bool ends_meanwhile : {false, true}) {
    workplace w;
    gate begun, may_end;
    const auto id = w.tasks->submit_after(0s, {});
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task&) {
          begun.open();
          may_end.wait();
        },
        w.options());
    REQUIRE(begun.wait());
    REQUIRE(w.rests());
    w.line().fail(1);
    if (ends_meanwhile)
      may_end.open();
    else
      w.rest().notify();
    REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
    REQUIRE(w.rests());
    w.ask("UPDATE rondo_task SET state = 1, attempt = 0");
    w.time.advance(1s);
    REQUIRE(w.rests());
    if (!ends_meanwhile) CHECK(w.tasks->find(id)->attempt == 1);
    may_end.open();
    CHECK(eventually([&] { return runs.stats().completed == 1; }));
    CHECK(runs.stats().fired == 1);
    CHECK(runs.stats().leases_lost == 0);
    CHECK(w.ask("SELECT count(*) FROM rondo_task") == "0");
  }
}

TEST_CASE(
    "if a server lost the beginning of a run in a crash, and refuses to learn of it, the task is given back "
    "when the run ends") {
  for (const bool ends_meanwhile : {false, true})
    for (const char* how : {"done", "fails", "snoozes", "gives up"}) {
      CAPTURE(ends_meanwhile);
      CAPTURE(how);
      workplace w;
      gate begun, may_end;
      w.tasks->submit_after(0s, {.payload = how});
      const auto handler = [&](const task& t) {
        begun.open();
        may_end.wait();
        if (t.payload == "fails") throw std::runtime_error("x");
        if (t.payload == "snoozes") return outcome::snooze(1h);
        return t.payload == "done" ? outcome::done() : outcome::dead("x");
      };
      dispatcher runs(w.time, *w.tasks, handler, w.options());
      REQUIRE(begun.wait());
      REQUIRE(w.rests());
      w.line().fail(1);
      if (ends_meanwhile)
        may_end.open();
      else
        w.rest().notify();
      REQUIRE(eventually([&] { return runs.stats().failures == 1; }));
      REQUIRE(w.rests());
      w.tasks->pause("default");
      w.ask("UPDATE rondo_task SET state = 1, attempt = 0");
      w.time.advance(1s);
      REQUIRE(w.rests());
      may_end.open();
      CHECK(eventually([&] { return runs.stats().leases_lost == 1; }));
      REQUIRE(w.settle({&runs}));
      CHECK(w.ask("SELECT state FROM rondo_task") == "0");
      w.tasks->resume("default");
      w.rest().notify();
      CHECK(eventually([&] { return runs.stats().fired == 2; }));
      REQUIRE(w.settle({&runs}));
      CHECK(runs.stats().leases_lost == 1);
      CHECK(runs.stats().handed_back == 0);
    }
}

TEST_CASE("a dispatcher waits for a database that somebody else has locked") {
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.tasks->submit_after(1s, {});
  w.pass(500ms, {&runs});
  w.rest().notify();
  REQUIRE(w.settle({&runs}));
  REQUIRE(runs.stats().held == 1);
  {
    const auto lock = w.base->connect();
    lock->execute("BEGIN IMMEDIATE");
    w.time.advance(500ms);
    REQUIRE(eventually([&] { return runs.stats().failures >= 1; }));  // this takes 0.2 s of real time
    CHECK(d.size() == 0);
    lock->execute("COMMIT");
  }
  REQUIRE(eventually([&] {
    w.time.advance(100ms);
    return runs.stats().completed == 1;
  }));
  CHECK(w.was_told("locked"));
}

TEST_CASE("if only turns that adopt claims succeed, the database is not tried more often") {
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  w.line().on_turn([&](const turn& t) {
    if (!t.adopt) w.line().fail(1);
  });
  w.rest().notify();
  w.pass(1min, {&runs});
  const auto begin = runs.stats().failures;
  w.pass(1min, {&runs});
  const auto in_a_minute = runs.stats().failures - begin;
  CHECK(in_a_minute >= 11);
  CHECK(in_a_minute <= 60);
}

}  // namespace durable_dispatcher_faults
