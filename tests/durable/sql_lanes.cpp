// Lanes in tables: how a claim sets aside what is behind others of its lane (state 6), and what statements of operators may
// do to tasks of a lane. The same tests run for SQLite and PostgreSQL.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "durable/sql_database.hpp"

namespace durable_lanes_in_tables {

using namespace durable_test;
using rondo::durable::planned;
using ids = std::vector<std::int64_t>;

/// A database with two sessions.
struct in_use {
  std::unique_ptr<sql_database> db = new_sql_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker w{*db, "w"}, other{*db, "other"};

  std::int64_t submit(const std::string& lane, rondo::duration since_due = 1min) const {
    return tasks->submit_at(db->now() - since_due, {.lane = lane});
  }
  std::string state_of(std::int64_t id) const {
    return db->ask("SELECT state FROM rondo_task WHERE id = " + std::to_string(id));
  }
  void set(std::int64_t id, const std::string& assignments) const {
    db->ask("UPDATE rondo_task SET " + assignments + " WHERE id = " + std::to_string(id));
  }
  ids claim() { return ids_of(w.claim_up_to(100)); }
};

TEST_CASE("lanes: whatever statement removes the first task lets the next one run") {
  const std::vector<std::pair<std::string, std::function<void(in_use&, ticket)>>> ends{
      {"cancelled by SQL",
       [](in_use& x, ticket t) { x.db->ask("DELETE FROM rondo_task WHERE id = " + std::to_string(t.id)); }},
      {"dead by SQL", [](in_use& x, ticket t) { x.set(t.id, "state = 3"); }},
      {"into another lane by SQL",
       [](in_use& x, ticket t) {
         x.set(t.id, "state = 0, due = due, lane = 'b'");
         x.tasks->cancel(t.id);
       }},
      {"out of the lane by SQL", [](in_use& x, ticket t) { x.set(t.id, "lane = NULL"); }},
      {"into another queue by SQL", [](in_use& x, ticket t) { x.set(t.id, "queue = 'q'"); }},
  };
  for (const auto& each : ends) {
    CAPTURE(each.first);
    in_use x;
    const auto first = x.submit("a", 2min), second = x.submit("a"), third = x.submit("a");
    const ticket t = ticket_of(x.w.claim_one());
    REQUIRE(t.id == first);
    CHECK(x.claim().empty());
    CHECK(x.state_of(third) == "6");
    each.second(x, t);
    CHECK(x.claim() == ids{second});
  }
}

TEST_CASE(
    "lanes: what a claim meets behind others is set aside, also behind a run that is not first any more") {
  in_use x;
  x.submit("a");
  const ticket t = ticket_of(x.w.claim_one());
  CHECK(x.w.begin(t));
  const auto earlier = x.submit("a", 2min);
  CHECK(x.claim().empty());
  CHECK(x.state_of(earlier) == "6");
  CHECK(x.w.retry(t, 0s));
  CHECK(x.state_of(earlier) == "5");
  CHECK(x.claim() == ids{earlier});
  std::vector<planned> crowd(50, {.what = {.lane = "b"}, .when = x.db->now() - 1min});
  x.tasks->submit_all(crowd);
  while (x.w.take({.claim_up_to = 5}).may_have_more) {
  }
  CHECK(x.db->ask("SELECT count(*) FROM rondo_task WHERE lane = 'b' AND state = 6") == "49");
}

TEST_CASE("lanes: of two tasks that are held the first may begin, and neither while the other one runs") {
  for (const bool second_runs : {false, true}) {
    in_use x;
    x.submit("a", 2min);
    const auto second = x.submit("b");
    const auto claims = x.w.claim_up_to(2);
    REQUIRE(claims.size() == 2);
    const ticket first = ticket_of(claims[0]), other = ticket_of(claims[1]);
    if (second_runs) CHECK(x.w.begin(other));
    x.set(second, "lane = 'a'");
    const auto answer = x.w.take({.begun = {other, first}});
    CHECK(answer.begun == (second_runs ? std::vector{other} : std::vector{first}));  // repeating is allowed
    CHECK(answer.early == (second_runs ? std::vector{first} : std::vector{other}));
  }
}

TEST_CASE("lanes: statements of operators may say that a task waits, as if it had no lane") {
  in_use x;
  const auto first = x.submit("a", 2min), second = x.submit("a");
  CHECK(x.claim() == ids{first});
  CHECK(x.claim().empty());
  x.db->ask(
      "UPDATE rondo_task SET state = 0, fence = fence + 1, owner = NULL, lease_until = NULL WHERE state = 1");
  CHECK(x.state_of(first) == "5");
  CHECK(x.claim() == ids{first});
  x.set(second, "queue = 'q'");  // which it enters as the first
  CHECK(x.state_of(second) == "5");
  x.set(second, "lane = NULL");
  CHECK(x.state_of(second) == "0");
  x.set(second, "queue = 'default', lane = 'a'");
  CHECK(x.claim().empty());
  CHECK(x.state_of(second) == "6");
  x.set(first, "state = 3, owner = NULL, lease_until = NULL");
  CHECK(x.db->ask("SELECT place FROM rondo_task WHERE state = 3") == "");
  CHECK(x.claim() == ids{second});
}

}  // namespace durable_lanes_in_tables
