// An origin that is a PostgreSQL database.
#include <doctest/doctest.h>

#include <csignal>
#include <thread>

#include "cache_refresh/origin_checks.hpp"
#include "cache_refresh/refreshed_origin.hpp"
#include "cache_refresh/temporary_folder.hpp"
#include "durable/postgresql_server.hpp"

namespace cache_refresh_origin_postgresql {

using namespace cache_refresh;
using namespace cache_refresh_test;
using namespace std::chrono_literals;
using namespace durable_test;

constexpr auto immediate = postgresql_server::how::immediate;

// A new database. It is not dropped, because postgresql_server would give it to another test with the schema in it.
struct database {
  origin_options made_up(std::size_t rows) const { return {.url = url, .rows = rows, .seed = 7}; }
  origin_options queries(const std::string& load) const {
    return {.url = url, .list_query = "SELECT id FROM users ORDER BY id", .load_query = load};
  }
  std::string run(const std::string& sql) const { return user_connection(url).run(sql); }
  void add_users() const {
    run("CREATE TABLE users (id int PRIMARY KEY, name text, changed bigint, ttl numeric)");
    run("INSERT INTO users VALUES (1, 'Ada', 100, 300), (2, 'Grace', 200, NULL), (3, 'Edsger', NULL, NULL)");
  }

