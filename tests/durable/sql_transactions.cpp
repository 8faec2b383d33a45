// Calls inside the user's own transaction, and from several threads. The same tests run for SQLite and PostgreSQL.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "durable/sql_database.hpp"

// Calls inside the user's own transaction.
namespace durable_transactions {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::planned;
using rondo::durable::repeated;
using rondo::durable::schedule;
using rondo::durable::submission;
using rondo::durable::task_state;

struct in_use {
  std::unique_ptr<sql_database> db = new_sql_database();
  std::unique_ptr<rondo::durable::store> store = db->open_store();
  std::unique_ptr<their_connection> mine = db->connect();
};

repeated each_minute(const std::string& payload = "p") {
  return {.key = "k", .payload = payload, .when = schedule::every(1min)};
}

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
  CHECK(x.db->rows().size() == 3);
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
  CHECK(x.db->rows().empty());
  CHECK(other.db->rows().empty());
}

TEST_CASE("calls by key in a transaction take effect with it") {
  in_use x;
  const std::int64_t id = x.store->submit_after(1h, {.key = "k"});
  const auto due = x.store->find(id)->due;
  x.mine->execute("BEGIN");
  CHECK(x.store->reschedule_after(x.mine->handle(), "default", "k", 5h));
  CHECK(x.store->reschedule_at(x.mine->handle(), "default", "k", due + 7h));
  CHECK(x.store->find(x.mine->handle(), "default", "k")->due == due + 7h);
  CHECK(x.store->find("default", "k")->due == due);
  x.mine->execute("ROLLBACK");
  CHECK(x.store->find("default", "k")->due == due);
}

TEST_CASE("an empty list in a transaction adds nothing") {
  in_use x;
  CHECK(x.store->submit_all(x.mine->handle(), {}).empty());
  CHECK(x.db->rows().empty());
}

TEST_CASE("a list in a transaction takes effect with it") {
  in_use x;
  const std::vector<planned> all = {{.what = {.payload = std::string(1000, 'x'), .key = "k"}, .when = 1h},
                                    {.when = 1h}};
  x.mine->execute("BEGIN");
  const auto undone = x.store->submit_all(x.mine->handle(), all);
  CHECK(x.store->find(x.mine->handle(), undone.at(0)));
  CHECK_FALSE(x.store->find(undone[0]));
  x.mine->execute("ROLLBACK");
  CHECK(x.db->rows().empty());
  x.mine->execute("BEGIN");
  const auto ids = x.store->submit_all(x.mine->handle(), all);
  x.mine->execute("COMMIT");
  CHECK(x.store->find(ids.at(0))->key == "k");
  CHECK(x.db->rows().size() == 2);
}

TEST_CASE("a list that is refused leaves the rest of the transaction, which stays usable") {
  in_use x;
  x.store->submit_after(1h, {.key = "taken"});
  x.mine->execute("BEGIN");
  const std::int64_t before = x.store->submit_after(x.mine->handle(), 1h, {.key = "mine"});
  const std::vector<planned> all = {{.what = {.key = "mine", .replace = true}}, {.what = {.key = "taken"}}};
  CHECK_THROWS_AS(x.store->submit_all(x.mine->handle(), all), key_taken);
  const std::int64_t after = x.store->submit_after(x.mine->handle(), 1h, {});
  x.mine->execute("COMMIT");
  CHECK(x.store->find(before)->key == "mine");
  CHECK(x.store->find(after));
  CHECK(x.db->rows().size() == 3);
}

TEST_CASE("a list on a connection without a transaction is durable when the call returns") {
  in_use x;
  const std::vector<planned> all = {{.what = {.key = "a"}, .when = 1h}, {.what = {.key = "b"}, .when = 1h}};
  const auto ids = x.store->submit_all(x.mine->handle(), all);
  CHECK(x.store->find(ids.at(1))->key == "b");
  CHECK_THROWS_AS(x.store->submit_all(x.mine->handle(), all), key_taken);
  CHECK(x.db->rows().size() == 2);
}

TEST_CASE("a declaration in the caller's transaction takes effect with it, or not at all") {
  in_use x;
  x.mine->execute("begin");
  x.store->repeat(x.mine->handle(), each_minute());
  x.mine->execute("rollback");
  CHECK(x.db->rows().empty());
  x.mine->execute("begin");
  const auto id = x.store->repeat(x.mine->handle(), each_minute());
  CHECK(x.store->repeat(x.mine->handle(), each_minute()) == id);
  CHECK(x.store->repeat(x.mine->handle(), each_minute("other")) == id);
  x.mine->execute("commit");
  CHECK(x.store->find("default", "k")->payload == "other");
  x.mine->execute("begin");
  x.store->repeat(x.mine->handle(), each_minute("third"));
  x.mine->execute("rollback");
  CHECK(x.store->find("default", "k")->payload == "other");
}

