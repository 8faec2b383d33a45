// Settings of a database, and tables that somebody changes, under sessions that are connected.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/errors.hpp"
#include "durable/postgresql/connection.hpp"
#include "durable/postgresql_database.hpp"

namespace durable_postgresql_settings {

using namespace durable_test;
using rondo::durable::planned;
using rondo::durable::schedule;
using rondo::durable::store_error;
namespace postgresql = rondo::durable::detail::postgresql;

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

}  // namespace durable_postgresql_settings
