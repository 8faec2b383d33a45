// Sessions of PostgreSQL: what wakes them, how they see that others have ended, and a pooler before the server.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/errors.hpp"
#include "durable/postgresql/connection.hpp"
#include "durable/postgresql/session.hpp"
#include "durable/postgresql_database.hpp"
#include "threads/patience.hpp"

namespace durable_postgresql_sessions {

using namespace durable_test;
namespace postgresql = rondo::durable::detail::postgresql;
using rondo::durable::store;

struct waiting {
  postgresql_database db{*postgresql_server::get()};
  std::unique_ptr<rondo::durable::store> tasks = db.open_store();
  worker w{db};

  /// Whether a wait ends with news. After `what` the wait is interrupted, so it also ends without news.
  template <class Function>
  bool woken_by(Function what) {
    auto woken = std::async(std::launch::async, [&] { return w.session().wait(); });
    what();
    // Earlier notifications reach the session before this one.
    tasks->submit_after(0s, {.queue = "another"});
    if (woken.wait_for(300ms) == std::future_status::timeout) w.session().interrupt();
    return woken.get();
  }

  /// Takes the news of what has been done so far.
  void drain() {
    woken_by([] {});
  }
};

TEST_CASE("a submission that is due soon wakes a waiting session; one that is due later does not") {
  waiting x;
  CHECK(x.woken_by([&] { x.tasks->submit_after(0s, {}); }));
  CHECK(x.woken_by([&] { x.tasks->submit_after(4s, {}); }));
  CHECK(!x.woken_by([&] { x.tasks->submit_after(1h, {}); }));
}

TEST_CASE("a submission to another queue wakes nobody") {
  waiting x;
  CHECK(!x.woken_by([&] { x.tasks->submit_after(0s, {.queue = "other"}); }));
}

TEST_CASE("a submission in a transaction wakes a session when it commits, and not if it is rolled back") {
  waiting x;
  const auto mine = x.db.connect();
  mine->execute("begin");
  CHECK(!x.woken_by([&] { x.tasks->submit_after(mine->handle(), 0s, {}); }));
  CHECK(x.woken_by([&] { mine->execute("commit"); }));
  mine->execute("begin");
  x.tasks->submit_after(mine->handle(), 0s, {});
  CHECK(!x.woken_by([&] { mine->execute("rollback"); }));
}

TEST_CASE("a list wakes a waiting session if one of its tasks is due soon") {
  waiting x;
  using rondo::durable::planned;
  const std::vector<planned> far = {{.when = 1h}, {.what = {.queue = "other"}}};
  const std::vector<planned> soon = {{.when = 1h}, {.when = 1s}, {.when = 1h}};
  CHECK(!x.woken_by([&] { x.tasks->submit_all(far); }));
  CHECK(x.woken_by([&] { x.tasks->submit_all(soon); }));
}

TEST_CASE("a queue that is resumed wakes a session, and so does a dead task that is retried") {
  waiting x;
  x.tasks->pause("default");
  CHECK(x.woken_by([&] { x.tasks->resume("default"); }));
  CHECK(!x.woken_by([&] { x.tasks->resume("default"); }));
  const auto id = task_in(state::dead, *x.tasks, x.w);
  x.drain();
  CHECK(x.woken_by([&] { x.tasks->retry(id); }));
}

TEST_CASE("the cancellation or replacement of a run in progress wakes its session") {
  waiting x;
  const auto running = [&] {
    const auto id = task_in(state::running, *x.tasks, x.w, {.key = "k"});
    x.drain();
    return id;
  };
  const auto id = running();
  CHECK(x.woken_by([&] { x.tasks->cancel(id); }));
  running();
  CHECK(x.woken_by([&] { x.tasks->cancel("default", "k"); }));
  running();
  CHECK(x.woken_by([&] { x.tasks->submit_after(1h, {.key = "k", .replace = true}); }));
  x.tasks->cancel("default", "k");
  running();
  CHECK(x.woken_by([&] {
    x.tasks->submit_all(
        std::vector<rondo::durable::planned>{{.what = {.key = "k", .replace = true}, .when = 1h}});
  }));
  CHECK(!x.woken_by([&] { x.tasks->cancel("default", "k"); }));  // it waits
}

TEST_CASE("a task that is moved to a time soon wakes a session") {
  waiting x;
  const auto id = x.tasks->submit_after(1h, {});
  CHECK(!x.woken_by([&] { x.tasks->reschedule_after(id, 2h); }));
  CHECK(x.woken_by([&] { x.tasks->reschedule_after(id, 1s); }));
  x.tasks->submit_after(1h, {.key = "k"});
  CHECK(!x.woken_by([&] { x.tasks->reschedule_after("default", "k", 2h); }));
  CHECK(x.woken_by([&] { x.tasks->reschedule_after("default", "k", 1s); }));
}

TEST_CASE("tasks that a session hands back wake the others, but not itself") {
  waiting x;
  worker other(x.db, "other");
  x.tasks->submit_after(0s, {});
  CHECK(x.w.session().wait());
  const auto t = ticket_of(x.w.claim_one());
  CHECK(!x.woken_by([] {}));
  x.w.give_back(t);
  CHECK(other.session().wait());  // for the submission and for this
  CHECK(!x.woken_by([] {}));
  const auto u = ticket_of(other.claim_one());
  CHECK(x.woken_by([&] { other.give_back(u); }));
  const auto v = ticket_of(other.claim_one());
  CHECK(other.begin(v));
  CHECK(x.woken_by([&] { other.unstart(v); }));
}

TEST_CASE(
    "a failed task that is to be tried again soon wakes the other sessions; one that waits long or is dead "
    "does not") {
  waiting x;
  worker other(x.db, "other");
  const auto running = [&] {
    x.tasks->submit_after(0s, {});
    CHECK(x.w.session().wait());
    const auto t = ticket_of(other.claim_one());
    CHECK(other.begin(t));
    return t;
  };
  const auto t = running(), u = running(), v = running();
  CHECK(!x.woken_by([] {}));
  CHECK(!x.woken_by([&] { CHECK(other.retry(t, 1h)); }));
  CHECK(!x.woken_by([&] { CHECK(other.give_up(u, "never works")); }));
  CHECK(x.woken_by([&] { CHECK(other.retry(v, 4s)); }));
}

TEST_CASE("an interrupt ends a wait, or the next one, once") {
  waiting x;
  auto woken = std::async(std::launch::async, [&] { return x.w.session().wait(); });
  x.w.session().interrupt();
  CHECK(!woken.get());
  for (int i = 0; i < 100'000; ++i) x.w.session().interrupt();  // more than a pipe holds
  CHECK(!x.w.session().wait());
  CHECK(x.woken_by([&] { x.tasks->submit_after(0s, {}); }));
}

TEST_CASE("a broken connection ends a wait, and tasks submitted since then count as news") {
  waiting x;
  x.w.take({.claim_up_to = 1});
  auto& server = *postgresql_server::get();
  CHECK(x.woken_by([&] { server.restart(postgresql_server::how::fast); }));
  CHECK(x.w.claim_up_to(10).empty());
  CHECK(x.w.session().wait());  // it listens again, but may have missed notifications
  CHECK(x.woken_by([&] { x.tasks->submit_after(0s, {}); }));
}

TEST_CASE("a session whose connection broke waits only for an interrupt") {
  waiting x;
  auto& server = *postgresql_server::get();
  server.stop(postgresql_server::how::fast);
  CHECK(x.w.session().wait());
  CHECK_THROWS_AS(x.w.claim_up_to(1), rondo::durable::store_error);
  x.w.session().interrupt();
  CHECK(!x.w.session().wait());
  server.start();
}

// How sessions of PostgreSQL see that others have ended, when the server crashes and while rows are locked.

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

// A pooler between the library and the server that gives each transaction another session of the server.

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

}  // namespace durable_postgresql_sessions
