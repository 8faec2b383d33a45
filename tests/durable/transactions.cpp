// Calls inside the user's own transaction. The same tests run for each engine.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "durable/database.hpp"

namespace durable_transactions {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::submission;

struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> store = db->open_store();
  std::unique_ptr<their_connection> mine = db->connect();
};

std::string rows(database& db) { return db.ask("SELECT count(*) FROM rondo_task"); }

TEST_CASE("others see a submission in a transaction when the transaction commits") {
  in_use x;
  x.mine->execute("BEGIN");
  const std::int64_t after = x.store->submit_after(x.mine->handle(), 1h, {.payload = "after"});
  const std::int64_t at = x.store->submit_at(x.mine->handle(), x.db->now() + 1h, {.payload = "at"});
  CHECK(!x.store->find(after));
  CHECK(x.store->find(x.mine->handle(), after)->payload == "after");
  x.mine->execute("COMMIT");
  CHECK(x.store->find(after)->payload == "after");
  CHECK(x.store->find(at)->payload == "at");
}

TEST_CASE("when a transaction is rolled back, its submission goes with everything else in it") {
  in_use x;
  x.mine->execute("CREATE TABLE orders (number INTEGER)");
  x.mine->execute("BEGIN");
  x.mine->execute("INSERT INTO orders VALUES (1)");
  const std::int64_t id = x.store->submit_after(x.mine->handle(), 1h, {.key = "order 1"});
  x.mine->execute("ROLLBACK");
  CHECK(!x.store->find(id));
  CHECK(x.db->ask("SELECT count(*) FROM orders") == "0");
  CHECK_NOTHROW(x.store->submit_after(1h, {.key = "order 1"}));

  x.mine->execute("BEGIN");
  x.mine->execute("INSERT INTO orders VALUES (2)");
  const std::int64_t kept = x.store->submit_after(x.mine->handle(), 1h, {.key = "order 2"});
  x.mine->execute("COMMIT");
  CHECK(x.store->find(kept)->key == "order 2");
  CHECK(x.db->ask("SELECT number FROM orders") == "2");
}

TEST_CASE("cancel and reschedule in a transaction take effect with it") {
  in_use x;
  const std::int64_t by_id = x.store->submit_after(1h, {});
  const std::int64_t by_key = x.store->submit_after(1h, {.key = "k"});
  const std::int64_t moved = x.store->submit_after(1h, {});
  const auto change = [&] {
    x.mine->execute("BEGIN");
    CHECK(x.store->cancel(x.mine->handle(), by_id));
    CHECK(!x.store->cancel(x.mine->handle(), by_id));
    CHECK(x.store->cancel(x.mine->handle(), "default", "k"));
    CHECK(x.store->reschedule_after(x.mine->handle(), moved, 1h));
    CHECK(x.store->reschedule_at(x.mine->handle(), moved, x.db->now() + 5h));
    CHECK(!x.store->find(x.mine->handle(), by_key));
    CHECK(x.store->find(by_key));
  };
  change();
  x.mine->execute("ROLLBACK");
  CHECK(x.store->find(by_id));
  CHECK(x.store->find(by_key));
  CHECK(x.store->find(moved)->due < x.db->now() + 2h);
  change();
  x.mine->execute("COMMIT");
  CHECK(!x.store->find(by_id));
  CHECK(!x.store->find(by_key));
  CHECK(x.store->find(moved)->due > x.db->now() + 4h);
}

TEST_CASE("a run that a transaction cancels is the last only if the transaction commits") {
  for (const bool commits : {false, true}) {
    in_use x;
    worker w(*x.db);
    x.store->submit_after(0s, {});
    const ticket t = ticket_of(w.claim_one());
    CHECK(w.begin(t));
    x.mine->execute("BEGIN");
    CHECK(!x.store->cancel(x.mine->handle(), t.id));
    x.mine->execute(commits ? "COMMIT" : "ROLLBACK");
    CHECK(w.retry(t, 0s));
    CHECK(w.claim_up_to(10).size() == (commits ? 0 : 1));
  }
}