  postgresql_server& server = *postgresql_server::get();
  const std::string url = server.new_database();
};

bool installed() { return postgresql_server::get() != nullptr; }

TEST_CASE("postgresql: a new database is filled with generated rows, the same ones for the same seed") {
  if (!installed()) return;
  const database a;
  const database b;
  const auto there = open_origin(a.made_up(10'000));
  open_origin(b.made_up(10'000));
  const auto keys = there->keys(0);
  REQUIRE(keys.size() == 10'000);
  CHECK(keys.front() == "item/0000001");
  CHECK(there->keys(3) == std::vector<std::string>{"item/0000001", "item/0000002", "item/0000003"});
  CHECK(a.run("SELECT min(ttl_ms) >= 1000 AND max(ttl_ms) <= 8000 FROM cache_refresh.item") == "t");
  const char* const sum =
      "SELECT md5(string_agg(key || value || ttl_ms, ' ' ORDER BY key)) FROM cache_refresh.item";
  CHECK(a.run(sum) == b.run(sum));
  CHECK(contains(there->name(), "tests_"));

  // The next start does not change it.
  CHECK(open_origin(a.made_up(5))->keys(0).size() == 10'000);
}

TEST_CASE("postgresql: a new database is filled from the catalogue, whatever its text") {
  if (!installed()) return;
  const database x;
  const temporary_folder folder;
  folder.write(
      "catalogue",
      "Package: a\nOdd: tab\there, back\\slash \\. \"quoted\"\n \\.\n ä\n\nPackage: a\nOdd: second\n");
  const auto there = open_origin({.url = x.url, .catalogue = folder.path / "catalogue"});
  CHECK(there->keys(0) == std::vector<std::string>{"a/Odd", "a/Package"});
  CHECK(there->connect()->load("a/Odd", nullptr, 10s).changed->value ==
        "tab\there, back\\slash \\. \"quoted\"\n\\.\nä");
}

TEST_CASE("postgresql: a catalogue that cannot be read leaves nothing behind") {
  if (!installed()) return;
  const database x;
  CHECK(contains(error_of_opening({.url = x.url, .catalogue = "/no/such/file"}), "cannot be opened"));
  CHECK(x.run("SELECT count(*) FROM pg_namespace WHERE nspname = 'cache_refresh'") == "0");
  CHECK(open_origin(x.made_up(5))->keys(0).size() == 5);
}

TEST_CASE("postgresql: if several programs start at once, one of them fills the database") {
  if (!installed()) return;
  const database x;
  std::vector<std::string> errors(4);
  std::vector<std::size_t> counts(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      errors[i] = error_of([&] { counts[i] = open_origin(x.made_up(2000 + i))->keys(0).size(); });
    });
  }
  for (std::thread& each : threads) each.join();
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(errors[i] == "");
    CHECK(counts[i] == counts[0]);
  }
  CHECK(counts[0] >= 2000);
}

TEST_CASE("postgresql: a load returns value, version and TTL, or that the version has not changed") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(3));
  const auto loader = there->connect();
  x.run("UPDATE cache_refresh.item SET ttl_ms = 1500");
  const answer first = loader->load("item/0000001", nullptr, 10s);
  REQUIRE(first.changed);
  CHECK(first.changed->value == x.run("SELECT value FROM cache_refresh.item ORDER BY key"));
  CHECK(first.ttl.soft == 1500ms);
  CHECK(!first.ttl.hard);
  CHECK(!loader->load("item/0000001", &*first.changed, 10s).changed);

  x.run("UPDATE cache_refresh.item SET value = 'new', ttl_ms = 0 WHERE key = 'item/0000001'");
  const answer next = loader->load("item/0000001", &*first.changed, 10s);
  REQUIRE(next.changed);
  CHECK(next.changed->value == "new");
  CHECK(next.changed->validator != first.changed->validator);
  CHECK(next.ttl.soft == 1s);
  CHECK(error_of([&] { loader->load("no", nullptr, 10s); }) == "no: there is no such row");

  // A row that was deleted and inserted again does not have the same version.
  x.run("DELETE FROM cache_refresh.item WHERE key = 'item/0000001'");
  x.run("INSERT INTO cache_refresh.item (key, value) VALUES ('item/0000001', 'again')");
  const answer again = loader->load("item/0000001", &*next.changed, 10s);
  REQUIRE(again.changed);
  CHECK(again.changed->value == "again");
}

TEST_CASE(
    "postgresql: an editor's change is visible when it is committed, and a failed one changes nothing") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(3));
  const auto loader = there->connect();
  const auto editor = there->edit();
  const record old = *loader->load("item/0000001", nullptr, 10s).changed;
  const std::string validator =
      editor->change("item/0000001", "1", [&] { CHECK(!loader->load("item/0000001", &old, 10s).changed); });
  const record next = *loader->load("item/0000001", &old, 10s).changed;
  CHECK(next.value == old.value + " [edit 1]");
  CHECK(next.validator == validator);
  CHECK_THROWS_AS(editor->change("item/0000001", "2", [] { throw 1; }), int);
  CHECK(contains(error_of([&] { editor->change("no", "2", [] {}); }), "no such row"));
  CHECK(!loader->load("item/0000001", &next, 10s).changed);
  editor->change("item/0000001", "33", [] {});
  CHECK(loader->load("item/0000001", nullptr, 10s).changed->value == old.value + " [edit 33]");

  user_connection other(x.url);
  other.run("BEGIN");
  other.run("UPDATE cache_refresh.item SET ttl_ms = 1 WHERE key = 'item/0000001'");
  bool called = false;
  CHECK(contains(error_of([&] { editor->change("item/0000001", "4", [&] { called = true; }); }),
                 "lock timeout"));
  CHECK(!called);
}

