// Settings of a database, and tables that somebody changes, under sessions that are connected.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/postgresql_database.hpp"

namespace durable_postgresql_settings {

using namespace durable_test;
using rondo::durable::schedule;
using rondo::durable::store_error;

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
  CHECK(w.take({.begun = {ticket_of(due)}, .points = {{ticket_of(due), point}}}).begun.size() == 1);
  CHECK(w.take({.passed = {{.of = ticket_of(due), .next = point + 1h}}}).passed.size() == 1);
  CHECK(tasks->find(id)->point == point + 1h);
}

TEST_CASE("after a column's type was changed, a store and a session go on with their next call but one") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  worker w(db);
  const auto id = tasks->submit_after(0s, {.payload = "p"});
  const ticket t = ticket_of(w.claim_one());
  CHECK(tasks->find(id)->attempt == 0);
  db.ask("alter table rondo_task alter column attempt type bigint");
  CHECK_THROWS_AS(tasks->find(id), store_error);
  CHECK(tasks->find(id)->attempt == 0);
  w.give_back(t);
  CHECK_THROWS_AS(w.claim_up_to(1), store_error);
  const ticket again = ticket_of(w.claim_one());
  CHECK(w.begin(again));
  CHECK(tasks->find(id)->attempt == 1);
}

}  // namespace durable_postgresql_settings
