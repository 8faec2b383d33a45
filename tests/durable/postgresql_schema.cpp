// How the tables of PostgreSQL are created, and the errors if they have been changed.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "durable/postgresql/schema.hpp"
#include "durable/postgresql_database.hpp"

namespace durable_postgresql_schema {

using namespace durable_test;
using rondo::durable::store;
using rondo::durable::store_error;
namespace postgresql = rondo::durable::detail::postgresql;

postgresql_database new_postgresql_database() { return postgresql_database(*postgresql_server::get()); }

std::string refusal(const std::function<void()>& f) {
  try {
    f();
    return "";
  } catch (const store_error& error) {
    return error.what();
  }
}

std::string refusal_to_open(const postgresql_database& db) {
  return refusal([&] { store::open(db.url()); });
}

TEST_CASE("several threads that open an empty database at once create its tables once") {
  for (int round = 0; round < 5; ++round) {
    auto db = new_postgresql_database();
    std::atomic<int> opened = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 6; ++i)
        threads.emplace_back([&] {
          try {
            store::open(db.url())->submit_after(1h, {});
            ++opened;
          } catch (const std::exception& error) {
            MESSAGE(error.what());
          }
        });
    }
    CHECK(opened == 6);
    CHECK(db.ask("select count(*) from rondo_task") == "6");
    CHECK(db.ask("select string_agg(version::text, ',') from rondo_schema") == "4");
  }
}

TEST_CASE("a database that is opened again keeps its tasks") {
  auto db = new_postgresql_database();
  const auto id = store::open(db.url())->submit_after(1h, {.payload = "p"});
  CHECK(store::open(db.url())->find(id)->payload == "p");
}

TEST_CASE("a newer schema is refused, and not changed") {
  auto db = new_postgresql_database();
  store::open(db.url());
  db.ask("update rondo_schema set version = 7");
  CHECK(
      refusal_to_open(db) ==
      "rondo: PostgreSQL: the schema has version 7, and this program knows only versions up to 4: it needs a "
      "later "
      "version of rondo-durable");
  CHECK(db.ask("select version from rondo_schema") == "7");
}

TEST_CASE("a damaged schema is refused, and the message describes the damage") {
  const std::array<std::array<const char*, 2>, 23> damages{{
      {"alter table rondo_task drop column fence", "column \"fence\" does not exist"},
      {"drop table rondo_task", "relation \"rondo_task\" does not exist"},
      {"drop table rondo_schema", "rondo_schema is missing"},
      {"alter table rondo_schema drop column version", "column \"version\" does not exist"},
      {"delete from rondo_schema", "rondo_schema does not have exactly one row"},
      {"insert into rondo_schema values (2)", "Restore a full dump"},
      {"update rondo_schema set version = 0", "rondo_schema must have a version greater than zero"},
      {"drop index rondo_task_due", "an index of rondo_task is missing"},
      {"drop index rondo_task_lease", "an index of rondo_task is missing"},
      {"drop index rondo_task_key", "an index of rondo_task is missing"},
      {"drop index rondo_task_dead", "an index of rondo_task is missing"},
      {"drop index rondo_task_lane", "an index of rondo_task is missing"},
      {"drop index rondo_task_lane_due", "an index of rondo_task is missing"},
      {"drop index rondo_task_lane_busy", "an index of rondo_task is missing"},
      {"drop trigger rondo_task_gone on rondo_task", "the trigger rondo_task_gone is missing"},
      {"drop trigger rondo_lane_entered on rondo_task", "the trigger rondo_lane_entered is missing"},
      {"drop trigger rondo_lane_changed on rondo_task", "the trigger rondo_lane_changed is missing"},
      {"drop trigger rondo_lane_left on rondo_task", "the trigger rondo_lane_left is missing"},
      {"drop trigger rondo_lane_gone on rondo_task", "the trigger rondo_lane_gone is missing"},
      {"drop table rondo_lane_stuck", "relation \"rondo_lane_stuck\" does not exist"},
      {"drop table rondo_payload", "relation \"rondo_payload\" does not exist"},
      {"drop table rondo_paused", "relation \"rondo_paused\" does not exist"},
      {"drop table rondo_owner", "relation \"rondo_owner\" does not exist"},
  }};
  for (const auto& [damage, what] : damages) {
    auto db = new_postgresql_database();
    store::open(db.url());
    db.ask(damage);
    const auto said = refusal_to_open(db);
    CAPTURE(said);
    CHECK(said.find("damaged") != std::string::npos);
    CHECK(said.find(what) != std::string::npos);
    CHECK(said.rfind("PostgreSQL:") ==
          said.find("PostgreSQL:"));  // once, also around the server's own message
  }
}

