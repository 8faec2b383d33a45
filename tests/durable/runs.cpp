// What happens to a claimed task, and how many attempts it has. The same tests run for each engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "durable/database.hpp"

// It is begun, finished, failed, put back, renewed, or expires.
namespace durable_runs {

using namespace durable_test;
using rondo::durable::task;
using ids = std::vector<std::int64_t>;

struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> store = db->open_store();
  worker w = worker(*db, "w"), other = worker(*db, "other");

  ticket claimed(const rondo::durable::submission& what = {}) {
    store->submit_after(0s, what);
    return ticket_of(w.claim_one());
  }
  ticket begun(const rondo::durable::submission& what = {}) {
    const ticket t = claimed(what);
    if (!w.begin(t)) throw std::logic_error("it does not begin");
    return t;
  }
  std::size_t rows() const { return db->rows().size(); }
  row of(std::int64_t id) const {
    for (const row& r : db->rows())
      if (r.id == id) return r;
    throw std::logic_error("no task " + std::to_string(id));
  }
};

TEST_CASE("an attempt is counted when the run begins") {
  in_use x;
  const ticket t = x.claimed();
  CHECK(x.store->find(t.id)->attempt == 0);
  CHECK(x.w.begin(t));
  CHECK(x.store->find(t.id)->attempt == 1);
  CHECK(x.w.retry(t, 0s));
  CHECK(x.store->find(t.id)->attempt == 1);
  const claim again = x.w.claim_one();
  CHECK(again.what.attempt == 1);
  CHECK(again.what.fence > t.fence);
  x.db->pass(1s);
  CHECK(x.w.begin(ticket_of(again)));
  CHECK(x.store->find(t.id)->attempt == 2);
}

TEST_CASE("a run that is begun again because the answer was lost is one attempt, with a new lease") {
  in_use x;
  const ticket t = x.begun();
  x.db->pass(20s);
  CHECK(x.w.begin(t));
  CHECK(x.store->find(t.id)->attempt == 1);
  x.db->pass(20s);
  CHECK(x.other.claim_up_to(10).empty());
  x.db->pass(20s);
  CHECK(x.other.claim_up_to(10).size() == 1);
}

TEST_CASE("a run does not begin twice with two sessions, or without the claim's fence") {
  in_use x;
  const ticket t = x.claimed();
  CHECK(!x.other.begin({.id = t.id, .fence = t.fence + 1}));
  CHECK(!x.other.begin({.id = t.id, .fence = t.fence - 1}));
  CHECK(!x.other.begin({.id = t.id + 1, .fence = t.fence}));
  CHECK(x.w.begin(t));
  CHECK(!x.other.begin(t));
  CHECK(x.store->find(t.id)->attempt == 1);
}

TEST_CASE("the lease of a run is counted from its beginning") {
  in_use x;
  const ticket t = x.claimed();
  x.db->pass(20s);
  CHECK(x.w.begin(t));
  x.db->pass(20s);
  CHECK(x.other.claim_up_to(10).empty());
  x.db->pass(20s);
  const claim c = x.other.claim_one();
  CHECK(c.what.id == t.id);
  CHECK(c.what.attempt == 1);
}

TEST_CASE("a renewed lease is counted from the renewal") {
  in_use x;
  const ticket t = x.begun();
  for (int i = 0; i < 5; ++i) {
    x.db->pass(20s);
    CHECK(x.other.claim_up_to(10).empty());
    CHECK(x.w.renew(t));
  }
  x.db->pass(20s);
  CHECK(x.other.claim_up_to(10).empty());
  x.db->pass(20s);
  CHECK(x.other.claim_up_to(10).size() == 1);
}

TEST_CASE("only the lease of a running task is renewed, and only by its session") {
  in_use x;
  const ticket held = x.claimed();
  CHECK(!x.w.renew(held));
  CHECK(x.w.begin(held));
  CHECK(!x.w.renew({.id = held.id, .fence = held.fence + 1}));
  CHECK(x.w.renew(held));
  x.db->pass(1min);
  const ticket taken = ticket_of(x.other.claim_one());
  CHECK(!x.w.renew(held));
  CHECK(x.other.begin(taken));
  CHECK(!x.w.renew(held));
  CHECK(x.other.renew(taken));
}

TEST_CASE("a lease that has run out is renewed if nobody has taken over the task") {
  in_use x;
  const ticket t = x.begun();
  x.db->pass(1min);
  CHECK(x.w.renew(t));
  CHECK(x.other.claim_up_to(10).empty());
}

