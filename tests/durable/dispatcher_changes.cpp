// Tasks that are cancelled, moved or replaced while a dispatcher holds or runs them.
#include <doctest/doctest.h>

#include "durable/workplace.hpp"

namespace durable_dispatcher_changes {

using namespace durable_test;

std::string rows_in(const workplace& w) { return w.ask("SELECT count(*) FROM rondo_task"); }

TEST_CASE("a held task that is cancelled does not run") {
  workplace w;
  diary d(w);
  const auto id = w.tasks->submit_after(3s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  REQUIRE(runs.stats().held == 1);
  CHECK(w.tasks->cancel(id));
  w.pass(10s, {&runs});
  CHECK(d.size() == 0);
  CHECK(runs.stats().withdrawn == 1);
  CHECK(runs.stats().held == 0);
  CHECK(runs.stats().leases_lost == 0);
}

TEST_CASE("a held task that is moved runs at its new time, and only then") {
  for (const duration to : {1s, 4s, 30s}) {
    CAPTURE(to.count());
    workplace w;
    diary d(w);
    const auto id = w.tasks->submit_after(3s, {});
    dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
    REQUIRE(w.settle({&runs}));
    REQUIRE(runs.stats().held == 1);
    CHECK(w.tasks->reschedule_after(id, to));
    w.rest().notify();
    w.pass(40s, {&runs});
    REQUIRE(d.size() == 1);
    CHECK(d.entries()[0].at >= workplace::beginning + to);
    CHECK(d.entries()[0].at <= workplace::beginning + to + 101ms);
    CHECK(runs.stats().withdrawn == 1);
    CHECK(runs.stats().completed == 1);
  }
}

TEST_CASE("a held task that is replaced does not run, but the new one does") {
  workplace w;
  diary d(w);
  w.tasks->submit_after(3s, {.payload = "old", .key = "k"});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  CHECK_THROWS_AS(w.tasks->submit_after(2s, {.payload = "new", .key = "k"}), key_taken);
  w.tasks->submit_after(4s, {.payload = "new", .key = "k", .replace = true});
  w.pass(10s, {&runs});
  REQUIRE(d.size() == 1);
  CHECK(d.entries()[0].what.payload == "new");
  CHECK(runs.stats().withdrawn == 1);
}

TEST_CASE("a run in progress is not cancelled, but is the last even if it fails") {
  for (const int attempts_if_it_fails : {0, 1, 10}) {
    const bool fails = attempts_if_it_fails != 0;
    workplace w;
    auto o = w.options();
    if (fails) o.max_attempts = attempts_if_it_fails;
    gate begun, may_end;
    const auto id = w.tasks->submit_after(0s, {.key = "k"});
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task&) {
          begun.open();
          may_end.wait();
          if (fails) throw std::runtime_error("x");
        },
        o);
    REQUIRE(begun.wait());
    CHECK_FALSE(w.tasks->cancel(id));
    CHECK_FALSE(w.tasks->reschedule_after(id, 1s));
    may_end.open();
    w.pass(10s, {&runs});
    const auto s = runs.stats();
    CHECK(s.fired == 1);
    CHECK(s.leases_lost == 0);
    CHECK(s.completed == (fails ? 0 : 1));
    CHECK(s.withdrawn == (fails ? 1 : 0));
    CHECK(s.retried == 0);
    CHECK(s.dead == 0);
    CHECK_FALSE(w.was_told("is dead"));
    CHECK(rows_in(w) == "0");
  }
}

TEST_CASE("a task whose key belongs to a run in progress is replaced, and both run") {
  workplace w;
  diary d(w);
  gate begun, may_end;
  w.tasks->submit_after(0s, {.payload = "old", .key = "k"});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        if (t.payload != "old") return;
        begun.open();
        may_end.wait();
      },
      w.options());
  REQUIRE(begun.wait());
  w.tasks->submit_after(0s, {.payload = "new", .key = "k", .replace = true});
  w.rest().notify();
  REQUIRE(eventually([&] { return runs.stats().completed == 1; }));
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().completed == 2; }));
  CHECK(d.size() == 2);
  CHECK(rows_in(w) == "0");
}

TEST_CASE("a handler submits to, finds in and cancels in its own store") {
  workplace w;
  diary d(w);
  const auto victim = w.tasks->submit_after(8s, {.key = "victim"});
  w.tasks->submit_after(1s, {.payload = "3"});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        CHECK(w.tasks->find(t.id)->attempt == 1);
        const int left = std::stoi(t.payload);
        if (left != 0) w.tasks->submit_after(1s, {.payload = std::to_string(left - 1)});
        if (left == 1) CHECK(w.tasks->cancel("default", "victim"));
      },
      w.options());
  w.pass(30s, {&runs});
  CHECK(d.size() == 4);
  CHECK(w.tasks->find(victim) == std::nullopt);
  CHECK(rows_in(w) == "0");
}

TEST_CASE("the store may be destroyed before the dispatcher") {
  workplace w;
  diary d(w);
  w.tasks->submit_after(3s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.tasks.reset();
  w.pass(4s, {&runs});
  CHECK(d.size() == 1);
  CHECK(runs.stats().completed == 1);
}

}  // namespace durable_dispatcher_changes
