// store::open() with files that are databases, are not, or cannot be written, and with each kind of schema.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "durable/child.hpp"
#include "durable/sqlite_database.hpp"

namespace durable_sqlite_open {

using namespace durable_test;
using rondo::durable::store;
using rondo::durable::store_error;
using rondo::durable::detail::sqlite::migrations;

/// The message of the exception from open(); empty if it succeeds.
std::string refusal(const std::string& url) {
  try {
    store::open(url);
    return "";
  } catch (const store_error& e) {
    return e.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a URL that is not a store's is refused, and the message omits what may be its password") {
  const std::string no_url =
      "rondo: the string to open is not the URL of a store: it must begin with sqlite: or postgresql://";
  CHECK(refusal("tasks.db") == no_url);
  CHECK(refusal("") == no_url);
  CHECK(refusal(":") == no_url);
  CHECK(refusal("host=db user=u password=geheim dbname=x") == no_url);
  CHECK(refusal("host=db user=u password=ge:heim dbname=x") == no_url);
  for (const char* url : {"postgresql:/me:secret@here", "postgres:me:secret@here", "postgresql:"})
    CHECK(contains(refusal(url), "a PostgreSQL URL must begin with postgresql://"));
  CHECK(refusal("mysql://me:secret@here/") ==
        "rondo: \"mysql:\" does not begin the URL of a store: it must begin with sqlite: or postgresql://");
  CHECK(contains(refusal("SQLITE:tasks.db"), "does not begin the URL"));
  CHECK(refusal(std::string("sqlite:/none/a\0b", 16)) ==
        "rondo: the URL of the store (sqlite:...) contains a zero byte");
  CHECK(refusal("sqlite:") == "rondo: the URL \"sqlite:\" names no file");
  CHECK(contains(refusal("sqlite::memory:"), "cannot be in memory"));
}

TEST_CASE("a store uses the host's clock for its due times") {
  const sqlite_database db;
  const auto opened = store::open(db.url());
  const auto before = std::chrono::system_clock::now();
  const auto found = opened->find(opened->submit_after(1h, {}));
  CHECK(found->due >= before + 1h);
  CHECK(found->due <= std::chrono::system_clock::now() + 1h + 1us);
}

TEST_CASE("a store that is opened again has its tasks") {
  const sqlite_database db;
  const std::int64_t id = store::open(db.url())->submit_after(1h, {.payload = "p"});
  CHECK(store::open(db.url())->find(id)->payload == "p");
}

TEST_CASE("the file may be the user's own, with other tables") {
  sqlite_database db;
  db.ask("CREATE TABLE orders (number INTEGER); INSERT INTO orders VALUES (7)");
  const auto opened = store::open(db.url());
  opened->submit_after(1h, {});
  CHECK(db.ask("SELECT number FROM orders") == "7");
}

TEST_CASE("a name that SQLite would take for a URI is used as a file name") {
  const temporary_folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  {
    const auto opened = store::open("sqlite:file:tasks?mode=memory");
    opened->submit_after(1h, {});
  }
  CHECK(std::filesystem::exists(folder.path() / "file:tasks?mode=memory"));
  const auto relative = store::open("sqlite:tasks.db");
  std::filesystem::current_path(before);
  // The connection is to the file that was named, whatever the current folder is now.
  const auto engine = rondo::durable::detail::store_access::engine_of(*relative);
  const std::int64_t id = relative->submit_after(0s, {});
  const auto session = engine->connect("w", worker::default_rules());
  CHECK(session->take({.claim_up_to = 1}).claimed.at(0).what.id == id);
}

TEST_CASE("a store and the user's connection may use different names of the file") {
  sqlite_database db;
  const temporary_folder folder;
  std::filesystem::create_symlink(db.file(), folder.path() / "link.db");
  const auto opened = store::open("sqlite:" + (folder.path() / "link.db").string());
  const auto mine = db.connect();
  const std::int64_t id = opened->submit_after(mine->handle(), 1h, {});
  CHECK(opened->find(id));
}

TEST_CASE("connections write ahead to a log") {
  const sqlite_database db;
  std::vector<sqlite3*> connections;
  auto settings = db.settings();
  settings.connected = [&](sqlite3* made) { connections.push_back(made); };
  const auto engine = rondo::durable::detail::sqlite::open(db.file(), settings);
  const auto session = engine->connect("w", worker::default_rules());
  REQUIRE(connections.size() == 2);
  for (sqlite3* each : connections) {
    rondo::durable::detail::sqlite::connection c(each);
    auto row = c.query("PRAGMA journal_mode");
    row.next();
    CHECK(row.text(0) == "wal");
  }
}

TEST_CASE("a file that is not a database is refused, and left unchanged") {
  sqlite_database db;
  const std::string text(5000, 'x');
  std::ofstream(db.file()) << text;
  CHECK(contains(refusal(db.url()), "file is not a database"));
  CHECK(contains(refusal(db.url()), db.file()));
  std::string left;
  std::ifstream(db.file()) >> left;
  CHECK((left == text));
}

TEST_CASE("a folder, and a file in a folder that does not exist, are refused") {
  const temporary_folder folder;
  CHECK(contains(refusal("sqlite:" + folder.path().string()), "unable to open database file"));
  CHECK(contains(refusal("sqlite:" + (folder.path() / "none" / "tasks.db").string()),
                 "unable to open database file (there is no such folder)"));
}

/// Runs `f` in a process that, unlike root, may not write to other users' files.
template <class Function>
bool without_rights(Function f) {
  return child([&] { return (geteuid() != 0 || setuid(65534) == 0) && f(); }).succeeded();
}

TEST_CASE("a read-only file is refused") {
  sqlite_database db;
  store::open(db.url());
  const std::filesystem::path folder = std::filesystem::path(db.file()).parent_path();
  chmod(folder.c_str(), 0777);
  chmod(db.file().c_str(), 0444);
  CHECK(without_rights([&] {
    const std::string said = refusal(db.url());
    return contains(said,
                    "cannot be written (this process must be able to write to the file and to its folder)");
  }));
}

TEST_CASE("a read-only folder is refused, with and without the file in it") {
  sqlite_database db;
  const std::filesystem::path folder = std::filesystem::path(db.file()).parent_path();
  const auto is_refused = [&] {
    return without_rights(
        [&] { return contains(refusal(db.url()), "must be able to write to the file and to its folder"); });
  };
  chmod(folder.c_str(), 0555);
  CHECK(is_refused());
  chmod(folder.c_str(), 0755);
  store::open(db.url());
  chmod(db.file().c_str(), 0666);
  chmod(folder.c_str(), 0555);
  CHECK(is_refused());
  chmod(folder.c_str(), 0755);
}

TEST_CASE("a locked database is opened when the lock is released, even if its mode has to be changed") {
  sqlite_database db;
  const auto mine = db.connect();
  mine->execute("PRAGMA journal_mode = DELETE; CREATE TABLE orders (number INTEGER); BEGIN IMMEDIATE");
  std::thread opener([&] { CHECK(refusal(db.url()) == ""); });
  std::this_thread::sleep_for(50ms);  // most likely it has tried
  mine->execute("COMMIT");
  opener.join();
}

TEST_CASE("threads that open an empty file at the same time all get a store") {
  for (int round = 0; round < 10; ++round) {
    sqlite_database db;
    std::atomic<int> ready{0}, opened{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        store::open(db.url())->submit_after(1h, {});
        ++opened;
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(opened == 4);
    CHECK(db.ask("SELECT count(*) FROM rondo_task") == "4");
    CHECK(db.ask("SELECT group_concat(version) FROM rondo_schema") == "4");
  }
}

TEST_CASE("processes that open an empty file at the same time all get a store") {
  for (int round = 0; round < 5; ++round) {
    sqlite_database db;
    const auto work = [&] { return store::open(db.url())->submit_after(1h, {}) > 0; };
    child one(work), two(work), three(work);
    CHECK(one.succeeded());
    CHECK(two.succeeded());
    CHECK(three.succeeded());
    CHECK(db.ask("SELECT count(*) FROM rondo_task") == "3");
    CHECK(db.ask("SELECT group_concat(version) FROM rondo_schema") == "4");
  }
}

TEST_CASE("a database in UTF-16 works like one in UTF-8") {
  sqlite_database db;
  db.ask("PRAGMA encoding = 'UTF-16'; CREATE TABLE orders (number INTEGER)");
  const std::string payload("a\0b\xFF", 4);
  REQUIRE(refusal(db.url()) == "");
  const auto opened = store::open(db.url());
  const std::int64_t id = opened->submit_after(0s, {.queue = "p\xC3\xA4"
                                                             "ckchen",
                                                    .payload = payload,
                                                    .key = "k\xE2\x82\xAC"});
  const auto found = opened->find(id);
  REQUIRE(found);
  CHECK(found->queue ==
        "p\xC3\xA4"
        "ckchen");
  CHECK(found->key == "k\xE2\x82\xAC");
  CHECK((found->payload == payload));
  CHECK(
      opened->cancel("p\xC3\xA4"
                     "ckchen",
                     "k\xE2\x82\xAC"));
}

TEST_CASE("a due time that an operator wrote may be any number") {
  sqlite_database db;
  const auto engine = db.open();
  const auto tasks = rondo::durable::detail::store_access::make(engine);
  const std::int64_t id = tasks->submit_after(1h, {});
  db.ask("UPDATE rondo_task SET due = -9223372036854775807 - 1");
  const auto session = engine->connect("w", worker::default_rules());
  const auto done = session->take({.claim_up_to = 1});
  REQUIRE(done.claimed.size() == 1);
  CHECK(done.claimed[0].what.id == id);
  CHECK(done.claimed[0].remaining < 0s);
  db.ask("UPDATE rondo_task SET due = 9223372036854775807");
  const auto adopted = session->take({.adopt = true});
  REQUIRE(adopted.claimed.size() == 1);
  CHECK(adopted.claimed[0].remaining > 24h);
}

// The schema: which ones are refused, and how they are migrated from one version to the next.

std::string refusal(const sqlite_database& db) {
  try {
    store::open(db.url());
    return "";
  } catch (const store_error& e) {
    return e.what();
  }
}

/// All migrations, and one that a later version of Rondo might add.
migrations later(const std::string& statement) {
  migrations steps = rondo::durable::detail::sqlite::all_migrations();
  steps.push_back({"CREATE TABLE rondo_news (x INTEGER)", statement});
  return steps;
}

std::unique_ptr<store> open_with(const sqlite_database& db, const migrations& steps) {
  auto settings = db.settings();
  settings.steps = steps;
  return rondo::durable::detail::store_access::make(
      rondo::durable::detail::sqlite::open(db.file(), settings));
}

const char* const add_column = "ALTER TABLE rondo_task ADD COLUMN priority INTEGER NOT NULL DEFAULT 0";

TEST_CASE("a new schema has version 4") {
  sqlite_database db;
  store::open(db.url());
  CHECK(db.ask("SELECT version FROM rondo_schema") == "4");
  CHECK(rondo::durable::detail::sqlite::all_migrations().size() == 4);
}

TEST_CASE("a schema of a later version is refused, and left unchanged") {
  sqlite_database db;
  open_with(db, later(add_column));
  CHECK(refusal(db) ==
        "rondo: SQLite, " + db.file() +
            ": its schema has version 5, which is newer than what this program knows (4): use a later "
            "release of Rondo");
  CHECK(db.ask("SELECT version FROM rondo_schema") == "5");
}

TEST_CASE("a migration keeps the tasks, and open stores of the earlier version still work") {
  sqlite_database db;
  const auto old_store = db.open_store();
  worker old_worker(db);
  const std::int64_t first = old_store->submit_after(0s, {.payload = "first"});
  const auto new_store = open_with(db, later(add_column));
  CHECK(db.ask("SELECT version FROM rondo_schema") == "5");
  CHECK(db.ask("SELECT priority FROM rondo_task") == "0");
  CHECK(new_store->find(first)->payload == "first");
  const std::int64_t second = old_store->submit_after(0s, {.payload = "second"});
  CHECK(new_store->find(second)->payload == "second");
  CHECK(old_worker.claim_up_to(10).size() == 2);
  CHECK(refusal(db) != "");
}

TEST_CASE("a migration that fails leaves the schema and its tasks as they were") {
  sqlite_database db;
  const auto old_store = db.open_store();
  const std::int64_t id = old_store->submit_after(1h, {});
  CHECK_THROWS_AS(open_with(db, later("ALTER TABLE no_such_table ADD COLUMN x")), store_error);
  CHECK(db.ask("SELECT version FROM rondo_schema") == "4");
  CHECK(db.ask("SELECT count(*) FROM sqlite_schema WHERE name = 'rondo_news'") == "0");
  CHECK(old_store->find(id));
  CHECK(refusal(db) == "");
}

TEST_CASE("when threads migrate at the same time, the migration is done once") {
  for (int round = 0; round < 10; ++round) {
    sqlite_database db;
    db.open_store();
    std::atomic<int> ready{0}, opened{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 3) std::this_thread::yield();
        open_with(db, later(add_column));
        ++opened;
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(opened == 3);
    CHECK(db.ask("SELECT version FROM rondo_schema") == "5");
  }
}

TEST_CASE("several versions are migrated at once") {
  sqlite_database db;
  migrations steps = later(add_column);
  steps.push_back({"INSERT INTO rondo_news VALUES (3)"});
  open_with(db, steps);
  CHECK(db.ask("SELECT version FROM rondo_schema") == "6");
  CHECK(db.ask("SELECT x FROM rondo_news") == "3");
}

TEST_CASE("a damaged schema is refused, and the message tells what is wrong") {
  struct damage {
    const char* by;
    const char* said;
  };
  for (const damage& d : {
           damage{"ALTER TABLE rondo_task DROP COLUMN reason",
                  "the schema is damaged: no such column: reason"},
           damage{"DROP TABLE rondo_schema", "a table rondo_task, but no rondo_schema with its version"},
           damage{"DELETE FROM rondo_schema", "rondo_schema must have one row"},
           damage{"INSERT INTO rondo_schema VALUES (2)", "rondo_schema must have one row"},
           damage{"UPDATE rondo_schema SET version = 0", "a version greater than zero"},
           damage{"UPDATE rondo_schema SET version = -1", "a version greater than zero"},
           damage{"DROP INDEX rondo_task_due", "the schema is damaged: no such index: rondo_task_due"},
           damage{"DROP INDEX rondo_task_lease", "the schema is damaged: no such index: rondo_task_lease"},
           damage{"DROP INDEX rondo_task_key", "the schema is damaged: no such index: rondo_task_key"},
           damage{"DROP INDEX rondo_task_dead", "the schema is damaged: no such index: rondo_task_dead"},
           damage{"DROP INDEX rondo_task_lane", "the schema is damaged: no such index: rondo_task_lane"},
           damage{"DROP INDEX rondo_task_lane_due",
                  "the schema is damaged: no such index: rondo_task_lane_due"},
           damage{"DROP INDEX rondo_task_lane_busy",
                  "the schema is damaged: no such index: rondo_task_lane_busy"},
           damage{"DROP TRIGGER rondo_task_gone", "the schema is damaged: no such trigger: rondo_task_gone"},
           damage{"DROP TRIGGER rondo_lane_changed",
                  "the schema is damaged: no such trigger: rondo_lane_changed"},
           damage{"DROP TABLE rondo_task", "the schema is damaged: no such index"},
           damage{"DROP TABLE rondo_payload", "the schema is damaged: no such table: rondo_payload"},
           damage{"DROP TABLE rondo_paused", "the schema is damaged: no such table: rondo_paused"},
           damage{"DROP TABLE rondo_owner", "the schema is damaged: no such table: rondo_owner"},
       }) {
    CAPTURE(d.by);
    sqlite_database db;
    db.open_store();
    db.ask(d.by);
    CHECK(refusal(db).find(d.said) != std::string::npos);
    CHECK(refusal(db).find(db.file()) != std::string::npos);
  }
}

TEST_CASE("a migration of a damaged schema is refused, and undone") {
  sqlite_database db;
  db.open_store();
  db.ask("DROP INDEX rondo_task_key");
  CHECK_THROWS_AS(open_with(db, later(add_column)), store_error);
  CHECK(db.ask("SELECT version FROM rondo_schema") == "4");
}

}  // namespace durable_sqlite_open
