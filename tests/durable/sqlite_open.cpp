// store::open() with files that are databases, are not, or cannot be written.
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

}  // namespace durable_sqlite_open
