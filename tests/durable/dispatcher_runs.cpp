// When, in which order, how many at a time, on which threads, and with what the handler is called.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

#include "durable/dispatcher/begun_runs.hpp"
#include "durable/dispatcher/inbox.hpp"
#include "durable/workplace.hpp"

namespace durable_dispatcher_runs {

using namespace durable_test;

TEST_CASE("a task runs within a tick of its due time, and never before") {
  workplace w;
  diary d(w);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  const auto soon = w.tasks->submit_after(1234567us, {.payload = "a"});
  const auto later = w.tasks->submit_after(20s, {.payload = "b"});
  const auto at = w.tasks->submit_at(workplace::beginning + 7s, {.payload = "c"});
  w.rest().notify();
  w.pass(21s, {&runs}, 1ms);
  const auto e = d.entries();
  REQUIRE(d.ids() == std::vector{soon, at, later});
  for (const diary::entry& each : e) {
    CHECK(each.at >= each.what.due);
    CHECK(each.at - each.what.due < 1ms + 1us);  // the scheduler's tick, and the database's
  }
  CHECK(e[1].what.due == workplace::beginning + 7s);
  const dispatcher_statistics s = runs.stats();
  CHECK(s.lateness.count() == 3);
  CHECK(s.lateness.max() <= 1100us);
  CHECK(s.completed == 3);
  CHECK(w.tasks->find(soon) == std::nullopt);
}

TEST_CASE("a task that is already due runs at once, and its lateness counts from its due time") {
  workplace w;
  diary d(w);
  w.tasks->submit_at(workplace::beginning - 90s, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  REQUIRE(d.size() == 1);
  CHECK(runs.stats().lateness.min() >= 88s);
  CHECK(runs.stats().lateness.max() <= 92s);
}

TEST_CASE("the handler sees the task as it was submitted, its attempt, and a fence") {
  workplace w;
  diary d(w);
  const std::string bytes("\0\x80 payload", 10);
  const auto id = w.tasks->submit_after(3s, {.payload = bytes, .key = "order 7"});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(4s, {&runs});
  REQUIRE(d.size() == 1);
  const task t = d.entries()[0].what;
  CHECK(t.id == id);
  CHECK(t.queue == "default");
  CHECK(t.key == "order 7");
  CHECK(t.payload == bytes);
  CHECK(t.due == workplace::beginning + 3s);
  CHECK(t.attempt == 1);
  CHECK(t.fence > 0);
}

TEST_CASE("due tasks begin in the order of their times, whenever they were submitted") {
  workplace w;
  diary d(w);
  std::multimap<int, std::int64_t> wanted;
  for (const int s : {9, 3, 7, 1, 8, 2, 6, 4, 5}) wanted.emplace(s, w.tasks->submit_after(s * 1s, {}));
  auto o = w.options();
  o.threads = 1;
  dispatcher runs(w.time, *w.tasks, d.handler(), o);
  w.pass(10s, {&runs});
  std::vector<std::int64_t> in_order;
  for (const auto& [s, id] : wanted) in_order.push_back(id);
  CHECK(d.ids() == in_order);
}

TEST_CASE("only tasks due within the window are claimed") {
  workplace w;
  diary d(w);
  w.tasks->submit_after(4s, {});
  w.tasks->submit_after(6s, {});
  w.tasks->submit_after(1h, {});
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(w.settle({&runs}));
  CHECK(runs.stats().claimed == 1);
  CHECK(runs.stats().held == 1);
  w.pass(2500ms, {&runs});
  CHECK(runs.stats().claimed == 2);
  w.pass(1min, {&runs}, 500ms);
  CHECK(runs.stats().claimed == 2);
  CHECK(d.size() == 2);
}

TEST_CASE("with a window of an hour, the database is still checked every 2.5 s") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.window = 1h;
  dispatcher runs(w.time, *w.tasks, d.handler(), o);
  REQUIRE(w.settle({&runs}));
  w.tasks->submit_after(0s, {});  // as if from another process, without a notification
  w.pass(2400ms, {&runs});
  CHECK(d.size() == 0);
  w.pass(100ms, {&runs});
  CHECK(d.size() == 1);
}

TEST_CASE(
    "without notifications, a dispatcher claims when somebody else has changed the database, or half a "
    "window has passed") {
  workplace w;
  diary d(w);
  w.watched->look_every = 50ms;
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  w.pass(1s, {&runs}, 50ms);
  const auto before = runs.stats().turns;
  w.pass(1s, {&runs}, 50ms);
  CHECK(runs.stats().turns == before);  // checked, but nothing was there
  w.tasks->submit_after(0s, {});
  w.pass(50ms, {&runs}, 50ms);
  CHECK(d.size() == 1);
  const auto quiet = runs.stats().turns;
  w.pass(10s, {&runs}, 50ms);
  CHECK(runs.stats().turns - quiet >= 3);
  CHECK(runs.stats().turns - quiet <= 5);
}

TEST_CASE("a dispatcher that checks the file interrupts a run as soon as it sees the change") {
  workplace w;
  w.watched->look_every = 50ms;
  std::atomic<bool> running{false}, interrupted{false};
  const auto id = w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&, const std::stop_token& token) {
        running = true;
        interrupted = eventually([&] { return token.stop_requested(); });
      },
      w.options());
  REQUIRE(eventually([&] { return running.load(); }));
  w.tasks->cancel(id);
  w.time.advance(50ms);
  CHECK(eventually([&] { return interrupted.load(); }));
}