TEST_CASE("postgresql: the user's own queries can read, and only read") {
  if (!installed()) return;
  const database x;
  x.add_users();
  const auto there = open_origin(x.queries("SELECT name, changed, ttl::bigint FROM users WHERE id = $1"));
  CHECK(there->keys(0) == std::vector<std::string>{"1", "2", "3"});
  CHECK(there->keys(2) == std::vector<std::string>{"1", "2"});
  CHECK(there->edit() == nullptr);
  const auto loader = there->connect();
  const answer first = loader->load("1", nullptr, 10s);
  CHECK(first.changed->value == "Ada");
  CHECK(first.changed->validator == "100");
  CHECK(first.ttl.soft == 300ms);
  CHECK(!loader->load("1", &*first.changed, 10s).changed);
  CHECK(!loader->load("2", nullptr, 10s).ttl.soft);
  const record third = *loader->load("3", nullptr, 10s).changed;
  CHECK(third.validator.empty());
  CHECK(loader->load("3", &third, 10s).changed);
  CHECK(contains(error_of([&] { loader->load("4", nullptr, 10s); }), "no such row"));
  CHECK(contains(error_of([&] { loader->load("x", nullptr, 10s); }), "invalid input syntax"));
  CHECK(loader->load("1", nullptr, 10s).changed);
  CHECK(x.run("SELECT count(*) FROM pg_namespace WHERE nspname = 'cache_refresh'") == "0");

  const auto writing =
      open_origin(x.queries("UPDATE users SET changed = 1 WHERE id = $1 RETURNING name, changed"));
  CHECK(contains(error_of([&] { writing->connect()->load("1", nullptr, 10s); }), "read-only"));
  const auto fraction = open_origin(x.queries("SELECT name, changed, 1.5 FROM users WHERE id = $1"));
  CHECK(contains(error_of([&] { fraction->connect()->load("1", nullptr, 10s); }), "whole number"));
}

TEST_CASE("postgresql: loads go on after the type of a column has changed") {
  if (!installed()) return;
  const database x;
  x.add_users();
  const auto there = open_origin(x.queries("SELECT name, changed FROM users WHERE id = $1"));
  const auto loader = there->connect();
  REQUIRE(loader->load("1", nullptr, 10s).changed);
  x.run("ALTER TABLE users ALTER changed TYPE text");
  static_cast<void>(error_of([&] { loader->load("1", nullptr, 10s); }));
  CHECK(loader->load("1", nullptr, 10s).changed->value == "Ada");
}

TEST_CASE("postgresql: queries that cannot work are refused at the start") {
  if (!installed()) return;
  const database x;
  x.add_users();
  CHECK(
      contains(error_of_opening(x.queries("SELECT nothing, id FROM users WHERE id = $1")), "does not exist"));
  CHECK(contains(error_of_opening(x.queries("SELECT name FROM users WHERE id = $1")),
                 "must have one parameter"));
  CHECK(contains(error_of_opening(x.queries("SELECT name, id FROM users")), "must have one parameter"));
  CHECK(contains(error_of_opening(x.queries("SELECT")), "must have one parameter"));
}

TEST_CASE("postgresql: an error of a URL or a server is one line, within a bounded time") {
  if (!installed()) return;
  const database x;
  for (const char* url : {"postgresql://127.0.0.1:1/x", "postgres:///x?host=/no/such/folder",
                          "postgresql://[", "postgresql://h/x?no=1"}) {
    CAPTURE(url);
    const std::string error = error_of_opening({.url = url, .rows = 1});
    CHECK(error != "");
    CHECK(!contains(error, "\n"));
  }
  CHECK(contains(
      error_of_opening(
          {.url = x.url.substr(0, x.url.find('?')) + "_no" + x.url.substr(x.url.find('?')), .rows = 1}),
      "does not exist"));
}

// Stops the server's processes that serve this program, and returns them.
std::vector<pid_t> stop_backends(const database& x) {
  std::vector<pid_t> all;
  user_connection asks(x.url);
  const std::string pids = asks.run(
      "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity"
      " WHERE application_name = 'cache_refresh' AND datname = current_database()");
  for (std::size_t at = 0; at < pids.size();) {
    std::size_t size = 0;
    all.push_back(std::stoi(pids.substr(at), &size));
    at += size;
  }
  for (const pid_t each : all) ::kill(each, SIGSTOP);
  return all;
}

