// An origin that is an SQLite database.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "cache_refresh/origin_checks.hpp"
#include "cache_refresh/temporary_folder.hpp"
#include "common/sqlite.hpp"

namespace cache_refresh_origin_sqlite {

using namespace cache_refresh;
using namespace cache_refresh_test;
using namespace std::chrono_literals;

struct files : temporary_folder {
  std::string file = (path / "origin.db").string();
  origin_options made_up(std::size_t rows) const {
    return {.url = "sqlite:" + file, .rows = rows, .seed = 7};
  }

  sqlite::connection connect() const { return sqlite::connection(file, 1s); }
  std::string ask(const char* sql) const {
    const sqlite::connection mine = connect();
    sqlite::statement query(mine, sql);
    sqlite::rows found = query();
    return found.next() ? found.text(0) : "nothing";
  }
};

std::string error_of_load(origin& there, const std::string& key) {
  return error_of([&] { there.connect()->load(key, nullptr, 1s); });
}

TEST_CASE("sqlite: a new database is filled with generated rows, the same ones for the same seed") {
  const files a;
  const files b;
  const auto there = open_origin(a.made_up(1000));
  open_origin(b.made_up(1000));
  const auto keys = there->keys(0);
  REQUIRE(keys.size() == 1000);
  CHECK(keys.front() == "item/0000001");
  CHECK(there->keys(3).size() == 3);
  CHECK(
      a.ask(
          "SELECT min(ttl_ms) >= 1000 AND max(ttl_ms) <= 8000 AND count(DISTINCT ttl_ms) > 800 FROM item") ==
      "1");
  const char* const sum = "SELECT group_concat(key || value || ttl_ms || version) FROM item";
  CHECK(a.ask(sum) == b.ask(sum));
  CHECK(contains(there->name(), "origin.db"));
}

TEST_CASE("sqlite: a new database is filled from the catalogue; the first of two equal keys counts") {
  const files x;
  x.write("catalogue",
          "Package: a\nVersion: 1\n\nPackage: b\nVersion: 2\nDescription: two\n lines\n\nPackage: "
          "a\nVersion: 3\n");
  const auto there = open_origin({.url = "sqlite:" + x.file, .catalogue = x.path / "catalogue"});
  CHECK(there->keys(0) ==
        std::vector<std::string>{"a/Package", "a/Version", "b/Package", "b/Version", "b/Description"});
  const auto loader = there->connect();
  CHECK(loader->load("a/Version", nullptr, 1s).changed->value == "1");
  CHECK(loader->load("b/Description", nullptr, 1s).changed->value == "two\nlines");
}

TEST_CASE("sqlite: a catalogue that cannot be read leaves an empty database, which the next start fills") {
  const files x;
  CHECK(contains(error_of_opening({.url = "sqlite:" + x.file, .catalogue = x.path / "no"}),
                 "cannot be opened"));
  CHECK(contains(error_of_opening({.url = "sqlite:" + x.file}), "no catalogue"));
  CHECK(open_origin(x.made_up(5))->keys(0).size() == 5);
}

TEST_CASE("sqlite: an existing database is not changed") {
  const files x;
  open_origin(x.made_up(5))->edit()->change("item/0000002", "7", [] {});
  const auto again = open_origin(x.made_up(100));
  CHECK(again->keys(0).size() == 5);
  CHECK(contains(again->connect()->load("item/0000002", nullptr, 1s).changed->value, "[edit 7]"));
}

TEST_CASE("sqlite: a file that is not a database of the program is refused in one line") {
  const files x;
  x.write("text", "this is no database, and long enough not to be taken for an empty one");
  CHECK(contains(error_of_opening({.url = "sqlite:" + (x.path / "text").string()}), "not a database"));
  CHECK(x.read("text") == "this is no database, and long enough not to be taken for an empty one");
  CHECK(contains(error_of_opening({.url = "sqlite:" + x.path.string()}), "unable to open"));
  CHECK(contains(error_of_opening({.url = "sqlite:" + x.path.string() + "/no/such"}), "unable to open"));
  CHECK(contains(error_of_opening({.url = "sqlite:"}), "needs a file name"));
  x.connect().execute("CREATE TABLE other (x)");
  CHECK(contains(error_of_opening(x.made_up(5)), "of another program"));
  CHECK(x.ask("SELECT count(*) FROM sqlite_master") == "1");
}

TEST_CASE("sqlite: a load returns value, version and TTL, or that the version has not changed") {
  const files x;
  const auto there = open_origin(x.made_up(3));
  const auto loader = there->connect();
  const answer first = loader->load("item/0000001", nullptr, 1s);
  REQUIRE(first.changed);
  CHECK(first.changed->value == x.ask("SELECT value FROM item"));
  CHECK(first.changed->validator == "1");
  CHECK(first.ttl.soft == std::chrono::milliseconds(std::stoi(x.ask("SELECT ttl_ms FROM item"))));
  CHECK(!first.ttl.hard);

  const answer same = loader->load("item/0000001", &*first.changed, 1s);
  CHECK(!same.changed);
  CHECK(same.ttl.soft == first.ttl.soft);

  x.connect().execute("UPDATE item SET value = 'new', ttl_ms = 0");
  const answer next = loader->load("item/0000001", &*first.changed, 1s);
  REQUIRE(next.changed);
  CHECK(next.changed->value == "new");
  CHECK(next.changed->validator == "2");
  CHECK(next.ttl.soft == 1s);  // not 0, which would mean loading without a pause
  CHECK(error_of_load(*there, "no") == "no: there is no such row");
}

TEST_CASE("sqlite: an editor's change is visible when it is committed") {
  const files x;
  const auto there = open_origin(x.made_up(3));
  const auto loader = there->connect();
  const auto editor = there->edit();
  const record old = *loader->load("item/0000001", nullptr, 1s).changed;
  const std::string validator = editor->change("item/0000001", "1", [&] {
    CHECK(!loader->load("item/0000001", &old, 1s).changed);  // and does not wait for the writer
  });
  const record next = *loader->load("item/0000001", &old, 1s).changed;
  CHECK(next.value == old.value + " [edit 1]");
  CHECK(next.validator == validator);
  editor->change("item/0000001", "22", [] {});
  CHECK(loader->load("item/0000001", nullptr, 1s).changed->value == old.value + " [edit 22]");
}

TEST_CASE("sqlite: a failed change changes nothing") {
  const files x;
  const auto there = open_origin(x.made_up(3));
  const auto editor = there->edit();
  const std::string before = x.ask("SELECT value || version FROM item");
  CHECK_THROWS_AS(editor->change("item/0000001", "1", [] { throw 1; }), int);
  CHECK(contains(error_of([&] { editor->change("no", "1", [] {}); }), "no such row"));
  CHECK(x.ask("SELECT value || version FROM item") == before);
  {
    sqlite::connection other = x.connect();
    const sqlite::transaction lock(other);
    bool called = false;
    CHECK(contains(error_of([&] { editor->change("item/0000001", "1", [&] { called = true; }); }), "locked"));
    CHECK(!called);
  }
  editor->change("item/0000001", "1", [] {});
  CHECK(x.ask("SELECT version FROM item") == "2");
}

TEST_CASE("sqlite: several connections can load at once while an editor writes") {
  const files x;
  const auto there = open_origin(x.made_up(20));
  std::atomic<int> wrong{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, loader = there->connect()] {
      std::string last = "0";
      while (!over) {
        const auto given = loader->load("item/0000005", nullptr, 10s);
        if (std::stoi(given.changed->validator) < std::stoi(last)) ++wrong;
        last = given.changed->validator;
      }
    });
  }
  const auto editor = there->edit();
  for (int i = 0; i < 200; ++i) editor->change("item/0000005", std::to_string(i), [] {});
  over = true;
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
  CHECK(x.ask("SELECT version FROM item WHERE id = 5") == "201");
}

