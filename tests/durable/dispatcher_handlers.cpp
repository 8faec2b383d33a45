// What handlers may take and return, how a dispatcher hears of tasks that are given up, and stop tokens of runs.
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

namespace durable_dispatcher_handlers {

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
  refused({});
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

TEST_CASE(
    "on_dead is not told of a task whose last lease ran out if the answer to that claim is lost; list() has "
    "it") {
  workplace w;
  obituaries told;
  const auto id = w.tasks->submit_after(0s, {.max_attempts = 1});
  const auto gone = w.watched->plain("gone", {{"default"}, 5s, 30s, 10});
  const auto claimed = gone->take({.claim_up_to = 1}).claimed;
  REQUIRE(claimed.size() == 1);
  gone->take({.begun = {{claimed[0].what.id, claimed[0].what.fence}}});
  w.pass(31s, {});
  bool is_first = true;
  w.line().after_turn([&](const turn&) {
    if (w.ask("SELECT state FROM rondo_task") == "3" && std::exchange(is_first, false))
      throw store_error("the answer is lost", true);
  });
  auto o = w.options();
  o.on_dead = told.writer();
  dispatcher runs(
      w.time, *w.tasks, [](const task&) {}, o);
  w.pass(10s, {&runs});
  CHECK(runs.stats().failures == 1);
  CHECK(told.entries().empty());
  CHECK(runs.stats().dead == 0);
  const auto dead = w.tasks->list("default", task_state::dead);
  REQUIRE(dead.size() == 1);
  CHECK(dead[0].id == id);
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

// Stop tokens of runs in progress.

/// Waits until the token is requested. False if that took too long.
bool waits_for(const std::stop_token& token) {
  return eventually([&] { return token.stop_requested(); });
}

TEST_CASE("a run is interrupted when its task is cancelled or replaced, and others are not") {
  enum class how { by_id, by_key, replaced };
  for (const how h : {how::by_id, how::by_key, how::replaced}) {
    workplace w;
    std::atomic<int> running{0}, interrupted{0};
    gate others;
    const auto id = w.tasks->submit_after(0s, {.payload = "stop", .key = "k"});
    w.tasks->submit_after(0s, {.payload = "go on"});
    dispatcher runs(
        w.time, *w.tasks,
        [&](const task& t, std::stop_token token) {
          ++running;
          if (t.payload == "stop") {
            interrupted += waits_for(token) ? 1 : 0;
          } else {
            others.wait();
            CHECK_FALSE(token.stop_requested());
          }
        },
        w.options());
    REQUIRE(eventually([&] { return running == 2; }));
    if (h == how::by_id) CHECK_FALSE(w.tasks->cancel(id));
    if (h == how::by_key) CHECK_FALSE(w.tasks->cancel("default", "k"));
    if (h == how::replaced) w.tasks->submit_after(1h, {.key = "k", .replace = true});
    w.rest().notify();  // as the database does
    CHECK(eventually([&] { return interrupted == 1; }));
    others.open();
    w.pass(100ms, {&runs});
    CHECK(runs.stats().completed == 2);
    CHECK_FALSE(w.tasks->find(id));
  }
}

TEST_CASE("a run that was cancelled before a thread was free for it finds its token requested") {
  workplace w;
  auto o = w.options();
  o.threads = 1;
  gate first;
  std::atomic<int> seen{0};
  w.tasks->submit_after(0s, {.payload = "first"});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t, std::stop_token token) {
        if (t.payload == "first")
          first.wait();
        else
          seen += token.stop_requested() ? 1 : 10;
      },
      o);
  REQUIRE(eventually([&] { return runs.stats().running == 1; }));
  const auto id = w.tasks->submit_after(0s, {.payload = "second"});
  w.rest().notify();
  REQUIRE(w.rests());
  if (w.ask("SELECT state FROM rondo_task WHERE id = " + std::to_string(id)) == "2") {
    CHECK_FALSE(w.tasks->cancel(id));
    w.rest().notify();
    REQUIRE(w.rests());
    first.open();
    CHECK(eventually([&] { return seen == 1; }));
  }
  first.open();
}