TEST_CASE("postgresql: a server that does not answer delays a load no longer than its limit") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(3));
  const auto loader = there->connect();
  REQUIRE(loader->load("item/0000001", nullptr, 10s).changed);
  const auto stopped = stop_backends(x);
  CHECK(!stopped.empty());
  std::string error;
  const auto took = time_of([&] { error = error_of([&] { loader->load("item/0000001", nullptr, 200ms); }); });
  for (const pid_t each : stopped) ::kill(each, SIGCONT);
  CHECK(contains(error, "no answer within"));
  CHECK(took < patience / 2);
  CHECK(loader->load("item/0000001", nullptr, 10s).changed);
}

TEST_CASE("postgresql: the time that connecting takes is a part of a load's limit") {
  if (!installed()) return;
  const database x;
  x.add_users();
  origin_options wanted = x.queries("SELECT name, changed FROM users WHERE id = $1");
  const auto loader = [&] {
    wanted.url += wanted.url.find('?') == std::string::npos ? '?' : '&';
    wanted.url += "options=-c%20post_auth_delay%3D1";  // a second
    return open_origin(wanted)->connect();
  }();
  user_connection other(x.url);
  other.run("BEGIN");
  other.run("LOCK users");  // for which preparing the query waits
  const std::string error = error_of([&] { loader->load("1", nullptr, 3s); });
  const std::string begins = "no answer within ";
  REQUIRE(contains(error, begins));
  CHECK(std::stoi(error.substr(begins.size())) <= 2000);  // what was left
}

TEST_CASE("postgresql: a slow query ends at the limit, on the server as well") {
  if (!installed()) return;
  const database x;
  x.add_users();
  const auto there = open_origin(x.queries(
      "SELECT name, changed, CASE id WHEN 1 THEN length(pg_sleep(3000)::text) END FROM users WHERE id = $1"));
  const auto loader = there->connect();
  CHECK(error_of([&] { loader->load("1", nullptr, 300ms); }) != "");
  CHECK(loader->load("2", nullptr, 10s).changed);
  user_connection asks(x.url);
  CHECK(becomes([&] {
    return asks.run(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = "
               "current_database()") == "0";
  }));
}

TEST_CASE(
    "postgresql: a server that takes connections and does not answer is reported within a bounded time") {
  if (!installed()) return;
  const database x;
  // Stops the server's main process, which answers new connections.
  const pid_t main = std::stoi(x.run("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)"));
  ::kill(main, SIGSTOP);
  std::string error;
  const auto took = time_of([&] { error = error_of_opening(x.made_up(1)); });
  ::kill(main, SIGCONT);
  CHECK(contains(error, "no answer within 5000 ms"));
  CHECK(took < patience / 2);
}

TEST_CASE("postgresql: news reports rows that are inserted, changed or deleted, once this is committed") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(3));
  heard_keys heard;
  auto news = there->watch(heard.listener());
  there->edit()->change("item/0000002", "1", [] {});
  CHECK(heard.wait_for("item/0000002"));
  x.run("INSERT INTO cache_refresh.item (key, value) VALUES ('new', '')");
  CHECK(heard.wait_for("new"));
  x.run("UPDATE cache_refresh.item SET key = 'newer' WHERE key = 'new'");
  CHECK(heard.wait_for("new", 2));
  CHECK(heard.wait_for("newer"));
  x.run("DELETE FROM cache_refresh.item WHERE key = 'newer'");
  CHECK(heard.wait_for("newer", 2));
  x.run("BEGIN; UPDATE cache_refresh.item SET value = 'x' WHERE key = 'item/0000003'; ROLLBACK");
  x.run("UPDATE cache_refresh.item SET ttl_ms = 1 WHERE key = 'item/0000003'");
  CHECK(heard.times("") == 0);
  x.run("INSERT INTO cache_refresh.item (key, value) VALUES (repeat('x', 9000), '')");
  CHECK(heard.wait_for(""));
  x.run("TRUNCATE cache_refresh.item");
  CHECK(heard.wait_for("", 2));
  CHECK(heard.times("item/0000003") == 0);
  CHECK(heard.times("item/0000001") == 0);
  news.reset();
  x.run("NOTIFY cache_refresh_item, 'after'");
  CHECK(heard.times("after") == 0);
}

