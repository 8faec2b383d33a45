// Tasks that a dispatcher holds: how long others leave them alone, and what happens when somebody changes them.
#include <doctest/doctest.h>

#include "durable/workplace.hpp"

namespace durable_dispatcher_held_tasks {

using namespace durable_test;

const claim_rules other_rules{.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 10};

std::vector<claim> claims_of(detail::session& s) { return s.take({.claim_up_to = 100}).claimed; }

TEST_CASE("the lease of a claimed task is counted from when it is due") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.lease = 10s;
  o.window = 1min;
  o.threads = 1;
  w.tasks->submit_after(1s, {});  // gets the only thread
  const auto id = w.tasks->submit_after(50s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(eventually([&] { return runs.stats().held == 2; }));
  w.time.advance(1s);
  REQUIRE(begun.wait());
  const auto other = w.watched->plain("other", other_rules);
  w.time.elapse(58s);  // 9 s after it was due: still only the dispatcher that claimed it long ago may have it
  for (const claim& c : claims_of(*other)) CHECK(c.what.id != id);
  w.time.elapse(1001ms);
  const auto claimed = claims_of(*other);
  CHECK(std::ranges::any_of(claimed, [&](const claim& c) { return c.what.id == id; }));
  may_end.open();
}

TEST_CASE("the lease of a run in progress is renewed after each third of its length") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.lease = 9s;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait());
  const auto other = w.watched->plain("other", other_rules);
  for (int i = 0; i != 20; ++i) {
    w.time.advance(3s);
    REQUIRE(w.rests());
    CHECK(claims_of(*other).empty());
  }
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().completed == 1; }));
  CHECK(runs.stats().leases_lost == 0);
  CHECK(runs.stats().run_time.max() >= 58s);
}

TEST_CASE(
    "a dispatcher that lost the lease of a run is refused at its end, and the other dispatcher's run "
    "counts") {
  for (const bool fails : {false, true}) {
    workplace w;
    gate begun, may_end;
    auto o = w.options();
    o.lease = 9s;
    const auto id = w.tasks->submit_after(0s, {});
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task&) {
          begun.open();
          may_end.wait();
          if (fails) throw std::runtime_error("x");
        },
        o);
    REQUIRE(begun.wait());
    w.time.elapse(9001ms);  // the process is halted, and its wheel with it
    const auto other = w.watched->plain("other", other_rules);
    const auto claimed = claims_of(*other);
    REQUIRE(claimed.size() == 1);
    CHECK(claimed[0].what.id == id);
    CHECK(claimed[0].what.attempt == 1);  // the attempt of the run that has lost its lease
    const ticket t{id, claimed[0].what.fence};
    REQUIRE(other->take({.begun = {t}}).begun.size() == 1);
    may_end.open();
    REQUIRE(eventually([&] { return runs.stats().leases_lost == 1; }));
    CHECK(runs.stats().completed == 0);
    CHECK(runs.stats().retried == 0);
    const auto line = "task " + std::to_string(id) + " of queue 'default', attempt 1: its lease ran out";
    CHECK(eventually([&] { return w.was_told(line); }));  // it is counted before it is reported
    CHECK(w.tasks->find(id)->attempt == 2);
    CHECK(other->take({.finished = {t}}).finished == std::vector{t});
  }
}

TEST_CASE("a task whose dispatcher has vanished is run by another dispatcher once its lease has run out") {
  workplace w;
  diary d(w);
  const auto id = w.tasks->submit_after(1s, {});
  {
    const auto vanishing = w.watched->plain("vanishing", other_rules);
    const auto claimed = claims_of(*vanishing);
    REQUIRE(claimed.size() == 1);
    w.time.advance(1s);
    REQUIRE(vanishing->take({.begun = {{id, claimed[0].what.fence}}}).begun.size() == 1);
  }
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(29900ms, {&runs});
  CHECK(d.size() == 0);
  w.pass(3s, {&runs});
  REQUIRE(d.size() == 1);
  CHECK(d.entries()[0].what.attempt == 2);
  CHECK(d.entries()[0].at >= workplace::beginning + 31s);
  CHECK(d.entries()[0].at <= workplace::beginning + 31s + 2500ms);  // half a window later
  CHECK(runs.stats().completed == 1);
}

TEST_CASE("a task whose last attempt lost its lease is dead, and the dispatcher that finds it reports so") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.max_attempts = 1;
  const auto id = w.tasks->submit_after(0s, {});
  {
    const auto vanishing = w.watched->plain("vanishing", other_rules);
    const auto claimed = claims_of(*vanishing);
    REQUIRE(vanishing->take({.begun = {{id, claimed[0].what.fence}}}).begun.size() == 1);
  }
  dispatcher runs(w.time, *w.tasks, d.handler(), o);
  w.pass(40s, {&runs});
  CHECK(d.size() == 0);
  CHECK(runs.stats().dead == 1);
  CHECK(w.was_told("task " + std::to_string(id) + " of queue 'default' is dead, after 1 attempts"));
}

