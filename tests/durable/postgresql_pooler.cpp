// A pooler between the library and the server that gives each transaction another session of the server.
#include <doctest/doctest.h>

#include <iostream>
#include <string>

#include <rondo/durable.hpp>

#include "durable/errors.hpp"
#include "durable/postgresql/connection.hpp"
#include "durable/postgresql/session.hpp"
#include "durable/postgresql_database.hpp"

namespace durable_postgresql_pooler {

using namespace durable_test;
namespace postgresql = rondo::durable::detail::postgresql;
using rondo::durable::store;

struct behind_pooler {
  postgresql_database db{*postgresql_server::get()};
  std::string url = postgresql_server::get()->by_pooler_of_transactions(db.url());

  behind_pooler() {
    if (url.empty()) std::cout << "SKIP: PgBouncer is not installed (Debian: pgbouncer)\n";
  }
  /// Its one session of the server so far is in use until this ends.
  user_connection in_a_transaction() const {
    user_connection other(url);
    other.run("begin");
    other.run("select 1");
    return other;
  }
};

TEST_CASE("open() refuses a pooler of transactions, and changes nothing") {
  behind_pooler x;
  if (x.url.empty()) return;
  CHECK(error_of([&] { store::open(x.url); }) == postgresql::pools_transactions);
  CHECK(x.db.ask("select count(*) from pg_tables where tablename like 'rondo%'") == "0");
}

TEST_CASE("a connection notices that another session of the server executes its transactions") {
  behind_pooler x;
  if (x.url.empty()) return;
  constexpr postgresql::statement one{"one", "select 1"};
  postgresql::connection own(x.url);
  own.run(one, {});
  CHECK_FALSE(own.pooled_by_transactions());
  postgresql::connection moved(x.url);
  moved.make();
  const auto other = x.in_a_transaction();
  moved.run(one, {});
  CHECK(moved.pooled_by_transactions());
}

TEST_CASE("a session that is given another session of the server says so once, and goes on") {
  behind_pooler x;
  if (x.url.empty()) return;
  const auto tasks = x.db.open_store();
  postgresql::server_session session(x.url, "worker", worker::default_rules());
  const auto other = x.in_a_transaction();
  int told = 0;
  for (int turn = 0; turn < 6; ++turn) {
    tasks->submit_after(0s, {});
    told +=
        error_of([&] { session.take({.adopt = true, .claim_up_to = 10}); }) == postgresql::pools_transactions
            ? 1
            : 0;
  }
  CHECK(told == 1);
  CHECK(x.db.ask("select count(*) from rondo_task where state = 1") == "6");
}

TEST_CASE("other clients of the pooler inherit no setting") {
  behind_pooler x;
  if (x.url.empty()) return;
  {
    const auto tasks = x.db.open_store();
    postgresql::server_session session(x.url, "worker", worker::default_rules());
    session.take({.claim_up_to = 1});
  }
  CHECK(user_connection(x.url).run(
            "select string_agg(name, ' ') from pg_settings where source = 'session' and name <> "
            "'application_name' and name <> 'client_encoding'") == "");
}

}  // namespace durable_postgresql_pooler