TEST_CASE("a busy dispatcher that does not wait for news asks every half second") {
  workplace w;
  gate other;
  std::atomic<int> running{0}, interrupted{0};
  const auto id = w.tasks->submit_after(0s, {.payload = "stop"});
  w.tasks->submit_after(0s, {.payload = "other"});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t, std::stop_token token) {
        ++running;
        if (t.payload == "other")
          other.wait();
        else
          interrupted += waits_for(token) ? 1 : 0;
      },
      w.options());
  REQUIRE(eventually([&] { return running == 2; }));
  REQUIRE(w.rests());
  w.tasks->cancel(id);
  w.time.advance(500ms);
  REQUIRE(w.rests());
  CHECK(interrupted == 0);
  other.open();  // and so there is a turn
  CHECK(eventually([&] { return interrupted == 1; }));
}

TEST_CASE("stop() interrupts the runs in progress at once, and waits for them") {
  workplace w;
  std::atomic<int> running{0}, interrupted{0};
  for (int i = 0; i != 3; ++i) w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&, std::stop_token token) {
        ++running;
        interrupted += waits_for(token) ? 1 : 0;
        return outcome::snooze(1h);
      },
      w.options());
  REQUIRE(eventually([&] { return running == 3; }));
  runs.stop();
  CHECK(interrupted == 3);
  CHECK(runs.stats().snoozed == 3);
  CHECK(w.ask("SELECT count(*) FROM rondo_task WHERE state = 0 AND attempt = 0") == "3");
}

TEST_CASE("a stop callback may use the dispatcher's statistics and the store") {
  workplace w;
  std::atomic<bool> running{false};
  std::atomic<int> called{0};
  const auto id = w.tasks->submit_after(0s, {});
  dispatcher* self = nullptr;
  gate known;
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&, std::stop_token token) {
        known.wait();
        const std::stop_callback tell(token, [&] {
          if (self->stats().running == 1 && w.tasks->find(id)) ++called;
        });
        running = true;
        static_cast<void>(waits_for(token));
      },
      w.options());
  self = &runs;
  known.open();
  REQUIRE(eventually([&] { return running.load(); }));
  w.tasks->cancel(id);
  w.rest().notify();
  CHECK(eventually([&] { return called == 1; }));
}

TEST_CASE("moving other tasks and renewing the lease interrupt nothing") {
  workplace w;
  auto o = w.options();
  o.lease = 3s;
  gate end;
  std::atomic<bool> running{false}, requested{false};
  const auto id = w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&, std::stop_token token) {
        running = true;
        end.wait();
        requested = token.stop_requested();
      },
      o);
  REQUIRE(eventually([&] { return running.load(); }));
  CHECK_FALSE(w.tasks->reschedule_after(id, 1h));
  for (int i = 0; i != 10; ++i) {
    w.time.advance(1s);
    w.rest().notify();
    REQUIRE(w.rests());
  }
  end.open();
  w.pass(100ms, {&runs});
  CHECK_FALSE(requested);
  CHECK(runs.stats().completed == 1);
}

TEST_CASE("a handler without a token costs no question about cancelled runs") {
  for (const bool takes_token : {false, true}) {
    workplace w;
    gate end;
    std::atomic<bool> running{false};
    w.tasks->submit_after(0s, {});
    const auto run = [&] {
      running = true;
      end.wait();
    };
    const auto plain = [&](const task&) { run(); };
    const auto stoppable = [&](const task&, std::stop_token) { run(); };
    dispatcher runs(w.time, *w.tasks, takes_token ? task_handler(stoppable) : task_handler(plain),
                    w.options());
    REQUIRE(eventually([&] { return running.load(); }));
    w.rest().notify();
    REQUIRE(w.rests());
    bool asked = false;
    for (const auto& t : w.line().turns()) asked = asked || !t.watched.empty();
    CHECK(asked == takes_token);
    end.open();
  }
}

}  // namespace durable_dispatcher_handlers