TEST_CASE("payloads of at most max_held_bytes and one more are held; as they end, others follow") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.threads = 1;
  o.max_held_bytes = 10'000;
  for (int i = 0; i != 20; ++i) w.tasks->submit_after(0s, {.payload = std::string(4000, 'x')});
  w.tasks->submit_after(0s, {.payload = std::string(50'000, 'x')});  // larger than the limit
  std::atomic<std::size_t> most{0};
  std::optional<dispatcher> runs;
  runs.emplace(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
        const auto s = runs->stats();
        most = std::max<std::size_t>(most, s.held + s.running);
      },
      o);
  REQUIRE(begun.wait());
  REQUIRE(w.rests());
  CHECK(runs->stats().held + runs->stats().running == 3);  // of 4,000 bytes each
  may_end.open();
  REQUIRE(eventually([&] { return runs->stats().completed == 21; }));
  CHECK(most <= 3);
  runs.reset();
}

std::vector<std::size_t> claims_asked_for(workplace& w) {
  std::vector<std::size_t> asked;
  for (const turn& t : w.line().turns())
    if (t.claim_up_to != 0) asked.push_back(t.claim_up_to);
  return asked;
}

TEST_CASE("each claim that fails halves the next, and each that succeeds doubles it again") {
  workplace w;
  auto o = w.options();
  o.max_held = 64;
  int failing = 3;
  w.line().on_turn([&](const turn& t) {
    if (t.claim_up_to != 0 && failing-- > 0) w.line().fail(1);
  });
  dispatcher runs(
      w.time, *w.tasks, [](const task&) {}, o);
  w.pass(30s, {&runs});
  const auto asked = claims_asked_for(w);
  REQUIRE(asked.size() >= 8);
  CHECK(std::vector(asked.begin(), asked.begin() + 8) ==
        std::vector<std::size_t>{64, 32, 16, 8, 16, 32, 64, 64});
}

TEST_CASE("turns that fail without a claim do not make the next claim smaller") {
  workplace w;
  auto o = w.options();
  o.max_held = 64;
  w.line().fail(5);  // a claim, then turns that would adopt claims
  dispatcher runs(
      w.time, *w.tasks, [](const task&) {}, o);
  w.pass(30s, {&runs});
  CHECK(runs.stats().failures == 5);
  const auto asked = claims_asked_for(w);
  REQUIRE(asked.size() >= 3);
  CHECK(std::vector(asked.begin(), asked.begin() + 3) == std::vector<std::size_t>{64, 32, 64});
}

TEST_CASE(
    "after a claim of tasks that are not yet due, the next ones ask for few until one finds due tasks") {
  workplace w;
  const auto o = w.options();
  w.submit_many(100, 1s);
  dispatcher runs(
      w.time, *w.tasks, [](const task&) {}, o);
  w.pass(500ms, {&runs});
  w.submit_many(100, 4s);
  w.pass(5s, {&runs});
  CHECK(runs.stats().completed == 200);
  const auto asked = claims_asked_for(w);
  REQUIRE(asked.size() >= 4);
  CHECK(asked.front() == o.max_held);
  CHECK(asked[1] == 50);
  CHECK(asked[2] == 50);
  CHECK(std::all_of(asked.begin() + 1, asked.end(), [](std::size_t n) { return n <= 50; }));

  w.submit_many(100, 0s);
  w.pass(5s, {&runs});
  CHECK(runs.stats().completed == 300);
  CHECK(claims_asked_for(w).back() == o.max_held);
}

TEST_CASE("tasks that are due when they are claimed begin in the very next turn, if there are threads") {
  workplace w;
  auto o = w.options();
  o.threads = 2;
  w.submit_many(3, 0s);
  gate begun, may_end;
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait(2));  // no time passes, and nobody wakes the dispatcher
  const auto turns = w.line().turns();
  REQUIRE(turns.size() >= 2);
  CHECK(turns[0].claim_up_to != 0);
  CHECK(turns[1].begun.size() == 2);
  CHECK(turns[1].claim_up_to == 0);
  may_end.open();
  CHECK(eventually([&] { return runs.stats().completed == 3; }));
}

