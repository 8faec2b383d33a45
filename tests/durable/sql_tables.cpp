// What lies in the tables, also of Rondo 0.2, and operators' statements. The same tests run for SQLite and PostgreSQL.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "durable/sql_database.hpp"

// Where payloads lie: short ones in the row of their task, and long ones apart from it.
namespace durable_payloads_apart {

using namespace durable_test;
using rondo::durable::planned;
using rondo::durable::detail::longest_inline_payload;

std::string bytes(std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i != count; ++i) result += static_cast<char>(i % 251);
  return result;
}

std::string apart(sql_database& db) { return db.ask("SELECT count(*) FROM rondo_payload"); }

TEST_CASE("a long payload lies apart, with a key or without") {
  for (const char* key : {"", "k"}) {
    CAPTURE(key);
    const auto db = new_sql_database();
    const auto store = db->open_store();
    store->submit_after(1h, {.payload = bytes(longest_inline_payload), .key = key});
    CHECK(apart(*db) == "0");
    store->submit_after(1h, {.payload = bytes(longest_inline_payload + 1), .key = key, .replace = true});
    CHECK(apart(*db) == "1");
    CHECK(db->ask("SELECT payload_apart FROM rondo_task ORDER BY id DESC") ==
          std::to_string(longest_inline_payload + 1));
    CHECK(db->ask("SELECT length(inline_payload) FROM rondo_task ORDER BY id DESC") == "0");
  }
}

TEST_CASE("a payload that lies apart goes with its task") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  worker w(*db);
  const rondo::durable::submission large{.payload = bytes(1000), .key = "k"};
  const auto in = [&](state s) { return task_in(s, *store, w, large); };
  CHECK(store->cancel(in(state::waiting)));
  CHECK(apart(*db) == "0");
  CHECK(store->cancel(in(state::held)));
  CHECK(apart(*db) == "0");
  in(state::done);
  CHECK(apart(*db) == "0");
  const std::int64_t dead = in(state::dead);
  CHECK(apart(*db) == "1");
  db->ask("DELETE FROM rondo_task WHERE id = " + std::to_string(dead));  // as an operator would
  CHECK(apart(*db) == "0");
  in(state::waiting);
  store->submit_after(1h, {.key = "k", .replace = true});
  CHECK(apart(*db) == "0");
}

TEST_CASE("a submission that is refused or rolled back leaves no payload") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  store->submit_after(1h, {.key = "k"});
  CHECK_THROWS_AS(store->submit_after(1h, {.payload = bytes(1000), .key = "k"}), rondo::durable::key_taken);
  CHECK(apart(*db) == "0");
  const auto mine = db->connect();
  mine->execute("BEGIN");
  store->submit_after(mine->handle(), 1h, {.payload = bytes(1000)});
  mine->execute("ROLLBACK");
  CHECK(apart(*db) == "0");
}

TEST_CASE("the payloads of a list lie apart where they are long, and a list that is refused leaves none") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  std::vector<planned> all(200);
  for (std::size_t i = 0; i < all.size(); i += 10)
    all[i].what = {.payload = bytes(300), .key = i == 0 ? "k" : ""};
  store->submit_all(all);
  CHECK(apart(*db) == "20");
  CHECK_THROWS_AS(store->submit_all(all), rondo::durable::key_taken);
  CHECK(apart(*db) == "20");
}

TEST_CASE("a repeated task has one payload, apart while it is long, and that goes with it") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  const auto declare = [&](std::size_t size) {
    store->repeat({.key = "k", .payload = bytes(size), .when = rondo::durable::schedule::every(1min)});
    CHECK((store->find("default", "k")->payload == bytes(size)));
  };
  declare(1);
  CHECK(apart(*db) == "0");
  declare(1000);
  CHECK(apart(*db) == "1");
  declare(2000);
  CHECK(apart(*db) == "1");
  declare(2);
  CHECK(apart(*db) == "0");
  declare(1000);
  CHECK(store->cancel("default", "k"));
  CHECK(apart(*db) == "0");
}

}  // namespace durable_payloads_apart

// Lanes in tables: how a claim sets aside what is behind others of its lane (state 6), and what statements of operators
// may do to tasks of a lane.
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