TEST_CASE("a claimed task does not begin before it is due by the engine's clock, and can be given back") {
  in_use x;
  x.store->submit_after(3s, {});
  const ticket t = ticket_of(x.w.claim_one());
  const turn_result early = x.w.take({.begun = {t}});
  CHECK(early.begun.empty());
  CHECK(early.early == std::vector{t});
  CHECK(early.locked.empty());
  CHECK(x.of(t.id).state == row_state::held);
  CHECK(x.of(t.id).attempt == 0);
  x.w.give_back(t);
  const ticket again = ticket_of(x.other.claim_one());
  CHECK(x.w.take({.begun = {t}}).early.empty());  // no longer its own
  x.db->pass(3s);
  const turn_result late = x.other.take({.begun = {again}});
  CHECK(late.begun == std::vector{again});
  CHECK(late.early.empty());
}

TEST_CASE(
    "a claim leaves alone what its session runs, although the engine's clock was set forward; others do "
    "not") {
  in_use x;
  worker last(*x.db, "last", {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 1});
  const auto begun = [&] {
    x.store->submit_after(0s, {});
    const ticket one = ticket_of(last.claim_one());
    REQUIRE(last.begin(one));
    return one;
  };
  const ticket t = begun(), cancelled = begun();
  CHECK(!x.store->cancel(cancelled.id));
  x.db->pass(1h);
  const auto own = last.take({.kept = {t, cancelled}, .claim_up_to = 10});
  CHECK(own.claimed.empty());
  CHECK(own.expired.empty());  // although this was its last attempt
  CHECK(x.rows() == 2);
  CHECK(last.finish(cancelled));
  x.db->pass(14s);
  CHECK(last.take({.kept = {t}, .claim_up_to = 10}).claimed.empty());  // more than half of the lease is left
  x.db->pass(17s);
  const auto others = x.other.claim_up_to(10);
  REQUIRE(others.size() == 1);
  CHECK(others[0].what.id == t.id);
  CHECK(!last.finish(t));
}

TEST_CASE("a finished task is removed") {
  in_use x;
  const ticket t = x.begun();
  CHECK(x.w.finish(t));
  CHECK(!x.store->find(t.id));
  CHECK(x.rows() == 0);
  CHECK(!x.w.finish(t));
}

TEST_CASE("a session that lost a task to another cannot end it") {
  in_use x;
  const ticket lost = x.begun({.payload = "p"});
  x.db->pass(1min);
  const ticket t = ticket_of(x.other.claim_one());
  const auto none_works = [&] {
    CHECK(!x.w.finish(lost));
    CHECK(!x.w.retry(lost, 0s));
    CHECK(!x.w.give_up(lost, "no use"));
    CHECK(!x.w.renew(lost));
    CHECK(!x.w.begin(lost));
    x.w.unstart(lost);
    x.w.give_back(lost);
    CHECK(x.w.claim_up_to(10).empty());
  };
  none_works();
  CHECK(x.other.begin(t));
  none_works();
  CHECK(x.store->find(t.id)->attempt == 2);
  CHECK(x.other.finish(t));
  CHECK(x.rows() == 0);
  none_works();
}

TEST_CASE("a task that has not begun cannot end or fail") {
  in_use x;
  const ticket t = x.claimed();
  CHECK(!x.w.finish(t));
  CHECK(!x.w.retry(t, 0s));
  CHECK(!x.w.give_up(t, "no use"));
  x.w.unstart(t);
  CHECK(x.w.claim_up_to(10).empty());
  CHECK(x.w.begin(t));
}

TEST_CASE("a failed task waits for its retry, with its key") {
  in_use x;
  const auto before = x.db->now();
  const ticket t = x.begun({.payload = "p", .key = "k"});
  CHECK(x.w.retry(t, 1h));
  const auto found = x.store->find(t.id);
  CHECK(found->due >= before + 1h);
  CHECK(found->due < before + 1h + 1min);
  CHECK(found->key == "k");
  CHECK(found->payload == "p");
  x.db->pass(59min);
  CHECK(x.other.claim_up_to(10).empty());
  x.db->pass(1min);
  const claim c = x.other.claim_one();
  CHECK(c.what.attempt == 1);
  CHECK(c.what.fence > t.fence);
}

