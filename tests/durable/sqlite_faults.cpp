// A full disk, a lock held by somebody else, a broken file: the errors, and that everything works again afterwards.
#include <doctest/doctest.h>

#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "durable/errors.hpp"
#include "durable/sqlite_database.hpp"

namespace durable_sqlite_faults {

using namespace durable_test;

/// A store and a session, and their SQLite connections.
struct in_use {
  sqlite_database db;
  std::vector<sqlite3*> connections;
  bool memory_is_short = false;
  std::shared_ptr<rondo::durable::detail::engine> engine;
  std::unique_ptr<rondo::durable::store> store;
  std::unique_ptr<rondo::durable::detail::session> session;

  in_use() {
    auto settings = db.settings();
    settings.patience = 20ms;
    settings.connected = [this](sqlite3* made) {
      if (memory_is_short) throw std::bad_alloc();
      connections.push_back(made);
    };
    engine = rondo::durable::detail::sqlite::open(db.file(), settings);
    store = rondo::durable::detail::store_access::make(engine);
    session = engine->connect("w", worker::default_rules());
  }
  std::string rows() { return db.ask("SELECT count(*) FROM rondo_task"); }
};

void pragma(sqlite3* connection, const std::string& what) {
  REQUIRE(sqlite3_exec(connection, ("PRAGMA " + what).c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
}

TEST_CASE(
    "on a full disk submissions throw and nothing is lost; when there is room again, the store works again") {
  in_use x;
  pragma(x.connections[0], "max_page_count = 60");
  std::vector<std::int64_t> accepted;
  std::string said;
  for (int i = 0; i < 1000 && said.empty(); ++i) {
    said =
        error_of([&] { accepted.push_back(x.store->submit_after(1h, {.payload = std::string(1000, 'p')})); });
  }
  CHECK(said == "rondo: SQLite, " + x.db.file() +
                    ": database or disk is full (nothing was changed; free some disk space and try again)");
  CHECK(accepted.size() > 10);
  CHECK(x.rows() == std::to_string(accepted.size()));
  for (const std::int64_t id : accepted) CHECK(x.store->find(id)->payload.size() == 1000);
  CHECK(error_of([&] { x.store->submit_after(1h, {.payload = std::string(1000, 'p')}); }) == said);

  pragma(x.connections[0], "max_page_count = 1000");
  CHECK(x.store->submit_after(1h, {.payload = std::string(1000, 'p')}) > accepted.back());
  CHECK(x.rows() == std::to_string(accepted.size() + 1));
}

TEST_CASE("a replacement on a full disk leaves the old task") {
  in_use x;
  const std::int64_t old = x.store->submit_after(1h, {.payload = "old", .key = "k"});
  pragma(x.connections[0], "max_page_count = 12");
  CHECK(error_of([&] {
          x.store->submit_after(1h, {.payload = std::string(100'000, 'p'), .key = "k", .replace = true});
        }).find("full") != std::string::npos);
  CHECK(x.store->find(old)->payload == "old");
  CHECK(x.store->find(old)->key == "k");
}

TEST_CASE("on a full disk the user's transaction loses only the submission") {
  in_use x;
  const auto mine = x.db.connect();
  mine->execute("CREATE TABLE orders (number INTEGER)");
  mine->execute("PRAGMA max_page_count = 12");
  mine->execute("BEGIN; INSERT INTO orders VALUES (7)");
  const std::int64_t first = x.store->submit_after(mine->handle(), 1h, {});
  CHECK(error_of([&] {
          x.store->submit_after(mine->handle(), 1h, {.payload = std::string(100'000, 'p')});
        }).find("full") != std::string::npos);
  REQUIRE(sqlite3_get_autocommit(mine->handle().sqlite()) == 0);
  mine->execute("COMMIT");
  CHECK(x.store->find(first));
  CHECK(x.rows() == "1");
  CHECK(x.db.ask("SELECT count(*) FROM orders") == "1");
}

TEST_CASE("a turn on a full disk does nothing, and succeeds when there is room again") {
  in_use x;
  for (int i = 0; i < 50; ++i) x.store->submit_after(0s, {.payload = std::string(200, 'p')});
  std::vector<ticket> begun;
  for (const auto& c : x.session->take({.claim_up_to = 50}).claimed) begun.push_back(ticket_of(c));
  CHECK(begun.size() == 50);
  CHECK(x.session->take({.begun = begun}).begun.size() == 50);
  pragma(x.connections[1], "max_page_count = 10");
  turn ends = {.finished = {begun[0]}};
  for (std::size_t i = 1; i < begun.size(); ++i)
    ends.failed.push_back({.of = begun[i], .retry_after = {}, .reason = std::string(4000, 'r')});
  CHECK(error_of([&] { x.session->take(ends); }).find("full") != std::string::npos);
  CHECK(x.rows() == "50");
  CHECK(x.db.ask("SELECT count(*) FROM rondo_task WHERE state = 2") == "50");
  pragma(x.connections[1], "max_page_count = 1000");
  const turn_result done = x.session->take(ends);
  CHECK(done.finished.size() == 1);
  CHECK(done.failed.size() == 49);
  CHECK(x.rows() == "49");
}

TEST_CASE(
    "a lock that another connection holds for too long is an error and nothing is changed; afterwards calls "
    "work again") {
  in_use x;
  const std::int64_t id = x.store->submit_after(0s, {});
  const auto mine = x.db.connect();
  mine->execute("BEGIN IMMEDIATE");
  const auto locked = [](const std::string& said) {
    return said.find("database is locked (") != std::string::npos;
  };
  CHECK(locked(error_of([&] { x.store->submit_after(1h, {}); })));
  CHECK(locked(error_of([&] { x.store->cancel(id); })));
  CHECK(locked(error_of([&] { x.store->reschedule_after(id, 1h); })));
  CHECK(locked(error_of([&] { x.session->take({.claim_up_to = 1}); })));
  CHECK(x.store->find(id));  // needs no lock
  mine->execute("ROLLBACK");
  CHECK(x.rows() == "1");
  CHECK(x.session->take({.claim_up_to = 1}).claimed.size() == 1);
  CHECK(x.store->cancel(id));
  CHECK(x.connections.size() == 2);
}

TEST_CASE(
    "a call in a user's transaction that began to read before another wrote is refused, and the transaction "
    "is not undone") {
  in_use x;
  const auto mine = x.db.connect();
  mine->execute("CREATE TABLE orders (number INTEGER)");
  mine->execute("BEGIN; SELECT count(*) FROM rondo_task");
  x.store->submit_after(1h, {});
  CHECK(error_of([&] {
          x.store->submit_after(mine->handle(), 1h, {});
        }).find("should start with BEGIN IMMEDIATE") != std::string::npos);
  mine->execute("ROLLBACK; BEGIN IMMEDIATE");
  CHECK_NOTHROW(x.store->submit_after(mine->handle(), 1h, {}));
  mine->execute("COMMIT");
  CHECK(x.rows() == "2");
}

/// During its lifetime the file is not a database.
class broken_file {
 public:
  explicit broken_file(sqlite_database& db)
      : file_(db.file(), std::ios::in | std::ios::out | std::ios::binary) {
    db.ask("PRAGMA wal_checkpoint(TRUNCATE)");
    file_.read(header_.data(), 100);
    write(std::string(100, 'x'));
  }
  ~broken_file() { write(header_); }
  broken_file(const broken_file&) = delete;
  broken_file& operator=(const broken_file&) = delete;

 private:
  void write(const std::string& bytes) { file_.seekp(0).write(bytes.data(), 100).flush(); }

  std::fstream file_;
  std::string header_ = std::string(100, '\0');
};

TEST_CASE("the next call reconnects after the connection broke") {
  in_use x;
  const std::int64_t id = x.store->submit_after(0s, {});
  {
    const broken_file f(x.db);
    CHECK(error_of([&] { x.store->find(id); }) != "");
    CHECK(error_of([&] { x.session->take({.claim_up_to = 1}); }) != "");
    CHECK(error_of([&] { x.store->find(id); }) != "");
  }
  CHECK(x.store->find(id));
  CHECK(x.session->take({.claim_up_to = 1}).claimed.size() == 1);
  CHECK(x.connections.size() == 4);
}

TEST_CASE("changed() returns true if there is no memory to connect, and the turn reports the error") {
  in_use x;
  x.store->submit_after(0s, {});
  {
    const broken_file f(x.db);
    CHECK(error_of([&] { x.session->take({.claim_up_to = 1}); }) != "");
  }
  x.memory_is_short = true;
  CHECK(x.session->changed());
  CHECK_THROWS_AS(x.session->take({.claim_up_to = 1}), std::bad_alloc);
  x.memory_is_short = false;
  CHECK(x.session->take({.claim_up_to = 1}).claimed.size() == 1);
}

}  // namespace durable_sqlite_faults
