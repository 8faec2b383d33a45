// How the tables of PostgreSQL are created, and what happens when somebody changes or moves them, or changes settings.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

#include "durable/errors.hpp"
#include "durable/postgresql/connection.hpp"
#include "durable/postgresql/schema.hpp"
#include "durable/postgresql_database.hpp"
#include "threads/patience.hpp"

namespace durable_postgresql_schema {

using namespace durable_test;
namespace postgresql = rondo::durable::detail::postgresql;
using rondo::durable::dispatcher;
using rondo::durable::dispatcher_options;
using rondo::durable::planned;
using rondo::durable::schedule;
using rondo::durable::store;
using rondo::durable::store_error;
using rondo::durable::task;

// How they are created, and the errors if they have been changed.

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

// Settings of a database, and tables that somebody changes, under sessions that are connected.

TEST_CASE("where the database has array_nulls = off, tasks run and fail and are repeated") {
  postgresql_database db(*postgresql_server::get());
  db.ask("do $$ begin execute format('alter database %I set array_nulls = off', current_database()); end $$");
  const auto tasks = db.open_store();
  worker w(db);
  tasks->submit_at(db.now() - 2min, {.payload = "p"});
  ticket t = ticket_of(w.claim_one());
  CHECK(w.begin(t));
  CHECK(w.retry(t, -1min));
  t = ticket_of(w.claim_one());
  CHECK(w.begin(t));
  CHECK(w.give_up(t, "null"));
  CHECK(db.ask("select reason from rondo_task") == "null");
  const auto id = tasks->repeat({.key = "k", .when = schedule::every(1h)});
  db.pass(1h);
  const claim due = w.claim_one();
  REQUIRE(due.what.id == id);
  const auto point = *due.what.point;
  CHECK(w.take({.begun = {ticket_of(due)}, .points = {{ticket_of(due), {point}}}}).begun.size() == 1);
  CHECK(w.take({.passed = {{.of = ticket_of(due), .next = rondo::detail::zoned_point{point + 1h}}}})
            .passed.size() == 1);
  CHECK(tasks->find(id)->point == point + 1h);
}

TEST_CASE("where transactions are read only and serializable by default, ours are neither") {
  postgresql_database db(*postgresql_server::get());
  user_connection changes(db.url());
  changes.run(
      "do $$ begin execute format('alter database %I set default_transaction_read_only = on', "
      "current_database());"
      " execute format('alter database %I set default_transaction_isolation = serializable', "
      "current_database());"
      " end $$");
  const auto tasks = rondo::durable::store::open(db.url());
  tasks->submit_after(0s, {.payload = std::string(1000, 'p')});
  tasks->submit_all(std::vector<planned>(2, {.what = {.payload = std::string(1000, 'p')}}));
  worker w(db);
  for (const claim& c : w.claim_up_to(3)) CHECK((w.begin(ticket_of(c)) && w.finish(ticket_of(c))));
  CHECK(db.ask("select count(*) from rondo_task") == "0");
  constexpr postgresql::statement ask{
      "ask", "select current_setting('transaction_isolation') || current_setting('transaction_read_only')"};
  postgresql::connection own(db.url());
  CHECK(own.run(ask, {}).bytes(0, 0) == "read committedoff");
  CHECK(own.run_all({{&ask, {}}}, postgresql::commit::soon).at(0).bytes(0, 0) == "read committedoff");
}

TEST_CASE("a transaction has the settings of our statements, and the connection none") {
  const postgresql_database db(*postgresql_server::get());
  constexpr postgresql::statement ask{
      "ask",
      "select concat_ws(' ', current_setting('enable_seqscan'), current_setting('plan_cache_mode'), "
      "current_setting('synchronous_commit'), current_setting('lock_timeout'))"};
  for (const auto waits : {postgresql::lock_wait::as_configured, postgresql::lock_wait::one_second}) {
    postgresql::connection own(db.url(), waits);
    const std::string patience = waits == postgresql::lock_wait::one_second ? "1s" : "0";
    CHECK(own.run(ask, {}).bytes(0, 0) == "off force_generic_plan on " + patience);
    CHECK(own.run_all({{&ask, {}}}, postgresql::commit::soon).at(0).bytes(0, 0) ==
          "off force_generic_plan off " + patience);
    own.begin();
    CHECK(own.run(ask, {}).bytes(0, 0) == "off force_generic_plan on " + patience);
    own.commit_all();
    const auto left = own.run_plain("select string_agg(name, ' ') from pg_settings where source = 'session'");
    CHECK(left.bytes(0, 0) == "");
  }
}

TEST_CASE("a role whose sessions run no triggers is refused") {
  postgresql_database db(*postgresql_server::get());
  db.ask(
      "do $$ begin execute format('alter database %I set session_replication_role = replica', "
      "current_database()); end $$");
  CHECK(error_of([&] {
          rondo::durable::store::open(db.url());
        }).find("session_replication_role is replica") != std::string::npos);
}

TEST_CASE("a submission that a trigger refuses at its commit is refused, and the next one is made") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  db.ask(R"sql(
    create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not on a Sunday'; end $$;
    create constraint trigger refuse after insert on rondo_task deferrable initially deferred
      for each row when (new.queue = 'sunday') execute function refuse();
  )sql");
  for (int round = 0; round < 2; ++round) {
    CHECK(error_of([&] { tasks->submit_after(0s, {.queue = "sunday"}); }) ==
          "rondo: PostgreSQL: not on a Sunday, SQLSTATE P0001");
    CHECK(error_of([&] { tasks->submit_all(std::vector<planned>(2, {.what = {.queue = "sunday"}})); }) ==
          "rondo: PostgreSQL: not on a Sunday, SQLSTATE P0001");
    CHECK(tasks->submit_after(0s, {.queue = "monday"}) > 0);
  }
  CHECK(db.ask("select count(*) from rondo_task where queue = 'sunday'") == "0");
}

