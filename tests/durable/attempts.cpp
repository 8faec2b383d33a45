// Attempts: how many a task has, runs that do not count, and runs that have been cancelled. The same tests run for each
// engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "durable/database.hpp"

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
