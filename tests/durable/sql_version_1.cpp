// Databases that Rondo 0.2 wrote: their schema has version 1. The same tests run for both engines, each with the dump of
// such a database: three dispatchers had been killed while they held and ran tasks. Also one that a development version
// after 0.2 wrote, whose schema has version 2.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "durable/sql_database.hpp"

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