TEST_CASE("a submission is repeated if the server refuses it for an index that is being built anew") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  // As such an index does, at a moment that no test can choose.
  db.ask(R"sql(
    create sequence tries;
    create function refuse() returns trigger language plpgsql as $$ begin
      if nextval('tries') = 1 then
        raise exception 'duplicate key value violates unique constraint "rondo_task_key_ccnew"' using errcode = '23505';
      end if;
      return new;
    end $$;
    create trigger refuse before insert on rondo_task for each row execute function refuse();
  )sql");
  CHECK(tasks->submit_after(0s, {.key = "k"}) > 0);
  CHECK(db.ask("select count(*) || ' of ' || max(last_value) from rondo_task, tries") == "1 of 2");
}

TEST_CASE("after a column's type was changed, a store goes on, and a session with its next call but one") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  worker w(db);
  const auto id = tasks->submit_after(0s, {.payload = "p"});
  const ticket t = ticket_of(w.claim_one());
  CHECK(tasks->find(id)->attempt == 0);
  db.ask("alter table rondo_task alter column attempt type bigint");
  CHECK(tasks->find(id)->attempt == 0);
  w.give_back(t);
  CHECK_THROWS_AS(w.claim_up_to(1), store_error);
  const ticket again = ticket_of(w.claim_one());
  CHECK(w.begin(again));
  CHECK(tasks->find(id)->attempt == 1);
}

// Schemas that are renamed, and tables that are moved to another schema, while tasks run.

/// A queue in the schema "live", which our sessions and stores search, also under its other name.
struct in_schema {
  postgresql_database db{*postgresql_server::get()};
  user_connection operator_at{db.url()};
  std::string url = db.url() + "&options=-csearch_path%3Dlive,moved";

  in_schema() { operator_at.run("drop schema if exists live, moved cascade; create schema live"); }
  ~in_schema() { operator_at.run("drop schema if exists live, moved cascade"); }
  in_schema(const in_schema&) = delete;
  in_schema& operator=(const in_schema&) = delete;
};

const std::array<std::string, 2> moves{"alter schema live rename to moved", R"sql(
  create schema moved;
  do $$ declare t text; begin
    for t in select tablename from pg_tables where schemaname = 'live' order by tablename desc loop
      execute format('alter table live.%I set schema moved', t);
    end loop;
  end $$
)sql"};

TEST_CASE("lanes go on while their schema is renamed, or their tables are moved to another one") {
  for (const std::string& move : moves) {
    CAPTURE(move);
    const in_schema x;
    const auto tasks = store::open(x.url);
    std::atomic<int> runs{0};
    const auto reach = [&](int wanted) {
      const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
      while (runs < wanted && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return runs.load();
    };
    rondo::timer time;
    dispatcher_options o;
    o.on_error = [](const std::string& what) { MESSAGE(what); };
    dispatcher one(
        time, *tasks, [&](const task&) { ++runs; }, o);
    const auto submit_some = [&] {
      for (int n = 0; n != 12; ++n) tasks->submit_after(0s, {.lane = n % 2 == 0 ? "a" : "b"});
    };
    submit_some();
    CHECK(reach(12) == 12);
    user_connection(x.db.url()).run(move);
    submit_some();
    CHECK(reach(24) == 24);
    // Somebody else's tables under the old name do not matter.
    user_connection(x.db.url()).run("create schema if not exists live");
    submit_some();
    CHECK(reach(36) == 36);
    one.stop();
    CHECK(one.stats().completed == 36);
    CHECK_NOTHROW(store::open(x.url));
  }
}

TEST_CASE(
    "tables that move to where later connections search are found by a store at once, and by a session's "
    "next turn") {
  in_schema x;
  const auto search = [&](const std::string& schema) {
    x.operator_at.run("do $$ begin execute format('alter database %I set search_path = " + schema +
                      "', current_database()); end $$");
  };
  search("live");
  const auto tasks = store::open(x.db.url());
  worker w(x.db);
  tasks->submit_after(0s, {.lane = "a"});
  x.operator_at.run(moves[1]);
  search("moved");
  tasks->submit_after(0s, {.lane = "b"});
  CHECK_THROWS_AS(w.claim_up_to(2), store_error);
  CHECK(w.claim_up_to(2).size() == 2);
}

TEST_CASE("the migration of version 2 replaces the functions of lanes, wherever they and the tables are") {
  std::ifstream dump(RONDO_TESTS "/durable/version_2/postgresql.sql");
  const std::string version_2(std::istreambuf_iterator<char>(dump), {});
  for (const std::string& move : moves) {
    CAPTURE(move);
    const in_schema x;
    user_connection own(x.url);
    own.run(version_2);
    own.run(move);
    own.run("create schema if not exists live");
    const auto tasks = store::open(x.url);
    CHECK(own.run("select string_agg(pronamespace::regnamespace::text, ' ') from pg_proc "
                  "where proname in ('rondo_lane_enter', 'rondo_lane_next')") == "moved moved");
    CHECK(own.run("select distinct proconfig from pg_proc where proname = 'rondo_lane_next'") ==
          "{\"search_path=moved, pg_temp\"}");
    CHECK(own.run("select state from moved.rondo_task where id = 2") == "6");
    user_connection(x.db.url()).run("delete from moved.rondo_task where id = 1");
    CHECK(own.run("select state from moved.rondo_task where id = 2") == "5");
    CHECK_NOTHROW(store::open(x.url));
  }
}

}  // namespace durable_postgresql_schema