TEST_CASE("a database whose encoding is not UTF-8 is refused, as it does not take every text") {
  auto& server = *postgresql_server::get();
  for (const std::string encoding : {"LATIN1", "SQL_ASCII"}) {
    const auto name = encoding == "LATIN1" ? "encoded_1" : "encoded_2";
    user_connection(server.url())
        .run(std::string("create database ") + name + " encoding '" + encoding + "' template template0");
    CHECK(refusal([&] { store::open(server.url(name)); }) ==
          "rondo: PostgreSQL: the database has the encoding " + encoding + ", but must have UTF8");
  }
}

TEST_CASE("another program's table of the same name is not taken for ours") {
  auto db = new_postgresql_database();
  db.ask("create table rondo_task (id integer)");
  CHECK(refusal_to_open(db).find("damaged, or not this library's") != std::string::npos);
}

TEST_CASE("the statements of a later version are run once, and those of earlier versions are not repeated") {
  auto db = new_postgresql_database();
  const auto id = store::open(db.url())->submit_after(1h, {});
  std::vector<postgresql::migration> steps(postgresql::migrations().begin(), postgresql::migrations().end());
  steps.push_back({5, "alter table rondo_task add column colour text; update rondo_task set colour = 'red'"});
  postgresql::connection own(db.url());
  for (int i = 0; i < 2; ++i) postgresql::migrate(own, steps);
  CHECK(db.ask("select colour from rondo_task where id = " + std::to_string(id)) == "red");
  CHECK(db.ask("select version from rondo_schema") == "5");
  CHECK(refusal_to_open(db).find("version 5") != std::string::npos);
}

TEST_CASE("a migration that fails leaves the schema as it was") {
  auto db = new_postgresql_database();
  store::open(db.url());
  std::vector<postgresql::migration> steps(postgresql::migrations().begin(), postgresql::migrations().end());
  steps.push_back({5, "alter table rondo_task add column colour text"});
  steps.push_back({6, "alter table rondo_task drop column nonsense"});
  postgresql::connection own(db.url());
  CHECK(refusal([&] { postgresql::migrate(own, steps); }).find("nonsense") != std::string::npos);
  CHECK(db.ask("select version from rondo_schema") == "4");
  CHECK(db.ask("select count(*) from pg_attribute where attrelid = 'rondo_task'::regclass and attname = "
               "'colour'") == "0");
  CHECK_NOTHROW(postgresql::migrate(own));
  CHECK_NOTHROW(store::open(db.url()));
}

TEST_CASE(
    "a user who may only read and write the tables can open them; one who may not create them gets that as "
    "an error") {
  auto db = new_postgresql_database();
  db.ask("drop role if exists plain");
  db.ask("create role plain login");
  auto url = db.url();
  url.replace(url.find("rondo@"), 6, "plain@");
  CHECK(refusal([&] { store::open(url); }).find("permission denied for schema public") != std::string::npos);
  store::open(db.url());
  db.ask("grant select on rondo_schema to plain");
  const auto said = refusal([&] { store::open(url); });
  CHECK(said.find("permission denied for table rondo_task") != std::string::npos);
  CHECK(said.find("damaged") == std::string::npos);
  db.ask(
      "grant select, insert, update, delete on rondo_task, rondo_payload, rondo_paused, rondo_owner, "
      "rondo_lane_stuck to plain");
  const auto tasks = store::open(url);
  CHECK(tasks->submit_after(1h, {}) > 0);
  CHECK(tasks->cancel(tasks->submit_after(1h, {.payload = std::string(1000, 'x')})));
  CHECK(tasks->cancel(tasks->submit_after(1h, {.lane = "a"})));
}

}  // namespace durable_postgresql_schema