TEST_CASE("sqlite: a connection recovers after an error") {
  const files x;
  const auto there = open_origin(x.made_up(3));
  const auto loader = there->connect();
  x.connect().execute("ALTER TABLE item RENAME TO away");
  CHECK(contains(error_of([&] { loader->load("item/0000001", nullptr, 1s); }), "no such table"));
  x.connect().execute("ALTER TABLE away RENAME TO item");
  CHECK(loader->load("item/0000001", nullptr, 1s).changed);
}

struct own_database : files {
  own_database() {
    connect().execute(
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, changed INTEGER);"
        "INSERT INTO users VALUES (1, 'Ada', 100), (2, 'Grace', 200), (3, 'Edsger', NULL);");
  }
  origin_options queries(const std::string& load) const {
    return {.url = "sqlite:" + file, .list_query = "SELECT id FROM users ORDER BY id", .load_query = load};
  }
};

TEST_CASE("sqlite: the user's own queries can read any database, and only read") {
  const own_database x;
  const std::string before = x.read("origin.db");
  for (const char* load :
       {"SELECT name, changed FROM users WHERE id = $1", "SELECT name, changed FROM users WHERE id = ?"}) {
    const auto there = open_origin(x.queries(load));
    CHECK(there->keys(0) == std::vector<std::string>{"1", "2", "3"});
    CHECK(there->keys(2) == std::vector<std::string>{"1", "2"});
    const auto loader = there->connect();
    const answer given = loader->load("2", nullptr, 1s);
    CHECK(given.changed->value == "Grace");
    CHECK(given.changed->validator == "200");
    CHECK(!given.ttl.soft);
    CHECK(!loader->load("2", &*given.changed, 1s).changed);
    // Without a validator, a value never counts as unchanged.
    const record third = *loader->load("3", nullptr, 1s).changed;
    CHECK(third.validator.empty());
    CHECK(loader->load("3", &third, 1s).changed);
    CHECK(error_of([&] { loader->load("4", nullptr, 1s); }) == "4: there is no such row");
    CHECK(there->edit() == nullptr);
  }
  CHECK(x.read("origin.db") == before);
  const auto with_ttl = open_origin(x.queries("SELECT name, changed, changed FROM users WHERE id = ?"));
  CHECK(with_ttl->connect()->load("2", nullptr, 1s).ttl.soft == 200ms);
  CHECK(!with_ttl->connect()->load("3", nullptr, 1s).ttl.soft);
}

TEST_CASE("sqlite: queries that cannot work are refused at the start") {
  const own_database x;
  CHECK(contains(error_of_opening(x.queries("SELECT no_column FROM users WHERE id = ?")), "no such column"));
  CHECK(contains(error_of_opening(x.queries("SELECT name FROM users WHERE id = ?")),
                 "must have one parameter"));
  CHECK(contains(error_of_opening(x.queries("SELECT name, id FROM users")), "must have one parameter"));
  CHECK(contains(error_of_opening(x.queries("DELETE FROM users WHERE id = ?")), "must have one parameter"));
  origin_options missing = x.queries("SELECT name, id FROM users WHERE id = ?");
  missing.url += ".no";
  CHECK(contains(error_of_opening(missing), "unable to open"));
  CHECK(!std::filesystem::exists(x.file + ".no"));
}

TEST_CASE("sqlite: an endless query ends at the limit") {
  const own_database x;
  const auto there = open_origin(x.queries(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*), $1 FROM n"));
  CHECK(
      contains(error_of([&] { there->connect()->load("1", nullptr, 100ms); }), "no answer within the limit"));
}

}  // namespace cache_refresh_origin_sqlite
