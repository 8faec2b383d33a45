// A caller's transaction in PostgreSQL, and the effects of PostgreSQL's rules.
#include <doctest/doctest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "durable/postgresql_database.hpp"

namespace durable_postgresql_transactions {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::planned;
using rondo::durable::store_error;

struct in_use {
  postgresql_database db{*postgresql_server::get()};
  std::unique_ptr<rondo::durable::store> tasks = db.open_store();
  user_connection mine{db.url()};

  void wait_until_somebody_waits() {
    while (db.ask("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == "0")
      std::this_thread::sleep_for(1ms);
  }
};

TEST_CASE("a key that is taken leaves the transaction usable") {
  in_use x;
  const auto first = x.tasks->submit_after(1h, {.key = "k"});
  x.mine.run("begin");
  CHECK_THROWS_AS(x.tasks->submit_after(x.mine.get(), 1h, {.key = "k"}), key_taken);
  CHECK(x.mine.run("select 1") == "1");
  const auto second = x.tasks->submit_after(x.mine.get(), 1h, {.key = "k", .replace = true});
  x.mine.run("commit");
  CHECK(!x.tasks->find(first));
  CHECK(x.tasks->find(second));
}

TEST_CASE("in an aborted transaction each call throws, with the server's message") {
  in_use x;
  x.mine.run("begin");
  CHECK_THROWS(x.mine.run("nonsense"));
  try {
    x.tasks->submit_after(x.mine.get(), 1h, {});
    FAIL("it was accepted");
  } catch (const store_error& error) {
    CHECK(!error.perhaps_done());
    CHECK(
        std::string(error.what()) ==
        "rondo: PostgreSQL: current transaction is aborted, commands ignored until end of transaction block, "
        "SQLSTATE 25P02");
  }
  x.mine.run("rollback");
  CHECK(x.tasks->submit_after(x.mine.get(), 1h, {}) > 0);
}

TEST_CASE("a delay counts from the call, not from the beginning of a long transaction") {
  in_use x;
  x.mine.run("begin");
  x.mine.run("select now(), pg_sleep(0.2)");
  const auto before = x.db.now();
  const auto id = x.tasks->submit_after(x.mine.get(), 1s, {});
  CHECK(x.tasks->reschedule_after(x.mine.get(), id, 2s));
  CHECK(x.tasks->find(x.mine.get(), id)->due >= before + 2s);
}

TEST_CASE("on a connection without a transaction, each call is its own transaction") {
  in_use x;
  const auto id = x.tasks->submit_after(x.mine.get(), 1h, {});
  CHECK(x.tasks->find(id));
  CHECK(PQtransactionStatus(x.mine.get()) == PQTRANS_IDLE);
}

TEST_CASE("the search path of the caller's connection does not matter") {
  in_use x;
  x.mine.run(
      "create schema elsewhere; create table elsewhere.rondo_task (id integer); set search_path = elsewhere");
  const auto id = x.tasks->submit_after(x.mine.get(), 1h, {.key = "k"});
  CHECK(x.tasks->find(id));
  CHECK_THROWS_AS(x.tasks->submit_after(x.mine.get(), 1h, {.key = "k"}), key_taken);
  const auto second = x.tasks->submit_after(x.mine.get(), 1h, {.key = "k", .replace = true});
  CHECK(!x.tasks->find(id));
  const auto due = x.tasks->find(second)->due;
  CHECK(x.tasks->reschedule_after(x.mine.get(), second, 2h));
  CHECK(x.tasks->find(second)->due > due);
  CHECK(x.tasks->reschedule_after(x.mine.get(), "default", "k", 3h));
  CHECK(x.tasks->find(x.mine.get(), "default", "k")->id == second);
  CHECK(x.tasks->cancel(x.mine.get(), "default", "k"));
  const std::vector<rondo::durable::planned> list = {
      {.what = {.payload = std::string(1000, 'x'), .key = "l"}, .when = 1h}};
  CHECK(x.tasks->find(x.tasks->submit_all(x.mine.get(), list).at(0))->payload.size() == 1000);
  CHECK_THROWS_AS(x.tasks->submit_all(x.mine.get(), list), key_taken);
  CHECK(x.tasks->cancel(x.mine.get(), "default", "l"));
  CHECK(x.db.ask("select count(*) from rondo_payload") == "0");
  x.mine.run("drop schema elsewhere cascade");
}

TEST_CASE("the schema may have any name, also one that contains the table's") {
  for (const std::string name :
       {"a rondo_task", "rondo_task", " rondo_task rondo_task", "it's \" rondo_task"}) {
    CAPTURE(name);
    in_use x;
    std::string quoted = "\"";
    for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    quoted += '"';
    x.mine.run(("create schema " + quoted).c_str());
    x.mine.run(("alter role current_user set search_path = " + quoted).c_str());
    const auto there = rondo::durable::store::open(x.db.url());
    x.mine.run("alter role current_user reset search_path");
    const auto id = there->submit_after(x.mine.get(), 1h, {.key = "k"});
    CHECK_THROWS_AS(there->submit_after(x.mine.get(), 1h, {.key = "k"}), key_taken);
    CHECK(there->find(x.mine.get(), id));
    CHECK(there->reschedule_after(x.mine.get(), id, 2h));
    CHECK(there->cancel(x.mine.get(), "default", "k"));
    CHECK(!x.tasks->find(id));  // which is in another schema
  }
}

TEST_CASE("a connection that is busy, in pipeline mode or of another encoding is refused, and not changed") {
  in_use x;
  const auto submit = [&] { x.tasks->submit_after(x.mine.get(), 1h, {}); };
  const auto refused = [&] {
    try {
      submit();
      return false;
    } catch (const store_error& error) {
      return !error.perhaps_done();
    }
  };
  PQsendQuery(x.mine.get(), "select 1");
  CHECK(refused());
  while (PGresult* answer = PQgetResult(x.mine.get())) PQclear(answer);
  PQenterPipelineMode(x.mine.get());
  CHECK(refused());
  PQexitPipelineMode(x.mine.get());
  x.mine.run("set client_encoding = latin1");
  CHECK(refused());
  x.mine.run("set client_encoding = utf8");
  CHECK_NOTHROW(submit());
}

TEST_CASE(
    "a submission waits for an open transaction with its key, which is taken if that commits and otherwise "
    "free") {
  for (const std::string end : {"commit", "rollback"}) {
    in_use x;
    x.mine.run("begin");
    const auto id = x.tasks->submit_after(x.mine.get(), 1h, {.key = "k"});
    auto other = std::async(std::launch::async, [&] { return x.tasks->submit_after(1h, {.key = "k"}); });
    x.wait_until_somebody_waits();
    x.mine.run(end);
    if (end == "commit") {
      CHECK_THROWS_AS(other.get(), key_taken);
      CHECK(x.tasks->find(id));
    } else {
      CHECK(other.get() > id);
    }
  }
}

TEST_CASE("a replacement that waits for another one replaces the other's task") {
  in_use x;
  x.tasks->submit_after(1h, {.payload = "first", .key = "k"});
  x.mine.run("begin");
  x.tasks->submit_after(x.mine.get(), 1h, {.payload = "second", .key = "k", .replace = true});
  auto other = std::async(std::launch::async, [&] {
    return x.tasks->submit_after(1h, {.payload = "third", .key = "k", .replace = true});
  });
  x.wait_until_somebody_waits();
  x.mine.run("commit");
  const auto id = other.get();
  CHECK(x.tasks->find(id)->payload == "third");
  CHECK(x.db.ask("select count(*) from rondo_task") == "1");
}

TEST_CASE(
    "a cancellation waits for the beginning of a run, which does not wait for a cancellation, and they "
    "agree") {
  in_use x;
  worker w(x.db);
  const auto id = x.tasks->submit_after(0s, {});
  const auto t = ticket_of(w.claim_one());
  x.mine.run("begin");
  CHECK(x.tasks->cancel(x.mine.get(), id));
  CHECK(!w.begin(t));
  x.mine.run("commit");
  CHECK(!w.begin(t));

  const auto second = x.tasks->submit_after(0s, {});
  const auto u = ticket_of(w.claim_one());
  x.mine.run("begin; update rondo_task set state = 2, attempt = 1");  // like a turn
  auto cancelled = std::async(std::launch::async, [&] { return x.tasks->cancel(second); });
  x.wait_until_somebody_waits();
  x.mine.run("commit");
  CHECK(!cancelled.get());
  CHECK(x.db.ask("select state from rondo_task") == "4");
  CHECK(w.finish(u));
}

TEST_CASE("when two transactions wait for each other, one gets a store_error with a message of one line") {
  in_use x;
  user_connection other(x.db.url());
  const auto first = x.tasks->submit_after(1h, {});
  const auto second = x.tasks->submit_after(1h, {});
  x.mine.run("begin; set deadlock_timeout = '10s'");  // so that the other one detects the deadlock
  other.run("begin; set deadlock_timeout = '1ms'");
  CHECK(x.tasks->cancel(x.mine.get(), first));
  CHECK(x.tasks->cancel(other.get(), second));
  auto waits = std::async(std::launch::async, [&] { return x.tasks->cancel(x.mine.get(), second); });
  x.wait_until_somebody_waits();
  try {
    x.tasks->cancel(other.get(), first);
    FAIL("it was accepted");
  } catch (const store_error& error) {
    const std::string said = error.what();
    CHECK(said.starts_with("rondo: PostgreSQL: deadlock detected (Process "));
    CHECK(said.ends_with("SQLSTATE 40P01"));
    CHECK(said.find('\n') == std::string::npos);
    CHECK(!error.perhaps_done());
  }
  other.run("rollback");
  CHECK(waits.get());
}

TEST_CASE("a list that waits for a transaction that waits for the list is submitted a second later") {
  in_use x;
  const auto list = [&](const std::string& first, const std::string& second) {
    return std::vector<planned>{{.what = {.key = first, .replace = true}, .when = 1h},
                                {.what = {.key = second, .replace = true}, .when = 1h}};
  };
  x.mine.run("begin; set deadlock_timeout = '30s'");  // so that the list detects the deadlock
  x.tasks->submit_after(x.mine.get(), 1h, {.key = "a"});
  auto waits = std::async(std::launch::async, [&] { return x.tasks->submit_all(list("b", "a")); });
  x.wait_until_somebody_waits();
  x.tasks->submit_after(x.mine.get(), 1h, {.key = "b"});
  x.mine.run("commit");
  CHECK(waits.get().size() == 2);
  CHECK(x.db.ask("select count(*) from rondo_task") == "2");
}

TEST_CASE("two lists lock the tasks that they replace in the same order") {
  in_use x;
  const auto replace_both = [&](const std::string& first, const std::string& second) {
    return std::vector<planned>{{.what = {.key = first, .replace = true}, .when = 1h},
                                {.what = {.key = second, .replace = true}, .when = 1h}};
  };
  x.tasks->submit_all(replace_both("a", "b"));
  x.mine.run("begin");
  x.tasks->cancel(x.mine.get(), "default", "a");
  auto waits = std::async(std::launch::async, [&] { return x.tasks->submit_all(replace_both("b", "a")); });
  x.wait_until_somebody_waits();
  user_connection other(x.db.url());
  CHECK(other.run("select key from rondo_task where key = 'b' for update nowait") == "b");  // not yet locked
  x.mine.run("commit");
  CHECK(waits.get().size() == 2);
}

TEST_CASE("a due time that an operator has written may be out of range, in either direction") {
  in_use x;
  worker w(x.db);
  const auto id = x.tasks->submit_after(0s, {});
  for (const std::string due : {"-infinity", "4713-01-01 BC", "1400-01-01"}) {
    x.db.ask("update rondo_task set due = '" + due + "', state = 0");
    CHECK(w.claim_one().remaining < -100 * 365 * 24h);
    CHECK(x.tasks->find(id)->due < x.db.now() - 100 * 365 * 24h);
  }
  for (const std::string due : {"infinity", "294276-12-31", "2600-01-01"}) {
    x.db.ask("update rondo_task set due = '" + due + "', state = 1, owner = 'worker'");
    CHECK(w.take({.adopt = true}).claimed.at(0).remaining > 100 * 365 * 24h);
    CHECK(x.tasks->find(id)->due > x.db.now() + 100 * 365 * 24h);
  }
}

TEST_CASE("claims skip tasks that an open transaction has locked") {
  in_use x;
  worker w(x.db);
  const auto locked = x.tasks->submit_after(0s, {});
  const auto free = x.tasks->submit_after(0s, {});
  x.mine.run("begin");
  CHECK(x.tasks->cancel(x.mine.get(), locked));
  CHECK(ids_of(w.claim_up_to(10)) == std::vector{free});
  x.mine.run("rollback");
  CHECK(ids_of(w.claim_up_to(10)) == std::vector{locked});
}

}  // namespace durable_postgresql_transactions