TEST_CASE(
    "a claim that takes longer than a third of the lease is reported, runs what it can, and halves the "
    "next") {
  // After two thirds, what has not begun is given back.
  for (const duration slow : {7000ms, 12000ms, 3001ms}) {
    CAPTURE(slow.count());
    workplace w;
    auto o = w.options();
    o.max_held = 16;
    o.lease = 9s;
    o.threads = 2;
    w.submit_many(40, 0s);
    std::atomic<std::size_t> in_time{2}, slow_claims{0};  // claims of more tasks than this are slow
    std::atomic<std::size_t> begun{0}, ran{0};
    w.line().after_turn([&](const turn& t) {
      if (t.claim_up_to > in_time) {
        CHECK(eventually([&] { return ran == begun; }));  // the threads are faster than that claim
        ++slow_claims;
        w.time.advance(slow);
      } else if (t.claim_up_to != 0) {
        in_time = 100;
      }
      begun += t.begun.size();
    });
    dispatcher runs(
        w.time, *w.tasks, [&](const task&) { ++ran; }, o);
    REQUIRE(eventually([&] { return runs.stats().completed == 40; }));
    REQUIRE(w.settle({&runs}));
    const auto turns = w.line().turns();
    REQUIRE(turns.size() >= 2);
    CHECK(turns[0].claim_up_to == 16);
    CHECK(turns[1].begun.size() == 2);
    CHECK(turns[1].returned.size() == (slow == 3001ms ? 0 : 14));
    CHECK(turns[1].claim_up_to == 0);  // that would delay what begins
    const auto asked = claims_asked_for(w);
    REQUIRE(asked.size() > slow_claims);
    for (std::size_t i = 1; i <= slow_claims; ++i) CHECK(asked[i] <= 16U >> i);
    const auto lines = w.errors();
    REQUIRE(lines.size() == slow_claims);
    CHECK(lines[0] == "a claim of 16 tasks took " + std::to_string(slow / 1ms) +
                          " ms, more than a third of the lease: the next one asks for less");
    CHECK(runs.stats().failures == 0);
    CHECK(runs.stats().leases_lost == 0);
  }
}

TEST_CASE("a claim that takes a third of the lease, or takes longer and finds nothing, is like any other") {
  for (const bool finds : {false, true}) {
    workplace w;
    auto o = w.options();
    o.lease = 9s;
    w.submit_many(finds ? 4 : 0, 0s);
    std::atomic<bool> first{true};
    w.line().after_turn([&](const turn&) {
      if (first.exchange(false)) w.time.advance(finds ? 3s : 30s);
    });
    dispatcher runs(
        w.time, *w.tasks, [](const task&) {}, o);
    w.pass(5s, {&runs});
    CHECK(runs.stats().completed == (finds ? 4 : 0));
    for (const std::size_t asked : claims_asked_for(w)) CHECK(asked >= o.max_held - 4);
    CHECK(w.errors().empty());
  }
}

TEST_CASE("max_held may be unlimited") {
  workplace w;
  auto o = w.options();
  o.max_held = rondo::unlimited;
  w.submit_many(20, 0s);
  dispatcher runs(
      w.time, *w.tasks, [](const task&) {}, o);
  REQUIRE(w.settle({&runs}));
  CHECK(runs.stats().completed == 20);
  CHECK(runs.stats().failures == 0);
  for (const turn& t : w.line().turns())
    CHECK(t.claim_up_to <= static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()));
}

TEST_CASE("at most max_held tasks are claimed; as they end, others follow") {
  workplace w;
  std::set<std::int64_t> seen;
  std::mutex mutex;
  std::uint64_t most = 0;
  auto o = w.options();
  o.max_held = 5;
  o.threads = 2;
  w.submit_many(40, 0s);
  dispatcher* self = nullptr;
  gate made;
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        made.wait();
        const auto s = self->stats();
        const std::lock_guard hold(mutex);
        most = std::max(most, s.held + s.running);
        seen.insert(t.id);
      },
      o);
  self = &runs;
  made.open();
  REQUIRE(eventually([&] { return runs.stats().completed == 40; }));  // without time
  CHECK(seen.size() == 40);
  CHECK(most <= 5);
  for (const detail::turn& t : w.line().turns()) CHECK(t.claim_up_to <= 5);
}

