// How sessions of PostgreSQL see that others have ended, when the server crashes and while rows are locked.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "durable/postgresql_database.hpp"
#include "threads/patience.hpp"

namespace durable_postgresql_owners {

using namespace durable_test;

TEST_CASE("after a crash of the server nobody counts as dead, as what seems to be held may be running") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  worker a(db, "a"), b(db, "b");
  tasks->submit_after(0s, {});
  const ticket t = ticket_of(a.claim_one());
  b.claim_up_to(1);
  CHECK(db.ask("select count(*) from rondo_owner") == "2");
  postgresql_server::get()->restart(postgresql_server::how::immediate);
  for (int i = 0; i != 5; ++i) b.session().changed();
  CHECK(db.ask("select string_agg(name, ',') from rondo_owner") == "b");
  CHECK(b.claim_up_to(1).empty());
  CHECK(a.begin(t));
  CHECK(db.ask("select count(*) from rondo_owner") == "2");
}

TEST_CASE("a session that has connected again is seen to live") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  worker a(db, "a"), b(db, "b");
  tasks->submit_after(0s, {});
  const ticket t = ticket_of(a.claim_one());
  postgresql_server::get()->restart(postgresql_server::how::fast);
  CHECK(a.take({.adopt = true}).claimed.size() == 1);  // connects
  for (int i = 0; i != 5; ++i) b.session().changed();
  CHECK(b.claim_up_to(1).empty());
  CHECK(a.begin(t));
}

TEST_CASE("a held task that somebody's transaction has is freed once that has ended") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  user_connection mine(db.url());
  worker other(db, "other");
  std::optional<worker> lost(std::in_place, db, "lost");
  tasks->submit_after(0s, {});
  lost->claim_one();
  mine.run("begin");
  mine.run("select id from rondo_task for update");
  lost.reset();
  const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
  while (!other.session().changed() && std::chrono::steady_clock::now() < end) {
  }
  CHECK(other.session().changed());  // still
  mine.run("rollback");
  CHECK(other.session().changed());
  CHECK(other.claim_up_to(1).size() == 1);
  CHECK_FALSE(other.session().changed());
}

}  // namespace durable_postgresql_owners