TEST_CASE(
    "a task that is given up is kept as dead, with the reason and its key, and is never claimed again") {
  in_use x;
  const ticket t = x.begun({.payload = "p", .key = "k"});
  const std::string reason = "the shop's \"till\" is closed;\nGrüße";
  CHECK(x.w.give_up(t, reason));
  CHECK(x.of(t.id).reason == reason);
  CHECK(x.of(t.id).state == row_state::dead);
  CHECK(x.of(t.id).key == "k");
  CHECK(x.of(t.id).attempt == 1);
  x.db->pass(24h);
  CHECK(x.other.claim_up_to(10).empty());
  CHECK(!x.store->find(t.id));
}

TEST_CASE("a task that was begun but not run waits again, and the attempt does not count") {
  in_use x;
  const ticket t = x.begun();
  x.w.unstart(t);
  CHECK(x.store->find(t.id)->attempt == 0);
  const claim c = x.other.claim_one();
  CHECK(c.what.id == t.id);
  CHECK(c.what.attempt == 0);
  CHECK(!x.w.begin(t));
}

TEST_CASE("a task that is handed back waits again, unchanged") {
  in_use x;
  worker far(*x.db, "far", {.queues = {"default"}, .window = 1h, .lease = 30s, .max_attempts = 3});
  const std::int64_t id = x.store->submit_after(30min, {.payload = "p", .key = "k"});
  const auto due = x.store->find(id)->due;
  const ticket t = ticket_of(far.claim_one());
  far.give_back(t);
  const auto found = x.store->find(id);
  CHECK(found->due == due);
  CHECK(found->attempt == 0);
  CHECK(found->key == "k");
  CHECK(!far.begin(t));
  CHECK(far.claim_one().what.id == id);
}

TEST_CASE("a task that has begun cannot be handed back as not begun") {
  in_use x;
  const ticket t = x.begun();
  x.w.give_back(t);
  CHECK(x.other.claim_up_to(10).empty());
  CHECK(x.w.finish(t));
}

TEST_CASE("who repeats that a task is dead, and why, is told that this is done; nobody else is") {
  in_use x;
  const ticket t = x.begun({});
  CHECK(x.w.give_up(t, "why"));
  CHECK(x.w.give_up(t, "why"));
  CHECK(!x.w.give_up(t, "another reason"));
  CHECK(!x.w.give_up({.id = t.id, .fence = t.fence - 1}, "why"));
  CHECK(!x.w.retry(t, 0s));
  CHECK(!x.w.finish(t));
  const auto both = x.w.take({.failed = {{.of = t, .retry_after = {}, .reason = "why"},
                                         {.of = t, .retry_after = 0s, .reason = "why"}}});
  CHECK(both.failed.size() == 1);
  CHECK(both.removed.empty());
  CHECK(both.locked.empty());
  CHECK(x.of(t.id).reason == "why");
  x.store->retry(t.id);
  CHECK(!x.w.give_up(t, "why"));
}

TEST_CASE("a task whose last attempt's lease runs out is dead, and reported") {
  in_use x;
  const ticket first = x.begun({.payload = "p", .key = "k"});
  for (int attempt = 2; attempt <= 3; ++attempt) {
    x.db->pass(1min);
    const claim c = x.other.claim_one();
    CHECK(c.what.attempt == attempt - 1);
    CHECK(x.other.begin(ticket_of(c)));
  }
  x.db->pass(1min);
  turn_result result = x.w.take({.claim_up_to = 10});
  while (result.expired.empty() && result.may_have_more) result = x.w.take({.claim_up_to = 10});
  CHECK(result.claimed.empty());
  REQUIRE(result.expired.size() == 1);
  const task& dead = result.expired.front();
  CHECK(dead.id == first.id);
  CHECK(dead.queue == "default");
  CHECK(dead.key == "k");
  CHECK(dead.payload.empty());  // nobody needs it, and claim_bytes would not limit it
  CHECK(dead.attempt == 3);
  CHECK(!x.store->find(dead.id));
  CHECK(x.of(dead.id).state == row_state::dead);
  CHECK(x.of(dead.id).reason == "lease ran out");
  CHECK(x.w.take({.claim_up_to = 10}).expired.empty());
  CHECK_NOTHROW(x.store->submit_after(1h, {.key = "k"}));
}

TEST_CASE("only runs count as attempts; a claim may expire any number of times") {
  in_use x;
  x.claimed();
  for (int i = 0; i < 10; ++i) {
    x.db->pass(1min);
    CHECK(x.other.claim_one().what.attempt == 0);
  }
}