TEST_CASE("only as many due tasks begin as there are threads; the others can still be cancelled") {
  workplace w;
  gate begun, may_end;
  auto o = w.options();
  o.threads = 3;
  for (int i = 0; i != 20; ++i) w.tasks->submit_after(0s, {.key = std::to_string(i)});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task&) {
        begun.open();
        may_end.wait();
      },
      o);
  REQUIRE(begun.wait(3));
  CHECK(runs.stats().running == 3);
  CHECK(runs.stats().held == 17);
  for (int i = 0; i != 3; ++i) CHECK_FALSE(w.tasks->cancel("default", std::to_string(i)));
  for (int i = 3; i != 20; ++i) CHECK(w.tasks->cancel("default", std::to_string(i)));
  may_end.open();
  REQUIRE(eventually([&] { return runs.stats().withdrawn == 17; }));
  CHECK(runs.stats().fired == 3);
}

TEST_CASE("several dispatchers share the tasks of a store; each task runs once, in one of them") {
  workplace w;
  diary a(w), b(w), c(w);
  auto o = w.options();
  o.max_held = 7;
  for (int i = 0; i != 100; ++i) w.tasks->submit_after(i * 50ms, {});
  dispatcher one(w.time, *w.tasks, a.handler(), o), two(w.time, *w.tasks, b.handler(), o),
      three(w.time, *w.tasks, c.handler(), o);
  w.pass(6s, {&one, &two, &three}, 50ms);
  std::vector<std::int64_t> all = a.ids();
  for (const auto& more : {b.ids(), c.ids()}) all.insert(all.end(), more.begin(), more.end());
  CHECK(all.size() == 100);
  CHECK(std::set(all.begin(), all.end()).size() == 100);
  CHECK(one.stats().leases_lost + two.stats().leases_lost + three.stats().leases_lost == 0);
}

TEST_CASE("a dispatcher runs the tasks of its queues, and no others") {
  workplace w;
  diary ab(w), c(w);
  auto o = w.options();
  o.threads = 1;
  std::map<std::string, std::int64_t> ids;
  for (const auto* q : {"a", "b", "c", "d"}) ids[q] = w.tasks->submit_after(1s, {.queue = q});
  o.queues = {"b", "a", "b"};
  dispatcher one(w.time, *w.tasks, ab.handler(), o);
  o.queues = {"c"};
  dispatcher two(w.time, *w.tasks, c.handler(), o);
  w.pass(10s, {&one, &two}, 500ms);
  CHECK(ab.ids() == std::vector{ids["a"], ids["b"]});
  CHECK(c.ids() == std::vector{ids["c"]});
  CHECK(w.tasks->find(ids["d"])->attempt == 0);
}

TEST_CASE("many ends and beginnings share a transaction") {
  workplace w;
  diary d(w);
  w.submit_many(1000, 0s);
  dispatcher runs(w.time, *w.tasks, d.handler(), w.options());
  REQUIRE(eventually([&] { return runs.stats().completed == 1000; }));
  // One for each task would be a thousand. The threads get more runs at a time as they prove to be quick.
  CHECK(runs.stats().turns < 500);
}

// Begun runs and the threads that run the handler, tested in isolation.

class idle_session final : public detail::session {
 public:
  detail::turn_result take(const turn&) override { return {}; }
  bool wait() override { return false; }
  bool changed() override { return false; }
  duration look_every() const override { return duration::max(); }
  void interrupt() noexcept override {}
};

TEST_CASE("no run begins after the threads are closed, and runs that wait for a thread can be taken back") {
  idle_session nobody;
  detail::inbox in(nobody);
  gate begun, may_end;
  detail::begun_runs runs(1, in);
  detail::handler_threads threads(1, runs, [&](detail::run&) {
    begun.open();
    may_end.wait();
  });
  detail::run_list both;
  for (const std::int64_t id : {1, 2}) {
    both.emplace_back();
    both.back().what.id = id;
  }
  runs.add(both);
  REQUIRE(begun.wait());
  CHECK(runs.size() == 2);
  runs.close();
  may_end.add(2);
  threads.join();
  CHECK(begun.count() == 1);
  CHECK(runs.room() == 0);
  const detail::run_list left = runs.take_waiting(rondo::time_point::max());
  REQUIRE(left.size() == 1);
  CHECK(left.front().what.id == 2);
  CHECK(in.take().ended.size() == 1);
}

TEST_CASE("no run is taken away from an idle thread that has not yet come for it") {
  idle_session nobody;
  detail::inbox in(nobody);
  gate begun;
  detail::begun_runs runs(2, in);
  detail::handler_threads threads(2, runs, [&](detail::run&) { begun.open(); });
  for (int round = 1; round <= 200; ++round) {
    detail::run_list two(2);
    runs.add(two);
    REQUIRE(runs.take_waiting(rondo::time_point::max()).empty());
    REQUIRE(eventually([&] { return runs.size() == 0; }));
  }
  CHECK(begun.count() == 400);
}

}  // namespace durable_dispatcher_runs
