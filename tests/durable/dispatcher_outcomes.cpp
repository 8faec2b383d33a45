// What handlers may take and return, and how a dispatcher hears of tasks that are given up.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "durable/workplace.hpp"

namespace durable_dispatcher_outcomes {

using namespace durable_test;

/// What on_dead was told.
struct obituaries {
  struct entry {
    task what;
    std::string reason;
  };
  mutable std::mutex mutex;
  std::vector<entry> all;

  auto writer() {
    return [this](const task& t, const std::string& reason) {
      const std::lock_guard hold(mutex);
      all.push_back({t, reason});
    };
  }
  std::vector<entry> entries() const {
    const std::lock_guard hold(mutex);
    return all;
  }
};

TEST_CASE("a handler that returns done() is done, as one that returns nothing, or anything else") {
  for (const task_handler& handler :
       {task_handler([](const task&) { return outcome::done(); }), task_handler([](const task&) {}),
        task_handler([](const task&) { return 7; }), task_handler([](auto&&...) {})}) {
    workplace w;
    w.tasks->submit_after(0s, {});
    dispatcher runs(w.time, *w.tasks, handler, w.options());
    w.pass(1s, {&runs});
    CHECK(runs.stats().completed == 1);
    CHECK(w.ask("SELECT count(*) FROM rondo_task") == "0");
  }
}

void plain_function(const task&) {}

TEST_CASE("an empty handler is refused, in whatever form it comes") {
  workplace w;
  const auto refused = [&](task_handler h) {
    CHECK_THROWS_WITH_AS(dispatcher(w.time, *w.tasks, std::move(h), w.options()),
                         "rondo: a dispatcher needs a handler", std::invalid_argument);
  };
  refused(nullptr);
  refused(std::function<void(const task&)>());
  refused(std::function<outcome(const task&, std::stop_token)>());
  refused(static_cast<void (*)(const task&)>(nullptr));
  CHECK(task_handler(plain_function));
  CHECK(task_handler(&plain_function));
  CHECK(task_handler(std::function<void(const task&)>(plain_function)));
}

TEST_CASE("a handler gets a stop token if it takes one, also if it need not") {
  CHECK_FALSE(task_handler([](const task&) {}).is_stoppable());
  CHECK(task_handler([](const task&, std::stop_token) {}).is_stoppable());
  CHECK(task_handler([](const task&, const std::stop_token&) { return outcome::done(); }).is_stoppable());
  CHECK(task_handler([](const auto&...) {}).is_stoppable());
}

TEST_CASE("a snoozed task runs again after that time, as often as it likes, without an attempt") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.max_attempts = 1;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        return d.size() < 4 ? outcome::snooze(1s) : outcome::done();
      },
      o);
  w.pass(4s, {&runs}, 1ms);  // a longer step may end before the end of a run is reported
  const auto e = d.entries();
  REQUIRE(e.size() == 4);
  for (std::size_t n = 0; n != 4; ++n) {
    CHECK(e[n].what.attempt == 1);
    if (n == 0) continue;
    CHECK(e[n].what.due >= e[n - 1].at + 1s);
    CHECK(e[n].what.due <= e[n - 1].at + 1s + 10us);
    CHECK(e[n].at >= e[n].what.due);
    CHECK(e[n].at <= e[n].what.due + 200ms);
  }
  const auto s = runs.stats();
  CHECK(s.snoozed == 3);
  CHECK(s.retried == 0);
  CHECK(s.completed == 1);
  CHECK(w.errors().empty());
}

TEST_CASE(
    "a snooze of zero or less is due at once; NaN is refused in the handler, whose run has then failed") {
  for (const duration d : {0s, -5s}) {
    workplace w;
    std::atomic<int> runs{0};
    w.tasks->submit_after(0s, {});
    dispatcher all(
        w.time, *w.tasks, [&](const task&) { return ++runs == 1 ? outcome::snooze(d) : outcome::done(); },
        w.options());
    w.pass(1s, {&all});
    CHECK(runs == 2);
  }
  CHECK_THROWS_AS(outcome::snooze(std::chrono::duration<double>(std::nan(""))), std::invalid_argument);
}