TEST_CASE("a task does not run if its lease ran out before its run had begun") {
  workplace w;
  diary d(w);
  w.tasks->submit_after(0s, {});
  // The process is halted during the transaction, just before its answer arrives.
  std::atomic<bool> once{true};
  w.line().after_turn([&](const turn& t) {
    if (!t.begun.empty() && once.exchange(false)) w.time.elapse(31s);
  });
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(5s, {&runs});
  CHECK(runs.stats().leases_lost == 1);
  CHECK(w.was_told("is not run: its lease ran out before its run began"));
  CHECK(d.size() == 1);  // nobody else had taken it, so it was put back and claimed again
  CHECK(d.entries()[0].what.attempt == 1);
  CHECK(d.entries()[0].at >= workplace::beginning + 31s);
}

TEST_CASE("a held task whose lease ran out still runs if nobody else has taken it") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.max_held = 1;  // so that no claim after the stall takes the task a second time, before it begins
  w.tasks->submit_after(3s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), o);
  REQUIRE(w.settle({&runs}));
  w.time.elapse(1min);
  w.pass(0s, {&runs});
  w.time.advance(0s);
  REQUIRE(w.settle({&runs}));
  CHECK(d.size() == 1);
  CHECK(runs.stats().leases_lost == 0);
}

TEST_CASE(
    "due tasks that no thread takes are given back before their lease runs out, and another dispatcher can "
    "take them") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.threads = 1;
  o.lease = 9s;
  w.submit_many(10, 0s);
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait());
  const auto rest = [&] { return w.rests(); };
  for (int i = 0; i != 100; ++i) {
    w.time.advance(3s);
    REQUIRE(rest());
    CHECK(runs.stats().held <= 9);  // it holds none of them twice
  }
  CHECK(w.ask("SELECT count(*) FROM rondo_task WHERE state = 0") == "9");
  diary d(w);
  dispatcher other(w.time, *w.tasks, d.handler(), w.options());
  for (int i = 0; i != 10; ++i) {
    w.time.advance(1s);
    REQUIRE(rest());
  }
  CHECK(eventually([&] { return other.stats().completed == 9; }));
  may_end.open();
  REQUIRE(eventually([&] {
    w.time.advance(1s);
    return runs.stats().completed + other.stats().completed == 10;
  }));
  CHECK(runs.stats().leases_lost == 0);
  CHECK(other.stats().leases_lost == 0);
}

TEST_CASE("a task that was given back for lack of a thread runs as soon as a thread is free") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.threads = 1;
  o.lease = 9s;
  w.submit_many(2, 0s);
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait());
  for (int i = 0; i != 100 && runs.stats().held != 0;
       ++i) {  // until it gives the task back, between two looks
    w.time.advance(100ms);
    REQUIRE(w.rests());
  }
  REQUIRE(w.ask("SELECT count(*) FROM rondo_task WHERE state = 0") == "1");
  may_end.open();  // no time passes
  CHECK(eventually([&] { return runs.stats().completed == 2; }));
  CHECK(runs.stats().leases_lost == 0);
}

TEST_CASE(
    "a task that another dispatcher has taken before its run began does not run, and counts as a lost "
    "lease") {
  workplace w;
  diary d(w);
  w.tasks->submit_after(3s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  w.line().fail(-1);
  w.pass(34s, {&runs}, 1s);
  const auto other = w.watched->plain("other", other_rules);
  REQUIRE(claims_of(*other).size() == 1);
  w.line().mend();
  w.pass(6s, {&runs}, 1s);
  CHECK(d.size() == 0);
  CHECK(runs.stats().leases_lost == 1);
  CHECK(runs.stats().withdrawn == 0);
  CHECK(w.was_told("is not run: its lease ran out before its run began"));
}

TEST_CASE("tasks that no thread takes within a third of the lease are put back for others") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.threads = 1;
  o.lease = 9s;
  // The first runs are quick, so more runs are begun than there are threads.
  w.submit_many(40, 0s);
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
  REQUIRE(w.rests());
  const auto ahead = runs.stats().running;
  REQUIRE(ahead > 1);
  for (int i = 0; i != 10; ++i) {
    w.time.advance(3s);
    REQUIRE(w.rests());
  }
  CHECK(runs.stats().running == 1);  // fewer and fewer runs are begun ahead
  CHECK(w.ask("SELECT count(*) FROM rondo_task WHERE state = 0") == "19");
  CHECK(runs.stats().leases_lost == 0);
  may_end.open();
  REQUIRE(eventually([&] {
    w.rest().notify();
    return runs.stats().completed == 40;
  }));
  CHECK(runs.stats().fired == 40);
}