// Databases that Rondo 0.2 wrote: their schema has version 1. The same tests run for both engines, each with the dump
// of such a database: three dispatchers had been killed while they held and ran tasks. Also one that a development
// version after 0.2 wrote, whose schema has version 2.
namespace durable_version_1 {

using namespace durable_test;
using rondo::durable::store;
using rondo::durable::wall_time;

bool is_sqlite(const sql_database& db) { return db.url().starts_with("sqlite:"); }

std::string dump_for(const sql_database& db, const std::string& version) {
  const std::string file = is_sqlite(db) ? "/sqlite.sql" : "/postgresql.sql";
  std::ifstream dump(RONDO_TESTS "/durable/version_" + version + file);
  REQUIRE(dump);
  return std::string(std::istreambuf_iterator<char>(dump), {});
}

std::unique_ptr<sql_database> old_database(const std::string& version = "1") {
  auto db = new_sql_database();
  db->connect()->execute(dump_for(*db, version));
  return db;
}

/// The payload of tasks 2 and 8.
std::string thousand_bytes() {
  std::string result;
  for (int i = 0; i != 1000; ++i) result += static_cast<char>(i);
  return result;
}

TEST_CASE("a database of version 1 is migrated, with its tasks as they were") {
  const auto db = old_database();
  const auto tasks = db->open_store();
  CHECK(db->ask("SELECT version FROM rondo_schema") == "4");
  CHECK(db->ask("SELECT count(*) FROM rondo_task") == "8");
  const auto first = tasks->find(1);
  REQUIRE(first);
  CHECK(first->queue == "mail");
  CHECK(first->payload == "hello");
  CHECK(first->key == "order 7");
  CHECK(first->due == wall_time(std::chrono::seconds(4'102'444'800)));
  CHECK(first->attempt == 0);
  CHECK(first->fence == 0);
  CHECK((tasks->find(2)->payload == thousand_bytes()));
  CHECK(tasks->find(3)->payload.empty());
  CHECK_FALSE(tasks->find(4));  // it is dead
  CHECK(db->ask("SELECT reason FROM rondo_task WHERE id = 4 AND state = 3") == "no use");
  CHECK(tasks->find(5)->attempt == 1);
  CHECK(tasks->find(6)->key == "r");
  CHECK(tasks->find(7)->key.empty());  // it was cancelled during its run
  CHECK((tasks->find(8)->payload == thousand_bytes()));
}

TEST_CASE("tasks of version 1 are claimed, run, cancelled and moved like others") {
  const auto db = old_database();
  const auto tasks = db->open_store();
  CHECK_THROWS_AS(tasks->submit_after(1h, {.queue = "mail", .key = "order 7"}), rondo::durable::key_taken);
  CHECK(tasks->cancel("mail", "order 7"));
  CHECK(tasks->reschedule_after(2, 0s));
  CHECK(tasks->cancel(3));
  // The clock of the tests may be anywhere.
  db->ask("UPDATE rondo_task SET due = due" +
          std::string(is_sqlite(*db) ? " - due" : " - interval '200 years'") + " WHERE id IN (5, 6, 7, 8)");
  db->ask("UPDATE rondo_task SET lease_until = due WHERE id IN (6, 7, 8)");
  worker w(
      *db, "new",
      {.queues = {"mail", "run", "retried", "held", "dead"}, .window = 5s, .lease = 30s, .max_attempts = 3});
  std::vector<std::int64_t> ids;
  for (const claim& c : w.claim_up_to(10)) {
    ids.push_back(c.what.id);
    if (c.what.id == 2 || c.what.id == 8) CHECK((c.what.payload == thousand_bytes()));
    if (c.what.id == 6) CHECK(c.what.payload == "runs");
    CHECK(w.begin(ticket_of(c)));
    CHECK(w.finish(ticket_of(c)));
  }
  std::ranges::sort(ids);
  CHECK(ids == std::vector<std::int64_t>{2, 5, 6, 8});       // 7 ended with its cancelled run
  CHECK(db->ask("SELECT count(*) FROM rondo_task") == "1");  // the dead one
  CHECK(tasks->submit_after(1h, {}) > 8);
}

TEST_CASE("under load, every submission of version 1 is kept or refused, and the migration is done once") {
  const auto db = old_database();
  const std::string due = is_sqlite(*db) ? "0" : "now()";
  const std::string submission =
      "INSERT INTO rondo_task (queue, payload, due) VALUES ('load', 'x', " + due + ")";
  std::atomic<int> accepted{0}, opened{0};
  std::atomic<bool> begun{false};
  std::vector<std::thread> threads;
  for (int i = 0; i != 2; ++i)
    threads.emplace_back([&] {
      const auto theirs = db->connect();
      try {
        for (;;) {
          theirs->execute(submission);
          if (++accepted == 50) begun = true;
        }
      } catch (const std::exception& e) {  // the column has another name: the migration is done
        CHECK(std::string(e.what()).find("payload") != std::string::npos);
      }
    });
  for (int i = 0; i != 3; ++i)
    threads.emplace_back([&] {
      while (!begun) std::this_thread::yield();
      const auto tasks = db->open_store();
      ++opened;
      CHECK(tasks->submit_after(0s, {.queue = "load", .payload = "x"}) > 0);
    });
  for (std::thread& t : threads) t.join();
  CHECK(opened == 3);
  CHECK(accepted >= 50);
  CHECK(db->ask("SELECT version FROM rondo_schema") == "4");
  CHECK(db->ask("SELECT count(*) FROM rondo_task WHERE queue = 'load'") == std::to_string(accepted + 3));
}

TEST_CASE("a statement of version 1 gets an error, not a wrong payload") {
  const auto db = old_database();
  db->open_store();
  CHECK_THROWS(db->ask("UPDATE rondo_task SET fence = fence + 1 WHERE id = 2 RETURNING id, payload"));
  CHECK(db->ask("SELECT fence FROM rondo_task WHERE id = 2") == "0");
}

TEST_CASE("a database of version 2 is migrated, and its lanes go on") {
  const auto db = old_database("2");
  const auto tasks = db->open_store();
  CHECK(db->ask("SELECT version FROM rondo_schema") == "4");
  CHECK(db->wrong() == (is_sqlite(*db) ? ""
                                       : "1 tasks are set aside, but nothing of their lanes is in front of "
                                         "them or runs; "));
  worker w(*db, "new", {.queues = {"run"}, .window = 5s, .lease = 30s, .max_attempts = 3});
  const auto run_all = [&] {
    std::string ran;
    for (int i = 0; i != 4; ++i)
      for (const claim& c : w.claim_up_to(10))
        if (w.begin(ticket_of(c)) && w.finish(ticket_of(c))) ran += c.what.payload + ' ';
    return ran;
  };
  CHECK(run_all() == "stuck ");
  CHECK(db->wrong() == "");
  tasks->repeat({.queue = "run", .key = "r", .when = rondo::durable::schedule::every(1h), .lane = "c"});
  CHECK(run_all() == "");
  db->ask("UPDATE rondo_task SET state = 0, owner = NULL, lease_until = NULL WHERE state = 2");
  CHECK(db->ask("SELECT lane FROM rondo_task WHERE id = 1") == "c");
  CHECK(run_all() == "second third ");
  CHECK(db->ask("SELECT count(*) FROM rondo_task") == "1");
  CHECK(db->wrong() == "");
}

}  // namespace durable_version_1

// The statements for operators in lib/durable/operators.md are valid, and do what it says.
namespace durable_test {

namespace durable_operators_sql {

/// The statements of the SQL listings that are for this engine. Each part begins with a comment, which may name an
/// engine.
std::vector<std::string> statements_for(const std::string& engine, const std::string& other) {
  std::ifstream page(RONDO_TESTS "/../lib/durable/operators.md");
  std::vector<std::string> result;
  bool in_sql = false, is_ours = true;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      in_sql = line == "```sql";
      is_ours = true;
    } else if (in_sql && line.starts_with("-- ")) {
      is_ours = line.find(engine) != line.npos || line.find(other) == line.npos;
    } else if (in_sql && is_ours) {
      result.push_back(line);
    }
  }
  return result;
}

std::vector<std::string> statements_on(sql_database& db) {
  return db.url().starts_with("sqlite:") ? statements_for("SQLite", "PostgreSQL")
                                         : statements_for("PostgreSQL", "SQLite");
}

/// The statement that contains `part`, with `from` replaced by `to`.
std::string statement(sql_database& db, const std::string& part, const std::string& from,
                      const std::string& to) {
  for (std::string each : statements_on(db)) {
    if (each.find(part) == each.npos) continue;
    const std::size_t place = each.find(from);
    REQUIRE(place != each.npos);
    return each.replace(place, from.size(), to);
  }
  FAIL("lib/durable/operators.md has no ", part);
  return "";
}

TEST_CASE("operators: the database accepts every statement of the page") {
  const auto db = new_sql_database();
  db->open_store();
  const std::vector<std::string> all = statements_on(*db);
  CHECK(all.size() >= 6);
  for (const std::string& each : all) {
    CAPTURE(each);
    CHECK_NOTHROW(db->ask(each));
  }
}

TEST_CASE("operators: old dead tasks can be removed, with their payloads") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  worker w(*db);
  task_in(state::dead, *store, w, {.payload = std::string(1000, 'x')});
  const auto live = store->submit_after(1h, {});
  db->ask(db->url().starts_with("sqlite:") ? "UPDATE rondo_task SET due = 0 WHERE state = 3"
                                           : "UPDATE rondo_task SET due = 'epoch' WHERE state = 3");
  db->ask(statement(*db, "DELETE FROM rondo_task WHERE state = 3", "", ""));
  CHECK(db->ask("SELECT count(*) FROM rondo_task") == "1");
  CHECK(db->ask("SELECT count(*) FROM rondo_payload") == "0");
  CHECK(store->find(live));
}

TEST_CASE("operators: tasks that a node holds can be taken from it, and it notices") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  worker lost(*db, "lost"), other(*db, "other");
  task_in(state::waiting, *store, lost);
  const ticket held = ticket_of(lost.claim_one());
  db->ask(statement(*db, "owner = 'shop", "shop-7:4711:89abcdef01234567", "lost"));
  CHECK_FALSE(lost.begin(held));
  CHECK(other.begin(ticket_of(other.claim_one())));
}

TEST_CASE("operators: a queue can be renamed") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  const std::int64_t id = store->submit_after(1h, {.queue = "orders"});
  db->ask(statement(*db, "SET queue =", "orders_eu", "orders_us"));
  CHECK(store->find(id)->queue == "orders_us");
}

}  // namespace durable_operators_sql
}  // namespace durable_test