TEST_CASE("a submission with a taken key is refused in a transaction, which continues") {
  in_use x;
  const std::int64_t first = x.store->submit_after(1h, {.key = "k"});
  x.mine->execute("BEGIN");
  const std::int64_t before = x.store->submit_after(x.mine->handle(), 1h, {});
  try {
    x.store->submit_after(x.mine->handle(), 1h, {.key = "k"});
    FAIL("it was accepted");
  } catch (const key_taken& e) {
    CHECK(e.id() == first);
  }
  const std::int64_t after = x.store->submit_after(x.mine->handle(), 1h, {});
  x.mine->execute("COMMIT");
  CHECK(x.store->find(before));
  CHECK(x.store->find(after));
  CHECK(rows(*x.db) == "3");
}

TEST_CASE("the key of a task that the same transaction has submitted is taken, and can be replaced") {
  in_use x;
  x.mine->execute("BEGIN");
  const std::int64_t first = x.store->submit_after(x.mine->handle(), 1h, {.key = "k"});
  CHECK_THROWS_AS(x.store->submit_after(x.mine->handle(), 1h, {.key = "k"}), key_taken);
  const std::int64_t second = x.store->submit_after(x.mine->handle(), 1h, {.key = "k", .replace = true});
  x.mine->execute("COMMIT");
  CHECK(!x.store->find(first));
  CHECK(x.store->find(second)->key == "k");
}

TEST_CASE("a replacement in a transaction that is rolled back leaves the old task as it was") {
  in_use x;
  const std::int64_t old = x.store->submit_after(1h, {.payload = "old", .key = "k"});
  x.mine->execute("BEGIN");
  x.store->submit_after(x.mine->handle(), 1h, {.payload = "new", .key = "k", .replace = true});
  x.mine->execute("ROLLBACK");
  CHECK(x.store->find(old)->payload == "old");
  CHECK_THROWS_AS(x.store->submit_after(1h, {.key = "k"}), key_taken);
}

TEST_CASE("on a connection without a transaction, each call is a transaction of its own") {
  in_use x;
  const std::int64_t id = x.store->submit_after(x.mine->handle(), 1h, {.key = "k"});
  CHECK(x.store->find(id));
  CHECK_THROWS_AS(x.store->submit_after(x.mine->handle(), 1h, {.key = "k"}), key_taken);
  const std::int64_t second = x.store->submit_after(x.mine->handle(), 1h, {.key = "k", .replace = true});
  CHECK(!x.store->find(id));
  CHECK(x.store->cancel(x.mine->handle(), second));
  CHECK(!x.store->find(second));
}

TEST_CASE("a submission is also checked in a transaction, which continues") {
  in_use x;
  x.mine->execute("BEGIN");
  CHECK_THROWS_AS(x.store->submit_after(x.mine->handle(), 1h, {.queue = ""}), std::invalid_argument);
  CHECK_THROWS_AS(x.store->submit_at(x.mine->handle(), x.db->now(), {.key = "\xff"}), std::invalid_argument);
  CHECK_THROWS_AS(x.store->cancel(x.mine->handle(), "", "k"), std::invalid_argument);
  const std::int64_t id = x.store->submit_after(x.mine->handle(), 1h, {});
  x.mine->execute("COMMIT");
  CHECK(x.store->find(id));
}

TEST_CASE("a null transaction, or one of the other engine or of another database, is refused") {
  in_use x, other;
  CHECK_THROWS_AS(rondo::durable::transaction(static_cast<sqlite3*>(nullptr)), std::invalid_argument);
  CHECK_THROWS_AS(rondo::durable::transaction(static_cast<pg_conn*>(nullptr)), std::invalid_argument);
  const auto mine = x.mine->handle();
  int none = 0;  // nobody accesses it
  const auto foreign = mine.sqlite() != nullptr
                           ? rondo::durable::transaction(reinterpret_cast<pg_conn*>(&none))
                           : rondo::durable::transaction(reinterpret_cast<sqlite3*>(&none));
  CHECK_THROWS_AS(x.store->submit_after(foreign, 1h, {}), std::invalid_argument);
  CHECK_THROWS_AS(x.store->cancel(foreign, 1), std::invalid_argument);
  CHECK_THROWS_AS(x.store->cancel(foreign, "default", "k"), std::invalid_argument);
  CHECK_THROWS_AS(x.store->reschedule_after(foreign, 1, 1h), std::invalid_argument);
  CHECK_THROWS_AS(x.store->find(foreign, 1), std::invalid_argument);
  CHECK_THROWS_AS(x.store->submit_after(other.mine->handle(), 1h, {}), std::invalid_argument);
  CHECK(rows(*x.db) == "0");
  CHECK(rows(*other.db) == "0");
}

}  // namespace durable_transactions