TEST_CASE("a dispatcher whose wheel was halted for longer than the lease does not take over its own run") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.lease = 9s;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait());
  REQUIRE(eventually([&] { return w.rest().at_rest().has_value(); }));
  w.time.elapse(9001ms);
  const auto turns = w.line().count();
  w.rest().notify();
  REQUIRE(eventually([&] { return w.line().count() > turns && w.rest().at_rest().has_value(); }));
  CHECK(w.line().turns().back().claim_up_to != 0);
  CHECK(runs.stats().claimed == 1);
  // One renewal in every half lease is enough.
  const std::string lease = w.ask("SELECT lease_until FROM rondo_task");
  w.time.elapse(3s);
  w.rest().notify();
  REQUIRE(eventually([&] { return w.line().count() > turns + 1 && w.rest().at_rest().has_value(); }));
  CHECK(w.line().turns().back().claim_up_to != 0);
  CHECK(w.ask("SELECT lease_until FROM rondo_task") == lease);
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().completed == 1; }));
  CHECK(runs.stats().fired == 1);
  CHECK(runs.stats().leases_lost == 0);
}

TEST_CASE(
    "a run that ends while its dispatcher prepares a claim is not taken over, nor declared dead, by that") {
  for (const int attempts : {1, 10}) {
    CAPTURE(attempts);
    workplace w;
    w.watched->look_every = 50ms;
    gate begun, may_end;
    auto o = w.options();
    o.lease = 9s;
    o.max_attempts = attempts;
    w.tasks->submit_after(0s, {});
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task&) {
          begun.open();
          may_end.wait();
        },
        o);
    REQUIRE(begun.wait());
    REQUIRE(w.rests());
    // The dispatcher has looked for runs that have ended, and not yet decided to claim.
    w.line().on_question([&] {
      may_end.open();
      CHECK(eventually([&] { return runs.stats().running == 0; }));
    });
    w.time.elapse(9001ms);
    w.time.advance(0s);
    REQUIRE(eventually([&] { return runs.stats().running == 0 && w.rests(); }));
    CHECK(eventually([&] { return runs.stats().completed == 1; }));
    CHECK(runs.stats().claimed == 1);
    CHECK(runs.stats().fired == 1);
    CHECK(runs.stats().dead == 0);
    CHECK(runs.stats().leases_lost == 0);
    CHECK(w.errors().empty());
  }
}

TEST_CASE("after the host's clock was set back, a held task still waits for its due time by that clock") {
  workplace w;
  diary d(w);
  const auto id = w.tasks->submit_after(3s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  REQUIRE(runs.stats().held == 1);
  w.step_clock(-1h);
  w.pass(3599s, {&runs}, 1s);
  CHECK(d.size() == 0);
  CHECK(w.tasks->find(id)->attempt == 0);
  w.pass(10s, {&runs}, 100ms);
  REQUIRE(d.size() == 1);
  CHECK(d.entries()[0].at >= workplace::beginning + 3s);
  CHECK(d.entries()[0].at <= workplace::beginning + 3s + 101ms);
  CHECK(d.entries()[0].what.attempt == 1);
  CHECK(runs.stats().completed == 1);
  CHECK(runs.stats().leases_lost == 0);
  CHECK(runs.stats().withdrawn == 0);
  CHECK(w.errors().empty());
}

TEST_CASE("a task that turns out to be early during a claim is claimed again at once") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.threads = 1;  // so that the second one should begin in the turn that gives back the first one, and claims
  w.submit_many(2, 3s);
  dispatcher runs(w.time, *w.tasks, d.handler(), o);
  REQUIRE(w.settle({&runs}));
  REQUIRE(runs.stats().held == 2);
  w.step_clock(-20ms);
  w.pass(3500ms, {&runs}, 5ms);
  REQUIRE(d.size() == 2);
  for (const auto& e : d.entries()) CHECK(e.at < workplace::beginning + 3s + 10ms);
}

TEST_CASE(
    "after the host's clock was set forward, a dispatcher takes over, or declares dead, nothing that it "
    "runs") {
  for (const int attempts : {1, 10}) {
    for (const bool cancelled : {false, true}) {
      CAPTURE(attempts);
      CAPTURE(cancelled);
      workplace w;
      gate begun, may_end;
      auto o = w.options();
      o.max_attempts = attempts;
      const auto id = w.tasks->submit_after(0s, {});
      dispatcher runs(
          w.time, *w.tasks,
          [&](const task&) {
            begun.open();
            may_end.wait();
          },
          o);
      REQUIRE(begun.wait());
      REQUIRE(w.rests());
      if (cancelled) CHECK_FALSE(w.tasks->cancel(id));
      w.step_clock(1h);
      const auto turns = w.line().count();
      w.rest().notify();
      REQUIRE(eventually([&] { return w.line().count() > turns && w.rest().at_rest().has_value(); }));
      CHECK(runs.stats().claimed == 1);
      may_end.open();
      CHECK(eventually([&] { return runs.stats().running == 0 && w.rest().at_rest().has_value(); }));
      CHECK(runs.stats().completed == 1);
      CHECK(runs.stats().fired == 1);
      CHECK(runs.stats().dead == 0);
      CHECK(runs.stats().leases_lost == 0);
      CHECK(w.errors().empty());
    }
  }
}

// Tasks that are cancelled, moved or replaced while a dispatcher holds or runs them.

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

}  // namespace durable_dispatcher_held_tasks
