// Several connections, threads and processes on one file.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

#include "durable/child.hpp"
#include "durable/sqlite/file_lock.hpp"
#include "durable/sqlite_database.hpp"
#include "threads/child.hpp"
#include "threads/patience.hpp"

namespace durable_sqlite_sharing {

using namespace durable_test;
using rondo::durable::store;
using rondo::durable::detail::sqlite::file_lock;

TEST_CASE("a session notices once that another changed the database, but not its own changes") {
  sqlite_database db;
  const auto mine = db.open_store();
  worker w(db), other(db, "other");
  for (worker* each : {&w, &other}) each->take({});  // says that it lives
  CHECK(w.session().changed());
  CHECK(!w.session().changed());
  const std::int64_t id = mine->submit_after(0s, {});
  CHECK(w.session().changed());
  CHECK(!w.session().changed());
  const ticket t = ticket_of(w.claim_one());
  CHECK(w.begin(t));
  CHECK(!w.session().changed());
  CHECK(other.claim_up_to(1).empty());
  CHECK(!w.session().changed());
  mine->cancel(id);
  CHECK(w.session().changed());
  CHECK(w.session().look_every() < rondo::durable::detail::soon);
}

TEST_CASE("what a store is told wakes its sessions if it is due soon, unless it is in a user's transaction") {
  sqlite_database db;
  const auto engine = db.open();
  const auto mine = rondo::durable::detail::store_access::make(engine);
  const auto session = engine->connect("w", worker::default_rules());
  const auto has_news = [&] {
    session->interrupt();  // so that it does not wait for ever
    return session->wait();
  };
  CHECK(!has_news());
  const std::int64_t id = mine->submit_after(1h, {.key = "k"});
  CHECK(!has_news());
  mine->submit_after(4s, {});
  CHECK(has_news());
  CHECK(!has_news());
  mine->submit_all(std::vector<rondo::durable::planned>{{.when = 1h}, {.when = 4s}, {.when = 2h}});
  CHECK(has_news());
  mine->submit_all(std::vector<rondo::durable::planned>{{.when = 1h}, {.when = 2h}});
  CHECK(!has_news());
  mine->reschedule_after(id, 4s);
  CHECK(has_news());
  mine->reschedule_after("default", "k", 1h);
  CHECK(!has_news());
  mine->reschedule_after("default", "k", 4s);
  CHECK(has_news());
  const auto theirs = db.connect();
  theirs->execute("BEGIN IMMEDIATE");
  mine->submit_after(theirs->handle(), 4s, {});
  CHECK(!has_news());
  theirs->execute("COMMIT");
  CHECK(session->changed());
}

TEST_CASE("two stores on one file submit and cancel from several threads, and nothing is lost") {
  sqlite_database db;
  const auto one = store::open(db.url()), two = store::open(db.url());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      store& mine = i % 2 == 0 ? *one : *two;
      for (int n = 0; n < 50; ++n) {
        const std::int64_t id = mine.submit_after(1h, {.payload = std::to_string(n)});
        if (n % 5 == 0) mine.cancel(id);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(db.ask("SELECT count(*) FROM rondo_task") == "160");
  CHECK(db.ask("SELECT seq FROM sqlite_sequence WHERE name = 'rondo_task'") == "200");
}

TEST_CASE("if several threads submit with the same key, one submission is accepted") {
  for (int round = 0; round < 5; ++round) {
    sqlite_database db;
    const auto one = store::open(db.url()), two = store::open(db.url());
    std::atomic<int> accepted{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        try {
          (i % 2 == 0 ? *one : *two).submit_after(1h, {.key = "k"});
          ++accepted;
        } catch (const rondo::durable::key_taken&) {
          ++refused;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(accepted == 1);
    CHECK(refused == 3);
  }
}

/// Takes a turn as dispatchers do: on a busy machine the lock may not come within a turn's limit, and then they try again.
turn_result take(rondo::durable::detail::session& of, const turn& what) {
  for (;;) {
    try {
      return of.take(what);
    } catch (const rondo::durable::detail::sqlite::error& e) {
      if (e.code() != SQLITE_BUSY) throw;
    }
  }
}

/// Claims, begins and finishes tasks until none is left, and notes in the table `done` which it ran.
void run_all(const std::string& file, const std::string& name) {
  const auto engine = rondo::durable::detail::sqlite::open(file, {});
  const auto session = engine->connect(name, worker::default_rules());
  rondo::durable::detail::sqlite::connection notes(file, 10s);
  for (;;) {
    std::vector<ticket> claimed;
    for (const auto& c : take(*session, {.claim_up_to = 7}).claimed) claimed.push_back(ticket_of(c));
    if (claimed.empty()) return;
    const std::vector<ticket> begun = take(*session, {.begun = claimed}).begun;
    for (const ticket& t : begun) notes.change("INSERT INTO done VALUES (?, ?)", t.id, name);
    take(*session, {.finished = begun});
  }
}

TEST_CASE("sessions of several threads run each task once") {
  sqlite_database db;
  db.ask("CREATE TABLE done (id INTEGER, name TEXT)");
  const auto mine = store::open(db.url());
  for (int i = 0; i < 200; ++i) mine->submit_after(0s, {});
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&, i] { run_all(db.file(), std::to_string(i)); });
  for (std::thread& t : threads) t.join();
  CHECK(db.ask("SELECT count(*) FROM done") == "200");
  CHECK(db.ask("SELECT count(DISTINCT id) FROM done") == "200");
  CHECK(db.ask("SELECT count(*) FROM rondo_task") == "0");
}

TEST_CASE("sessions of several processes run each task once") {
  sqlite_database db;
  db.ask("CREATE TABLE done (id INTEGER, name TEXT)");
  {
    const auto mine = store::open(db.url());
    for (int i = 0; i < 200; ++i) mine->submit_after(0s, {});
  }
  const auto work = [&](const char* name) {
    return [&, name] {
      run_all(db.file(), name);
      return true;
    };
  };
  child one(work("one")), two(work("two"));
  CHECK(one.succeeded());
  CHECK(two.succeeded());
  CHECK(db.ask("SELECT count(*) FROM done") == "200");
  CHECK(db.ask("SELECT count(DISTINCT id) FROM done") == "200");
  CHECK(db.ask("SELECT count(*) FROM rondo_task") == "0");
}

TEST_CASE("tasks of a process that is killed between claim and end are left to the others") {
  sqlite_database db;
  auto mine = db.open_store();
  const std::int64_t held = mine->submit_after(0s, {});
  const std::int64_t run = mine->submit_after(0s, {});
  mine.reset();  // a child may not open a file that its parent has open
  child killed([&] {
    worker w(db, "killed");
    const auto claims = w.claim_up_to(2);
    if (claims.size() != 2 || !w.begin(ticket_of(claims[1]))) return false;
    _exit(0);  // without any destructor
  });
  CHECK(killed.succeeded());
  worker w(db);
  CHECK(w.claim_up_to(10).empty());
  db.pass(1min);
  const auto claims = w.claim_up_to(10);
  CHECK(ids_of(claims) == std::vector{held, run});
  CHECK(claims.at(0).what.attempt == 0);
  CHECK(claims.at(1).what.attempt == 1);
}

TEST_CASE(
    "a session whose first turn failed does not keep the number by which others see the next one live") {
  sqlite_database db;
  std::vector<sqlite3*> connections;
  auto settings = db.settings();
  settings.connected = [&](sqlite3* made) { connections.push_back(made); };
  const auto engine = rondo::durable::detail::sqlite::open(db.file(), settings);
  const auto mine = rondo::durable::detail::store_access::make(engine);
  mine->submit_after(0s, {});
  mine->submit_after(0s, {});
  const auto unlucky = engine->connect("unlucky", worker::default_rules());
  sqlite3_commit_hook(
      connections.back(), [](void*) { return 1; }, nullptr);
  CHECK_THROWS_AS(unlucky->take({.claim_up_to = 2}), rondo::durable::store_error);
  sqlite3_commit_hook(connections.back(), nullptr, nullptr);

  auto next = engine->connect("next", worker::default_rules());
  std::vector<ticket> claimed;
  for (const auto& c : next->take({.claim_up_to = 2}).claimed) claimed.push_back(ticket_of(c));
  REQUIRE(claimed.size() == 2);
  unlucky->changed();
  CHECK(next->take({.begun = {claimed[0]}}).begun.size() == 1);  // it lives
  next.reset();
  const auto third = engine->connect("third", worker::default_rules());
  CHECK(third->changed());
  CHECK(ids_of(third->take({.claim_up_to = 2}).claimed) == std::vector{claimed[1].id});
}

/// Passes through all statements about tasks, among that many far-off ones, and returns what SQLite tells of each: its
/// text, and the steps of its virtual machine.
std::map<std::string, int> steps_among(int far_off) {
  sqlite_database db;
  std::vector<sqlite3*> connections;
  auto settings = db.settings();
  settings.connected = [&](sqlite3* made) { connections.push_back(made); };
  const auto engine = rondo::durable::detail::sqlite::open(db.file(), settings);
  const auto mine = rondo::durable::detail::store_access::make(engine);
  const auto session =
      engine->connect("w", {.queues = {"default", "other"}, .window = 5s, .lease = 30s, .max_attempts = 1});
  db.ask("BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
         std::to_string(far_off) +
         ")"
         " INSERT INTO rondo_task (queue, key, due, inline_payload, state, fence, lease_until)"
         " SELECT 'default', i, 9000000000000000, '', i % 5, 1, CASE WHEN i % 5 IN (1, 2, 4) THEN "
         "9000000000000000 END"
         " FROM n; COMMIT");
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5; ++i) mine->submit_after(0s, {});
    std::vector<ticket> t;
    for (const auto& c : session->take({.claim_up_to = 100}).claimed) t.push_back(ticket_of(c));
    REQUIRE(t.size() == 5);
    session->take({.begun = t});
    session->take({.finished = {t[0]},
                   .failed = {{.of = t[1], .retry_after = 1h, .reason = ""},
                              {.of = t[2], .retry_after = {}, .reason = ""}},
                   .unstarted = {t[3]},
                   .returned = {t[4]},
                   .renewed = {t[4]},
                   .adopt = true});
    mine->submit_after(1h, {.key = "k", .replace = true});
    CHECK_THROWS_AS(mine->submit_after(1h, {.key = "k"}), rondo::durable::key_taken);
    mine->cancel("default", "k");
    mine->cancel(t[3].id);
    mine->reschedule_after(t[1].id, 2h);
    mine->find(t[1].id);
    mine->find("default", "7");
    mine->reschedule_after("default", "7", 2h);
    mine->submit_all(std::vector<rondo::durable::planned>{{.when = 1h}, {.what = {.key = "k"}, .when = 1h}});
    mine->pause("other");
    mine->resume("other");
    mine->list("default", rondo::durable::task_state::dead);
    mine->retry(t[2].id);
    mine->cancel("default", "k");
    db.pass(1min);
    session->take({.claim_up_to = 10});
  }
  std::map<std::string, int> steps;
  for (sqlite3* of : connections) {
    for (sqlite3_stmt* s = sqlite3_next_stmt(of, nullptr); s != nullptr; s = sqlite3_next_stmt(of, s)) {
      const std::string sql = sqlite3_sql(s);
      if (sql.find("rondo_task") == std::string::npos) continue;
      CAPTURE(sql);
      CHECK(sqlite3_stmt_status(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0) == 0);
      CHECK(sqlite3_stmt_status(s, SQLITE_STMTSTATUS_SORT, 0) == 0);
      CHECK(sqlite3_stmt_status(s, SQLITE_STMTSTATUS_AUTOINDEX, 0) == 0);
      steps[sql] += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0);
    }
  }
  return steps;
}