TEST_CASE("a session does not get what expires in other queues") {
  in_use x;
  worker a(*x.db, "a", {.queues = {"a"}, .window = 5s, .lease = 30s, .max_attempts = 1});
  x.begun();
  x.db->pass(1min);
  const turn_result result = a.take({.claim_up_to = 10});
  CHECK(result.claimed.empty());
  CHECK(result.expired.empty());
  CHECK(x.other.claim_up_to(10).size() == 1);
}

TEST_CASE("a turn does all of its parts in order") {
  in_use x;
  std::vector<ticket> t;
  for (int i = 0; i < 7; ++i) t.push_back(x.claimed());
  for (const int i : {0, 1, 2, 3, 4}) CHECK(x.w.begin(t[static_cast<std::size_t>(i)]));
  CHECK(!x.store->cancel(t[4].id));
  const turn_result result = x.w.take({.finished = {t[0], t[4]},
                                       .failed = {{.of = t[1], .retry_after = 0s, .reason = "r"},
                                                  {.of = t[2], .retry_after = {}, .reason = "r"}},
                                       .unstarted = {t[3]},
                                       .returned = {t[5]},
                                       .renewed = {t[0], t[1]},
                                       .begun = {t[6], t[5], t[0]},
                                       .claim_up_to = 10});
  CHECK(result.finished == std::vector{t[0], t[4]});
  CHECK(result.failed == std::vector{t[1], t[2]});
  CHECK(result.renewed.empty());
  CHECK(result.begun == std::vector{t[6]});
  // The turn claims what it has put back itself.
  CHECK(result.claimed.size() == 3);
  CHECK(x.store->find(t[3].id)->attempt == 0);
  CHECK(x.rows() == 5);
}

TEST_CASE("a turn reports which of the failed runs had cancelled tasks") {
  in_use x;
  const ticket tried_again = x.claimed(), dead = x.claimed(), cancelled = x.claimed(),
               cancelled_too = x.claimed();
  for (const ticket& t : {tried_again, dead, cancelled, cancelled_too}) CHECK(x.w.begin(t));
  for (const ticket& t : {cancelled, cancelled_too}) CHECK(!x.store->cancel(t.id));
  const turn_result result = x.w.take({.failed = {{.of = tried_again, .retry_after = 0s, .reason = ""},
                                                  {.of = dead, .retry_after = {}, .reason = "r"},
                                                  {.of = cancelled, .retry_after = 0s, .reason = ""},
                                                  {.of = cancelled_too, .retry_after = {}, .reason = "r"}}});
  CHECK(result.failed.size() == 4);
  auto removed = result.removed;
  std::sort(removed.begin(), removed.end());
  CHECK(removed == std::vector{cancelled, cancelled_too});
  CHECK(x.rows() == 2);
}

TEST_CASE("during a run its key is taken; the run may replace itself by its successor") {
  in_use x;
  const ticket t = x.begun({.key = "k"});
  CHECK_THROWS_AS(x.store->submit_after(0s, {.key = "k"}), rondo::durable::key_taken);
  const auto next = x.store->submit_after(0s, {.key = "k", .replace = true});
  CHECK(x.w.finish(t));
  CHECK(ticket_of(x.w.claim_one()).id == next);
}

TEST_CASE("an empty turn does nothing") {
  in_use x;
  x.claimed();
  const turn_result result = x.w.take({});
  CHECK(result.claimed.empty());
  CHECK(result.expired.empty());
}

TEST_CASE("a wait ends that was interrupted before it began") {
  in_use x;
  x.w.session().interrupt();
  CHECK(!x.w.session().wait());
}

}  // namespace durable_runs

// Attempts: how many a task has, runs that do not count, and runs that have been cancelled.
namespace durable_attempts {

using namespace durable_test;
using rondo::durable::planned;

struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker w{*db};  // its own limit is 3

  ticket running(const rondo::durable::submission& what = {}) {
    task_in(state::waiting, *tasks, w, what);
    const ticket t = ticket_of(w.claim_one());
    REQUIRE(w.begin(t));
    return t;
  }
  std::vector<ticket> snooze(ticket t, rondo::duration d) {
    return w.take({.failed = {{.of = t, .retry_after = d, .reason = "", .counts = false}}}).failed;
  }
};