TEST_CASE(
    "postgresql: a lost news connection is opened again, and then reports once that all may have changed") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(3));
  heard_keys heard;
  const auto news = there->watch(heard.listener());
  const char* const end_others =
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
      " WHERE application_name = 'cache_refresh' AND datname = current_database()";
  for (int i = 1; i <= 3; ++i) {
    CHECK(x.run(end_others) != "0");  // processes of closed connections may still be there
    REQUIRE(heard.wait_for("", i));
    x.run("NOTIFY cache_refresh_item, 'after'");
    REQUIRE(heard.wait_for("after", i));
    CHECK(heard.times("") == i);
  }
}

TEST_CASE("postgresql: news can begin and end while the server is down") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(3));
  x.server.stop(immediate);
  heard_keys heard;
  there->watch(heard.listener()).reset();
  const auto news = there->watch(heard.listener());
  x.server.start();
  CHECK(heard.wait_for(""));
  there->edit()->change("item/0000002", "1", [] {});
  CHECK(heard.wait_for("item/0000002"));
}

TEST_CASE(
    "postgresql: values are served while the server is down after a kill, and all recovers when it is back") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(20));
  x.run("UPDATE cache_refresh.item SET ttl_ms = 50");
  const auto keys = there->keys(0);
  refreshed_origin running(*there, {.hard_ttl = 1h, .longest_retry = 100ms});
  std::size_t unserved = 0;
  const auto read_all = [&] {
    std::size_t empty = 0;
    for (const auto& key : keys) {
      if (running.value(key).empty()) ++empty;
    }
    return empty;
  };
  REQUIRE(becomes([&] { return read_all() == 0; }));
  x.server.stop(immediate);
  REQUIRE(becomes([&] {
    unserved += read_all();
    return running.cache.count().failing == keys.size();
  }));
  x.server.start();
  CHECK(becomes([&] {
    unserved += read_all();
    return running.cache.count().failing == 0;
  }));
  CHECK(unserved == 0);

  // News recovers as well: from here on only news can report a change in time.
  x.run("UPDATE cache_refresh.item SET ttl_ms = 3600000");
  const auto editor = there->edit();
  int number = 0;
  CHECK(becomes([&] {
    editor->change(keys[4], std::to_string(++number), [] {});
    const std::string mark = "[edit " + std::to_string(number) + "]";
    for (int i = 0; i < 40 && !running.value(keys[4]).ends_with(mark); ++i) std::this_thread::sleep_for(5ms);
    return running.value(keys[4]).ends_with(mark);
  }));
}

TEST_CASE("postgresql: values are served up to the hard TTL, and not after it") {
  if (!installed()) return;
  const database x;
  const auto there = open_origin(x.made_up(1));
  x.run("UPDATE cache_refresh.item SET ttl_ms = 50");
  constexpr auto hard = 1500ms;
  refreshed_origin running(*there, {.hard_ttl = hard, .longest_retry = 100ms});
  const std::string key = "item/0000001";
  REQUIRE(becomes([&] { return !running.value(key).empty(); }));
  x.server.stop(immediate);
  rondo::time_point loaded = rondo::time_point::clock::now();
  rondo::time_point ended;
  CHECK(becomes([&] {
    const auto before = rondo::time_point::clock::now();
    const auto found = running.cache.find(key);
    ended = rondo::time_point::clock::now();
    if (found.value) loaded = before - found.age;  // or a little later
    return !found.value;
  }));
  CHECK(ended - loaded >= hard);
  x.server.start();
  CHECK(becomes([&] { return !running.value(key).empty(); }));
}

}  // namespace cache_refresh_origin_postgresql