TEST_CASE(
    "lanes: tasks can be submitted and moved in transactions, in lists, with keys and with long payloads") {
  in_use x;
  worker w(*x.db);
  const auto claim = [&] { return ids_of(w.claim_up_to(100)); };
  const auto due = x.db->now() - 1min;
  std::vector<planned> list;
  for (int i = 0; i != 120; ++i) list.push_back({.what = {.lane = i % 2 == 0 ? "a" : "b"}, .when = due});
  list.push_back({.what = {.payload = std::string(1000, 'x'), .lane = "a"}, .when = due - 1s});
  list.push_back({.what = {.key = "k", .lane = "b"}, .when = due - 1s});
  x.mine->execute("BEGIN");
  const auto made = x.store->submit_all(x.mine->handle(), list);
  const auto alone = x.store->submit_at(x.mine->handle(), due, {.lane = "c"});
  const auto with_key = x.store->submit_at(x.mine->handle(), due - 1s, {.key = "c", .lane = "c"});
  CHECK(x.store->reschedule_at(x.mine->handle(), alone, due - 2s));
  x.mine->execute("COMMIT");
  CHECK(claim() == std::vector<std::int64_t>{alone, made[120], made[121]});
  CHECK(x.store->cancel(x.mine->handle(), alone));
  CHECK(claim() == std::vector<std::int64_t>{with_key});
  CHECK(x.store->list("default", task_state::waiting).size() == 100);
}

}  // namespace durable_transactions

// Several threads on one database.
namespace durable_threads {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::planned;
using rondo::durable::schedule;

struct in_use {
  std::unique_ptr<sql_database> db = new_sql_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
};

TEST_CASE("interrupt() ends a wait, even if called before it") {
  in_use x;
  worker w(*x.db);
  w.session().interrupt();
  CHECK(!w.session().wait());
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    CHECK(!w.session().wait());
    ended = true;
  });
  // Enough time for a wait that the first interruption would end as well.
  for (int i = 0; i < 1000 && !ended; ++i) std::this_thread::sleep_for(20us);
  CHECK(!ended);
  w.session().interrupt();
  waiter.join();
}

TEST_CASE("threads that add lists with the same keys: one list is accepted, whole") {
  in_use x;
  std::vector<planned> all(50);
  for (std::size_t i = 0; i != all.size(); ++i) all[i] = {.what = {.key = std::to_string(i)}, .when = 1h};
  std::atomic<int> accepted{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i != 4; ++i)
    threads.emplace_back([&] {
      try {
        x.tasks->submit_all(all);
        ++accepted;
      } catch (const key_taken&) {
        ++refused;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(accepted == 1);
  CHECK(refused == 3);
  CHECK(x.db->rows().size() == 50);
}

TEST_CASE("threads that replace the same keys with lists all succeed, and each key has one task") {
  in_use x;
  std::vector<planned> all(20);
  for (std::size_t i = 0; i != all.size(); ++i)
    all[i] = {.what = {.key = std::to_string(i), .replace = true}, .when = 1h};
  std::atomic<int> accepted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i != 3; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round != 5; ++round) {
        x.tasks->submit_all(all);
        ++accepted;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(accepted == 15);
  CHECK(x.db->rows().size() == 20);
}

TEST_CASE("many nodes may declare the same at the same time") {
  in_use x;
  std::int64_t fence = 0;
  for (int round = 0; round != 5; ++round) {
    std::vector<std::thread> nodes;
    std::vector<std::int64_t> ids(4);
    for (auto& id : ids)
      nodes.emplace_back([&] {
        id = x.db->open_store()->repeat(
            {.key = "k", .payload = std::to_string(round), .when = schedule::every(1min)});
      });
    for (auto& n : nodes) n.join();
    const auto now = x.tasks->find("default", "k");
    REQUIRE(now);
    CHECK(ids == std::vector(4, now->id));
    CHECK(now->payload == std::to_string(round));
    CHECK(x.db->rows().size() == 1);
    if (round != 0) CHECK(now->fence == fence + 1);  // replaced once
    fence = now->fence;
  }
}

}  // namespace durable_threads
