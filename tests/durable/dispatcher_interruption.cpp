// Stop tokens of runs in progress.
#include <doctest/doctest.h>

#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

#include "durable/workplace.hpp"

namespace durable_dispatcher_interruption {

using namespace durable_test;

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

}  // namespace durable_dispatcher_interruption
