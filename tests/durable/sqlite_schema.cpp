// The schema: which ones are refused, and how they are migrated from one version to the next.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "durable/sqlite_database.hpp"

namespace durable_sqlite_schema {

using namespace durable_test;
using rondo::durable::store;
using rondo::durable::store_error;
using rondo::durable::detail::sqlite::migrations;

std::string refusal(const sqlite_database& db) {
  try {
    store::open(db.url());
    return "";
  } catch (const store_error& e) {
    return e.what();
  }
}

/// All migrations, and one that a later version of Rondo might add.
migrations later(const std::string& statement) {
  migrations steps = rondo::durable::detail::sqlite::all_migrations();
  steps.push_back({"CREATE TABLE rondo_news (x INTEGER)", statement});
  return steps;
}

std::unique_ptr<store> open_with(const sqlite_database& db, const migrations& steps) {
  auto settings = db.settings();
  settings.steps = steps;
  return rondo::durable::detail::store_access::make(
      rondo::durable::detail::sqlite::open(db.file(), settings));
}

const char* const add_column = "ALTER TABLE rondo_task ADD COLUMN priority INTEGER NOT NULL DEFAULT 0";

TEST_CASE("a new schema has version 4") {
  sqlite_database db;
  store::open(db.url());
  CHECK(db.ask("SELECT version FROM rondo_schema") == "4");
  CHECK(rondo::durable::detail::sqlite::all_migrations().size() == 4);
}

TEST_CASE("a schema of a later version is refused, and left unchanged") {
  sqlite_database db;
  open_with(db, later(add_column));
  CHECK(refusal(db) ==
        "rondo: SQLite, " + db.file() +
            ": its schema has version 5, which is newer than what this program knows (4): use a later "
            "release of Rondo");
  CHECK(db.ask("SELECT version FROM rondo_schema") == "5");
}

TEST_CASE("a migration keeps the tasks, and open stores of the earlier version still work") {
  sqlite_database db;
  const auto old_store = db.open_store();
  worker old_worker(db);
  const std::int64_t first = old_store->submit_after(0s, {.payload = "first"});
  const auto new_store = open_with(db, later(add_column));
  CHECK(db.ask("SELECT version FROM rondo_schema") == "5");
  CHECK(db.ask("SELECT priority FROM rondo_task") == "0");
  CHECK(new_store->find(first)->payload == "first");
  const std::int64_t second = old_store->submit_after(0s, {.payload = "second"});
  CHECK(new_store->find(second)->payload == "second");
  CHECK(old_worker.claim_up_to(10).size() == 2);
  CHECK(refusal(db) != "");
}

TEST_CASE("a migration that fails leaves the schema and its tasks as they were") {
  sqlite_database db;
  const auto old_store = db.open_store();
  const std::int64_t id = old_store->submit_after(1h, {});
  CHECK_THROWS_AS(open_with(db, later("ALTER TABLE no_such_table ADD COLUMN x")), store_error);
  CHECK(db.ask("SELECT version FROM rondo_schema") == "4");
  CHECK(db.ask("SELECT count(*) FROM sqlite_schema WHERE name = 'rondo_news'") == "0");
  CHECK(old_store->find(id));
  CHECK(refusal(db) == "");
}

TEST_CASE("when threads migrate at the same time, the migration is done once") {
  for (int round = 0; round < 10; ++round) {
    sqlite_database db;
    db.open_store();
    std::atomic<int> ready{0}, opened{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 3) std::this_thread::yield();
        open_with(db, later(add_column));
        ++opened;
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(opened == 3);
    CHECK(db.ask("SELECT version FROM rondo_schema") == "5");
  }
}

TEST_CASE("several versions are migrated at once") {
  sqlite_database db;
  migrations steps = later(add_column);
  steps.push_back({"INSERT INTO rondo_news VALUES (3)"});
  open_with(db, steps);
  CHECK(db.ask("SELECT version FROM rondo_schema") == "6");
  CHECK(db.ask("SELECT x FROM rondo_news") == "3");
}

TEST_CASE("a damaged schema is refused, and the message tells what is wrong") {
  struct damage {
    const char* by;
    const char* said;
  };
  for (const damage& d : {
           damage{"ALTER TABLE rondo_task DROP COLUMN reason",
                  "the schema is damaged: no such column: reason"},
           damage{"DROP TABLE rondo_schema", "a table rondo_task, but no rondo_schema with its version"},
           damage{"DELETE FROM rondo_schema", "rondo_schema must have one row"},
           damage{"INSERT INTO rondo_schema VALUES (2)", "rondo_schema must have one row"},
           damage{"UPDATE rondo_schema SET version = 0", "a version greater than zero"},
           damage{"UPDATE rondo_schema SET version = -1", "a version greater than zero"},
           damage{"DROP INDEX rondo_task_due", "the schema is damaged: no such index: rondo_task_due"},
           damage{"DROP INDEX rondo_task_lease", "the schema is damaged: no such index: rondo_task_lease"},
           damage{"DROP INDEX rondo_task_key", "the schema is damaged: no such index: rondo_task_key"},
           damage{"DROP INDEX rondo_task_dead", "the schema is damaged: no such index: rondo_task_dead"},
           damage{"DROP INDEX rondo_task_lane", "the schema is damaged: no such index: rondo_task_lane"},
           damage{"DROP INDEX rondo_task_lane_due",
                  "the schema is damaged: no such index: rondo_task_lane_due"},
           damage{"DROP INDEX rondo_task_lane_busy",
                  "the schema is damaged: no such index: rondo_task_lane_busy"},
           damage{"DROP TRIGGER rondo_task_gone", "the schema is damaged: no such trigger: rondo_task_gone"},
           damage{"DROP TRIGGER rondo_lane_changed",
                  "the schema is damaged: no such trigger: rondo_lane_changed"},
           damage{"DROP TABLE rondo_task", "the schema is damaged: no such index"},
           damage{"DROP TABLE rondo_payload", "the schema is damaged: no such table: rondo_payload"},
           damage{"DROP TABLE rondo_paused", "the schema is damaged: no such table: rondo_paused"},
           damage{"DROP TABLE rondo_owner", "the schema is damaged: no such table: rondo_owner"},
       }) {
    CAPTURE(d.by);
    sqlite_database db;
    db.open_store();
    db.ask(d.by);
    CHECK(refusal(db).find(d.said) != std::string::npos);
    CHECK(refusal(db).find(db.file()) != std::string::npos);
  }
}

TEST_CASE("a migration of a damaged schema is refused, and undone") {
  sqlite_database db;
  db.open_store();
  db.ask("DROP INDEX rondo_task_key");
  CHECK_THROWS_AS(open_with(db, later(add_column)), store_error);
  CHECK(db.ask("SELECT version FROM rondo_schema") == "4");
}

}  // namespace durable_sqlite_schema