TEST_CASE("a task that its handler gives up is dead at once, with the reason, and on_dead is told") {
  workplace w;
  obituaries told;
  auto o = w.options();
  o.on_dead = told.writer();
  const auto id = w.tasks->submit_after(0s, {.payload = "p", .key = "k"});
  dispatcher runs(
      w.time, *w.tasks, [](const task&) { return outcome::dead(std::string("no such \xff cust\0omer", 19)); },
      o);
  w.pass(1s, {&runs});
  const auto dead = w.tasks->list("default", task_state::dead);
  REQUIRE(dead.size() == 1);
  CHECK(dead[0].reason == "no such \\xff cust\\x00omer");
  CHECK(dead[0].attempt == 1);
  CHECK(runs.stats().dead == 1);
  CHECK(runs.stats().retried == 0);
  const auto e = told.entries();
  REQUIRE(e.size() == 1);
  CHECK(e[0].what.id == id);
  CHECK(e[0].what.payload == "p");
  CHECK(e[0].what.key == "k");
  CHECK(e[0].reason == "no such \\xff cust\\x00omer");
}

TEST_CASE(
    "a task that was cancelled during a run that snoozes it or gives it up is gone, and nobody is told") {
  for (const bool snoozes : {false, true}) {
    workplace w;
    obituaries told;
    auto o = w.options();
    o.on_dead = told.writer();
    const auto id = w.tasks->submit_after(0s, {});
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task&) {
          w.tasks->cancel(id);
          return snoozes ? outcome::snooze(1s) : outcome::dead("");
        },
        o);
    w.pass(5s, {&runs});
    CHECK(w.ask("SELECT count(*) FROM rondo_task") == "0");
    CHECK(runs.stats().withdrawn == 1);
    CHECK(told.entries().empty());
  }
}

TEST_CASE("on_dead is told after the last attempt, and not before") {
  workplace w;
  obituaries told;
  auto o = w.options();
  o.on_dead = told.writer();
  o.first_retry = 100ms;
  w.tasks->submit_after(0s, {.payload = "own", .max_attempts = 2});
  w.tasks->submit_after(0s, {.payload = "dispatcher's"});
  o.max_attempts = 4;
  dispatcher runs(
      w.time, *w.tasks, [](const task&) { throw std::runtime_error("never works"); }, o);
  w.pass(10s, {&runs});
  auto e = told.entries();
  REQUIRE(e.size() == 2);
  if (e[0].what.payload != "own") std::swap(e[0], e[1]);
  CHECK(e[0].what.attempt == 2);
  CHECK(e[1].what.payload == "dispatcher's");
  CHECK(e[1].what.attempt == 4);
  CHECK(e[1].reason == "never works");
  CHECK(runs.stats().retried == 4);
}

TEST_CASE("on_dead is told of a task whose last lease ran out, by the dispatcher that finds it") {
  workplace w;
  obituaries told;
  w.tasks->submit_after(0s, {.payload = "p", .max_attempts = 1});
  const auto gone = w.watched->plain("gone", {{"default"}, 5s, 30s, 10});
  const auto claimed = gone->take({.claim_up_to = 1}).claimed;
  REQUIRE(claimed.size() == 1);
  gone->take({.begun = {{claimed[0].what.id, claimed[0].what.fence}}});
  auto o = w.options();
  o.on_dead = told.writer();
  dispatcher runs(
      w.time, *w.tasks, [](const task&) {}, o);
  w.pass(31s, {&runs});
  w.rest().notify();
  w.pass(1s, {&runs});
  const auto e = told.entries();
  REQUIRE(e.size() == 1);
  CHECK(e[0].reason == "lease ran out");
  CHECK(e[0].what.payload.empty());
}

/// A dispatcher whose task is dead, and whose turn that says so gets no answer.
struct unanswered_death {
  using fault = line_to_the_database::fault;

  workplace w;
  obituaries told;
  std::optional<dispatcher> runs;