TEST_CASE("no statement reads or sorts all tasks") {
  constexpr int few = 1000, many = 3000;
  const auto among_few = steps_among(few), among_many = steps_among(many);
  CHECK(among_few.size() > 15);
  REQUIRE(among_many.size() == among_few.size());
  for (const auto& statement : among_few) {
    const std::string& sql = statement.first;
    CAPTURE(sql);
    // Nor does it read them one by one through an index: its cost does not grow with their number. (How many steps that
    // is, depends on SQLite's version.) Only adopt() reads all held tasks.
    if (sql.find("state = 1 AND owner") == std::string::npos)
      CHECK(among_many.at(sql) < statement.second + (many - few) / 10);
  }
}

TEST_CASE("connections of a process get the lock in the order in which they asked") {
  const sqlite_database db;
  const auto lock = file_lock::of(db.file());
  const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
  auto mine = lock->lock_until(end);
  REQUIRE(mine != nullptr);
  std::vector<std::size_t> order;  // written by who has the lock
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i != 4; ++i) {
    threads.emplace_back([&, i] {
      const auto turn = lock->lock_until(end);
      if (turn != nullptr) order.push_back(i);
    });
    while (lock->waiting() <= i && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  CHECK(lock->lock_until(std::chrono::steady_clock::now() + 1ms) == nullptr);  // and it waits no more
  mine.reset();
  mine = lock->lock_until(end);  // at once, but after the others
  CHECK(mine != nullptr);
  CHECK(order == std::vector<std::size_t>{0, 1, 2, 3});
  mine.reset();
  for (std::thread& t : threads) t.join();
}

TEST_CASE(
    "a call that does not get its turn in time is refused; one in a user's transaction waits for no turn") {
  sqlite_database db;
  const std::string link = db.file() + "-link";
  store::open(db.url());
  std::filesystem::create_symlink(db.file(), link);
  auto settings = db.settings();
  settings.patience = 20ms;
  const auto engine = rondo::durable::detail::sqlite::open(link, settings);
  const auto mine = rondo::durable::detail::store_access::make(engine);
  const auto session = engine->connect("w", worker::default_rules());
  const auto theirs = db.connect();
  auto turn = file_lock::of(db.file())->lock_until(std::chrono::steady_clock::now());
  REQUIRE(turn != nullptr);
  const auto message = [](const auto& call) {
    try {
      call();
      return std::string();
    } catch (const rondo::durable::store_error& e) {
      return std::string(e.what());
    }
  };
  CHECK(message([&] { mine->submit_after(0s, {}); }).find("database is locked (") != std::string::npos);
  CHECK(message([&] { session->take({.claim_up_to = 1}); }).find("database is locked (") !=
        std::string::npos);
  theirs->execute("BEGIN IMMEDIATE");
  CHECK(mine->submit_after(theirs->handle(), 0s, {}) == 1);
  theirs->execute("COMMIT");
  turn.reset();
  CHECK(mine->submit_after(0s, {}) == 2);
  CHECK(session->take({.claim_up_to = 9}).claimed.size() == 2);
}

TEST_CASE("a child made by fork cannot open a file that its parent has open") {
  sqlite_database db, other;
  auto mine = store::open(db.url());
  const auto is_refused = [&] {
    try {
      store::open(db.url());
      return false;
    } catch (const rondo::durable::store_error& e) {
      return std::string(e.what()).find("fork()") != std::string::npos;
    }
  };
  CHECK(rondo::test::in_child([&] {
          const bool opens_another = store::open(other.url())->submit_after(1h, {}) == 1;
          mine.reset();  // changes nothing
          return rondo::test::first_wrong({is_refused(), opens_another});
        }) == "");
  mine->submit_after(1h, {});
  mine.reset();
  CHECK(rondo::test::in_child([&] { return store::open(db.url())->submit_after(1h, {}) == 2 ? 0 : 1; }) ==
        "");
  CHECK(db.ask("SELECT count(*) FROM rondo_task") == "2");
}

TEST_CASE("threads that submit without a pause neither starve a dispatcher nor each other") {
  sqlite_database db;
  const auto tasks = store::open(db.url());
  constexpr int due = 40;
  for (int i = 0; i != due; ++i) tasks->submit_after(i * 50ms, {});
  rondo::timer timer;
  rondo::test::gate ran;
  rondo::durable::dispatcher runs(timer, *tasks, [&](const rondo::durable::task&) { ran.open(); });
  std::atomic<bool> over = false;
  std::vector<std::thread> busy;
  for (int i = 0; i != 4; ++i) {
    busy.emplace_back([&] {
      const auto own = store::open(db.url());
      while (!over) CHECK_NOTHROW(own->submit_after(1h, {}));
    });
  }
  const bool all_ran = ran.wait(due);
  over = true;
  for (std::thread& t : busy) t.join();
  CHECK(all_ran);
  CHECK(runs.stats().failures == 0);
}

}  // namespace durable_sqlite_sharing