TEST_CASE("a claim tells the maximum of attempts of a task, however the task was submitted") {
  in_use x;
  const std::string large(1000, 'x');
  x.tasks->submit_after(0s, {});
  x.tasks->submit_after(0s, {.max_attempts = 1});
  x.tasks->submit_after(0s, {.key = "k", .max_attempts = 2});
  x.tasks->submit_after(0s, {.payload = large, .max_attempts = 3});
  x.tasks->submit_all(
      std::vector<planned>{{.what = {.max_attempts = 4}}, {.what = {.key = "l", .max_attempts = 5}}});
  std::vector<int> told;
  for (const claim& c : x.w.claim_up_to(10)) told.push_back(c.max_attempts);
  CHECK(told == std::vector{0, 1, 2, 3, 4, 5});
  told.clear();
  for (const claim& c : x.w.take({.adopt = true}).claimed) told.push_back(c.max_attempts);
  std::ranges::sort(told);
  CHECK(told == std::vector{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a negative maximum of attempts is refused, with its value") {
  in_use x;
  CHECK_THROWS_WITH_AS(x.tasks->submit_after(0s, {.max_attempts = -1}),
                       "rondo: max_attempts must not be negative: -1", std::invalid_argument);
}

TEST_CASE("when leases run out, a task is dead after its own maximum of attempts, or else the dispatcher's") {
  for (const int own : {0, 1, 2, 5}) {
    CAPTURE(own);
    in_use x;
    const std::int64_t id = x.tasks->submit_after(0s, {.max_attempts = own});
    int runs = 0;
    for (; runs != 10 && x.tasks->find(id); ++runs) {
      const auto claims = x.w.claim_up_to(1);
      if (claims.empty()) break;
      REQUIRE(x.w.begin(ticket_of(claims[0])));
      x.db->pass(1h);
    }
    CHECK(runs == (own == 0 ? 3 : own));
    CHECK(x.tasks->list("default").at(0).reason == "lease ran out");
  }
}

TEST_CASE("a snoozed task waits for that time, and its run does not count") {
  in_use x;
  const ticket t = x.running({.payload = "p", .key = "k"});
  CHECK(x.tasks->find(t.id)->attempt == 1);
  const auto before = x.db->now();
  CHECK(x.snooze(t, 10min) == std::vector{t});
  const auto found = x.tasks->find("default", "k");
  REQUIRE(found);
  CHECK(found->attempt == 0);
  CHECK(found->due >= before + 10min);
  CHECK(found->due <= x.db->now() + 10min + 1s);
  CHECK(x.w.claim_up_to(1).empty());
  x.db->pass(10min + 2s);
  const ticket again = ticket_of(x.w.claim_one());
  CHECK(again.fence > t.fence);
  CHECK(x.w.begin(again));
  CHECK(x.tasks->find(t.id)->attempt == 1);
}

TEST_CASE("a task that was cancelled or taken over during its run is not snoozed") {
  in_use x;
  const ticket cancelled = x.running();
  x.tasks->cancel(cancelled.id);
  const turn_result done =
      x.w.take({.failed = {{.of = cancelled, .retry_after = 1s, .reason = "", .counts = false}}});
  CHECK(done.removed == std::vector{cancelled});
  CHECK_FALSE(x.tasks->find(cancelled.id));
  const ticket lost = x.running();
  x.db->pass(1h);
  worker other(*x.db, "other");
  REQUIRE(other.begin(ticket_of(other.claim_one())));
  CHECK(x.snooze(lost, 1s).empty());
  CHECK(x.tasks->find(lost.id)->attempt == 2);
}

TEST_CASE("a session learns which of its runs have been cancelled, replaced or taken over, and only those") {
  in_use x;
  const ticket by_id = x.running(), by_key = x.running({.key = "k"}), replaced = x.running({.key = "r"}),
               in_list = x.running({.key = "l"}), goes_on = x.running();
  const std::vector all{by_id, by_key, replaced, in_list, goes_on};
  CHECK(x.w.take({.watched = all}).cancelled.empty());
  x.tasks->cancel(by_id.id);
  x.tasks->cancel("default", "k");
  x.tasks->submit_after(1h, {.key = "r", .replace = true});
  x.tasks->submit_all(std::vector<planned>{{.what = {.key = "l", .replace = true}, .when = 1h}});
  auto cancelled = x.w.take({.watched = all}).cancelled;
  std::ranges::sort(cancelled);
  CHECK(cancelled == std::vector{by_id, by_key, replaced, in_list});
  const ticket taken_over{goes_on.id, goes_on.fence - 1};
  CHECK(x.w.take({.watched = {goes_on, taken_over}}).cancelled == std::vector{taken_over});
}

}  // namespace durable_attempts