  unanswered_death(fault how, const task_handler& handler, int max_attempts = 10) {
    w.line().on_turn([this, how](const turn& t) {
      if (!t.failed.empty()) w.line().fail(-1, how);
    });
    w.tasks->submit_after(0s, {.payload = "p", .max_attempts = max_attempts});
    runs.emplace(w.time, *w.tasks, handler, options());
    w.pass(1s, {&*runs});
    CHECK(told.entries().empty());
    CHECK(runs->stats().failures >= 1);
  }
  dispatcher_options options() {
    auto o = w.options();
    o.on_dead = told.writer();
    return o;
  }
  /// Another session claims what it can when the lease has run out.
  detail::turn_result claim_elsewhere(detail::session& by) {
    w.pass(31s, {&*runs});
    detail::turn_result done = by.take({.claim_up_to = 1});
    // (PostgreSQL's first claim looks only for tasks that wait.)
    while (done.may_have_more && done.claimed.empty() && done.expired.empty())
      done = by.take({.claim_up_to = 1});
    return done;
  }
  void mend() {
    w.line().on_turn({});
    w.line().mend();
    w.pass(6s, {&*runs});
  }
};

const auto fails = [](const task&) { throw std::runtime_error("why"); };
const auto gives_up = [](const task&) { return outcome::dead("why"); };

TEST_CASE(
    "on_dead is told once if the answer of the database was lost, whether or not it has done what was "
    "asked") {
  for (const auto how : {unanswered_death::fault::after, unanswered_death::fault::lost})
    for (const task_handler& handler : {task_handler(fails), task_handler(gives_up)}) {
      unanswered_death x(how, handler, 1);
      x.mend();
      REQUIRE(x.told.entries().size() == 1);
      CHECK(x.told.entries()[0].reason == "why");
      CHECK(x.told.entries()[0].what.payload == "p");
      CHECK(x.runs->stats().dead == 1);
      CHECK(x.w.ask("SELECT reason FROM rondo_task WHERE state = 3") == "why");
    }
}

TEST_CASE("on_dead is not told again of what another dispatcher has found dead, as its lease ran out") {
  unanswered_death x(unanswered_death::fault::lost, fails, 1);
  const auto other = x.w.watched->plain("other", {{"default"}, 5s, 30s, 10});
  CHECK(x.claim_elsewhere(*other).expired.size() == 1);  // so the other one tells
  x.mend();
  CHECK(x.told.entries().empty());
  CHECK(x.runs->stats().dead == 0);
  CHECK(x.runs->stats().leases_lost == 1);
  CHECK(x.w.ask("SELECT reason FROM rondo_task WHERE state = 3") == "lease ran out");
}

TEST_CASE("on_dead is not told of a task that another dispatcher has run instead, or that was cancelled") {
  for (const bool is_cancelled : {false, true}) {
    unanswered_death x(unanswered_death::fault::lost, gives_up);
    const auto other = x.w.watched->plain("other", {{"default"}, 5s, 30s, 10});
    if (is_cancelled) x.w.tasks->cancel(std::stoll(x.w.ask("SELECT id FROM rondo_task")));
    const auto claimed = x.claim_elsewhere(*other).claimed;
    CHECK(claimed.size() == (is_cancelled ? 0 : 1));
    for (const auto& c : claimed) {
      const detail::ticket t{c.what.id, c.what.fence};
      CHECK(other->take({.begun = {t}}).begun.size() == 1);
      CHECK(other->take({.finished = {t}}).finished.size() == 1);
    }
    x.mend();
    CHECK(x.told.entries().empty());
    CHECK(x.runs->stats().dead == 0);
    CHECK(x.runs->stats().leases_lost == 1);
    CHECK(x.w.ask("SELECT count(*) FROM rondo_task") == "0");
  }
}

TEST_CASE("what on_dead throws goes to on_error, and the dispatcher goes on; it cannot stop it") {
  workplace w;
  auto o = w.options();
  dispatcher* self = nullptr;
  o.on_dead = [&](const task&, const std::string&) { self->stop(); };
  w.tasks->submit_after(1s, {});
  w.tasks->submit_after(2s, {});
  dispatcher runs(
      w.time, *w.tasks, [](const task&) { return outcome::dead("x"); }, o);
  self = &runs;
  w.pass(5s, {&runs});
  CHECK(runs.stats().dead == 2);
  CHECK(w.was_told(
      "on_dead threw for task 1 of queue 'default': rondo: a dispatcher cannot be stopped from inside"));
}

}  // namespace durable_dispatcher_outcomes
